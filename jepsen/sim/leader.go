package sim

import (
	"time"

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

const (
	dutyInterval = 500 * millisecond // how often a leader looks what there is to do
	retryDuty    = 100 * millisecond // the pause before a duty that failed is tried again
	entryMax     = 32                // commands of an entry
)

// fate is what a proposer is told.
type fate uint8

const (
	written   fate = iota
	notLeader      // nothing was written
	unknown        // it may be applied, now or later
)

// outcome is the outcome of a proposal.
type outcome struct {
	fate   fate
	index  uint64
	result fsm.Result
	stamp  fsm.Stamp
}

// proposal is a command on its way into the log.
type proposal struct {
	c      command.Command
	sentAt int64 // when the request was sent; of the leader's own: decided
	tooNew bool  // an older version does not know it
	done   func(outcome)
}

// flight is the one entry that is being replicated.
type flight struct {
	l         *leader
	proposals []*proposal
	stamp     fsm.Stamp
	data      []byte
	tooNew    []byte
	since     int64
	led       int64 // watch.led then
	number    uint64
	told      bool // the proposers have been told already that it is unknown
}

// leader is one leadership, with the loops of package cluster written as events.
type leader struct {
	w       *world
	replica *replica
	term    int
	clock   *lease.Clock
	timers  *lease.Timers

	serving bool // the barrier and the first tick are done
	over    bool
	cut     bool // another one leads, and it does not know
	lanes   [command.LaneCount][]*proposal
	flight  *flight

	sleep    int // counts the timer's sleeps: an older one wakes nobody
	expiring bool
	ticking  bool
	evicting bool
	dutiesAt int   // counts the looks at the duties: an older one is over
	planned  int64 // until when they sleep, by T; 0: nothing is due

	slotsGo     bool // slots of schedules are on their way
	slotsAt     int  // counts the looks at schedules: an older one is over
	plannedSlot int64
}

// elect makes a replica the leader, if it can be. It has what is committed, as
// Raft sees to; what the last leader had in flight, and is to survive, is
// committed first.
func (w *world) elect(r *replica) bool {
	if w.leader != nil || r.machine == nil {
		return false
	}
	for _, d := range w.deposed {
		if d.replica == r && !d.over {
			d.end() // it hears of its own fall at the latest now
		}
	}
	if f := w.lost; f != nil {
		w.lost = nil
		w.say("the entry that was in flight is committed all the same")
		w.commit(f)
	}
	r.catchUp(len(w.log))
	if r.machine == nil || w.failure != "" {
		return false
	}
	w.changes++
	l := &leader{w: w, replica: r, term: w.changes, clock: w.startClock(r), timers: lease.NewTimers()}
	w.leader = l
	w.mix(uint64(l.term), uint64(w.now))
	w.say("%s leads, term %d, U=%d after %d", r.name, l.term, l.clock.Now().U, r.machine.Stamp().U)
	w.watch.changed(w)
	l.readWalls()
	l.firstTick()
	return true
}

// firstDefaults are the server's of a new cluster, from level 5 on.
func firstDefaults(level uint32) fsm.Defaults {
	if level < levelActs {
		return fsm.Defaults{}
	}
	return fsm.Defaults{LimitSet: true, MaxAttempts: 10, Backoff: &fsm.Backoff{InitialMS: 1000, MaxMS: 3_600_000, Factor: 2_000_000, Jitter: 200_000}}
}

// firstTick logs a tick; then the timers begin, and the leader serves.
func (l *leader) firstTick() {
	l.propose(&proposal{c: command.Tick{}, sentAt: l.w.now, done: func(o outcome) {
		if o.fate != written {
			l.wake(time.Duration(retryDuty), l.firstTick)
			return
		}
		l.timers.Start(l.replica.machine)
		l.serving = true
		if level := l.w.profile.level; l.replica.machine.Level() < level {
			l.propose(&proposal{c: command.SetLevel{Level: level, Defaults: firstDefaults(level)}, sentAt: l.w.now, done: func(outcome) {}})
		}
		l.sleepUntilDue()
		l.duties()
		l.slots()
		l.tellU()
	}})
}

// end ends the leadership, wherever it is. What waits was not written; what is
// in flight is unknown.
func (l *leader) end() {
	if l.over {
		return
	}
	l.over, l.serving = true, false
	w := l.w
	if w.leader == l {
		w.leader, w.watch.leaderless = nil, w.now
	}
	w.say("%s no longer leads, term %d", l.replica.name, l.term)
	if f := l.flight; f != nil {
		l.flight = nil
		w.keepDuties(f.proposals)
		f.tell(outcome{fate: unknown})
	}
	for i, waiting := range l.lanes {
		l.lanes[i] = nil
		w.keepDuties(waiting)
		for _, p := range waiting {
			p.done(outcome{fate: notLeader})
		}
	}
}

// tell answers the proposers, unless they have been.
func (f *flight) tell(o outcome) {
	if f.told {
		return
	}
	f.told = true
	for _, p := range f.proposals {
		p.done(o)
	}
}

// keepDuties keeps what a leader wanted to expire, and the slots that it wanted
// to run, to be proposed when it is long too late.
func (w *world) keepDuties(proposals []*proposal) {
	for _, p := range proposals {
		switch p.c.(type) {
		case command.Expire, command.RunSchedules:
			w.keepLate(p.c)
		}
	}
}

// propose queues a command.
func (l *leader) propose(p *proposal) {
	lane := command.LaneOf(p.c)
	if l.over || !l.serving && lane != command.LaneInternal && lane != command.LaneExpire {
		p.done(outcome{fate: notLeader})
		return
	}
	l.lanes[lane] = append(l.lanes[lane], p)
	l.pump()
}

// pump puts what waits in flight, if nothing is.
func (l *leader) pump() {
	w := l.w
	if l.over || l.flight != nil {
		return
	}
	if d := l.replica.paused(); d > 0 {
		w.after(d, l.pump)
		return
	}
	f := l.pack()
	if f == nil {
		return
	}
	l.flight = f
	d := newDice(w.seed, 1<<40+f.number)
	latency := (1 + d.n(w.profile.entryMS)) * millisecond
	if d.in(w.profile.slowEntry) {
		latency += (100 + d.n(1400)) * millisecond
	}
	if d.in(w.profile.hiccup) && !w.quiet {
		// The proposers are told before anything is known.
		w.after(latency/2, func() { f.tell(outcome{fate: unknown}) })
	}
	w.after(latency, func() { l.land(f) })
}

// pack makes an entry of what waits, nil if nothing does.
func (l *leader) pack() *flight {
	w := l.w
	var taken []*proposal
	for i := range l.lanes {
		n := min(len(l.lanes[i]), entryMax-len(taken))
		if n == 0 {
			continue
		}
		taken = append(taken, l.lanes[i][:n]...)
		l.lanes[i] = l.lanes[i][n:]
	}
	if len(taken) == 0 {
		return nil
	}
	w.entries++
	f := &flight{l: l, proposals: taken, stamp: l.clock.Now(), since: w.now, led: w.watch.led, number: w.entries}
	w.watch.calendar(w, f.stamp)
	f.data = command.AppendEntryHeader(make([]byte, 0, 128), f.stamp, len(taken))
	f.encode()
	return f
}

// encode writes the entry's commands.
func (f *flight) encode() {
	for _, p := range f.proposals {
		if p.tooNew && f.tooNew == nil {
			f.tooNew = unknownEntry(f)
		}
		f.data = command.AppendCommand(f.data, p.c)
	}
}

// unknownEntry is the entry as an older version might read it, in one of the
// ways of not knowing: an entry's version, a command's type, a command's field.
func unknownEntry(f *flight) []byte {
	b := command.AppendEntryHeader(nil, f.stamp, len(f.proposals))
	for _, p := range f.proposals {
		if !p.tooNew {
			b = command.AppendCommand(b, p.c)
			continue
		}
		switch f.number % 3 {
		case 0:
			b = append(b, 99, 2, 8, 1) // type 99 with a body
		case 1:
			b = append(b, 129, 2, 15<<3, 1) // a checkpoint with a field 15
		default:
			b[0] = 77
			b = command.AppendCommand(b, p.c)
		}
	}
	return b
}

// land commits the entry in flight, unless its leader has been deposed.
func (l *leader) land(f *flight) {
	w := l.w
	if l.over || l.cut || l.flight != f {
		return
	}
	if d := l.replica.paused(); d > 0 {
		w.after(d, func() { l.land(f) })
		return
	}
	l.flight = nil
	e := w.commit(f)
	applied := l.replica.apply(e)
	if applied == nil {
		return // it failed, or stopped at what it does not know
	}
	if l.serving && len(applied.Leases) > 0 && l.timers.Add(applied.Leases) {
		l.sleepUntilDue()
	}
	w.follow(f.number)
	l.noteDue()
	l.noteSlot()
	if !f.told {
		f.told = true
		for i, p := range f.proposals {
			p.done(outcome{fate: written, index: e.index, result: applied.Results[i], stamp: applied.Stamp})
		}
	}
	l.pump()
}

// commit appends an entry to the log for good.
func (w *world) commit(f *flight) *entry {
	e := &entry{
		index: 1 + f.number%2, term: uint64(f.l.term), data: f.data, tooNew: f.tooNew, stamp: f.stamp, packedAt: f.since, led: f.led,
		commands: make([]command.Command, len(f.proposals)), sentAt: make([]int64, len(f.proposals)),
	}
	if n := len(w.log); n > 0 {
		e.index += w.log[n-1].index
	}
	for i, p := range f.proposals {
		e.commands[i], e.sentAt[i] = p.c, p.sentAt
	}
	w.log = append(w.log, e)
	w.commands += len(e.commands)
	w.mix(e.index, uint64(f.stamp.U), uint64(f.stamp.T), uint64(w.now))
	if w.tracing() {
		w.say("entry %d of %s is committed: U=%d T=%d", e.index, f.l.replica.name, f.stamp.U, f.stamp.T)
	}
	w.applyFirst(e)
	return e
}

// follow lets the other replicas apply, sooner or later.
func (w *world) follow(number uint64) {
	d := newDice(w.seed, 1<<41+number)
	for _, r := range w.replicas {
		if r.machine == nil || r.lags || d.in(w.profile.behind) {
			continue
		}
		if w.leader == nil || r != w.leader.replica {
			r.catchUp(len(w.log))
		}
	}
}

func (l *leader) read(fn func(*fsm.Machine)) { fn(l.replica.machine) }

// wake calls fn so much later by the leader's clock, and not while it stands
// still.
func (l *leader) wake(d time.Duration, fn func()) {
	l.w.after(l.replica.real(int64(d)), func() { l.running(fn) })
}

func (l *leader) running(fn func()) {
	if l.over {
		return
	}
	if d := l.replica.paused(); d > 0 {
		l.w.after(d, func() { l.running(fn) })
		return
	}
	fn()
}

// sleepUntilDue sleeps until the earliest lease timer.
func (l *leader) sleepUntilDue() {
	if l.expiring || l.over {
		return
	}
	l.sleep++
	mine, begun, wait := l.sleep, l.replica.Mono(), l.timers.Wait(l.clock.Now().U)
	l.wake(wait, func() {
		if mine != l.sleep {
			return
		}
		l.expiring = true
		if lease.Late(l.replica.Mono()-begun, wait) {
			l.wake(lease.LatePause, l.expireDue)
			return
		}
		l.expireDue()
	})
}

// expireDue proposes the expiry of what is due.
func (l *leader) expireDue() {
	if l.over {
		return
	}
	var expired []command.Lease
	for more := true; more && len(expired) == 0; {
		expired, more = l.timers.Due(l.read, l.clock.Now().U)
	}
	if len(expired) == 0 {
		l.expiring = false
		l.sleepUntilDue()
		return
	}
	c := command.Expire{Items: expired}
	begun := l.replica.Mono()
	l.w.keepLate(c)
	l.propose(&proposal{c: c, sentAt: l.w.now, done: func(o outcome) {
		l.timers.Proposed(expired, o.result.Expired)
		switch {
		case o.fate != written:
			l.wake(time.Duration(retryDuty), l.expireDue)
		case lease.Late(l.replica.Mono()-begun, 0):
			l.wake(lease.LatePause, l.expireDue)
		default:
			l.expireDue()
		}
	}})
}
