package sim

import (
	"time"

	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

const (
	retryDuty = 100 * millisecond // the pause before a failed duty is retried
	entryMax  = 32                // commands of an entry
)

// outcome is the answer to a proposer, and to the client behind it.
type outcome struct {
	code   string // "" if it was done
	result fsm.Result
	stamp  fsm.Stamp
}

// Codes of commands that are not known to be in the log.
const (
	codeNoLeader = "no_leader"       // nothing was written
	codeUnknown  = "outcome_unknown" // it may be applied, now or later
)

// written reports whether the log has it.
func (o outcome) written() bool { return o.code != codeNoLeader && o.code != codeUnknown }

// proposal is a command on its way into the log.
type proposal struct {
	c      command.Command
	sentAt int64 // when the request was sent; of the leader's own commands: when it decided
	done   func(outcome)
}

// leader is one leadership, with the loops of package cluster written as events.
type leader struct {
	w       *world
	replica *replica
	copied  // its state
	term    int
	clock   *lease.Clock
	timers  *lease.Timers

	serving bool // the barrier and the first tick are done
	over    bool
	cut     bool // another one leads, unknown to this one
	lanes   [command.LaneCount][]*proposal
	flight  *entry // the entry that is being replicated

	// Commands on their way into the log.
	ticking, running, evicting, expiring bool
	sleeps                               int // number of sleeps until a lease timer
}

// elect makes a replica the leader. As Raft ensures, it has all committed entries, from one
// of the written snapshots or from the log alone. An entry that the last leader had in
// flight and that should survive is committed first.
func (w *world) elect(r *replica) {
	for _, d := range w.deposed {
		if d.replica == r && !d.over {
			d.end() // at the latest now it learns that it was deposed
		}
	}
	if f := w.lost; f != nil {
		w.lost = nil
		w.say("the entry that was in flight is committed all the same")
		w.commit(f)
	}
	state := w.copyOf(w.files[w.changes%len(w.files)])
	if w.failure != "" {
		return
	}
	w.changes++
	l := &leader{w: w, replica: r, copied: state, term: w.changes, clock: w.startClock(r, state.machine), timers: lease.NewTimers()}
	w.leader = l
	w.say("%s leads, term %d, U=%d after %d", r.name, l.term, l.clock.Now().U, l.machine.Stamp().U)
	w.watch.changed(w)
	l.readWalls()
	l.firstTick()
}

// firstDefaults returns the server's defaults for a new cluster, at levels that have them.
func firstDefaults(level uint32) fsm.Defaults {
	if level < command.LevelOf(command.SetDefaults{}) {
		return fsm.Defaults{}
	}
	return fsm.Defaults{LimitSet: true, MaxAttempts: 10, Backoff: &fsm.Backoff{InitialMS: 1000, MaxMS: 3_600_000, Factor: 2_000_000}}
}

// firstTick logs a tick; then the timers begin, and the leader serves.
func (l *leader) firstTick() {
	l.decide(command.Tick{}, func(o outcome) {
		if !o.written() {
			l.wake(retryDuty, l.firstTick)
			return
		}
		l.timers.Start(l.machine)
		l.serving = true
		if level := l.w.profile.level; l.machine.Level() < level {
			l.decide(command.SetLevel{Level: level, Defaults: firstDefaults(level)}, nil)
		}
		l.sleepUntilDue()
		l.duties()
		l.tellU()
	})
}

// end ends the leadership in whatever state it is. Waiting commands were not written; the
// outcome of those in flight is unknown.
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
	if e := l.flight; e != nil {
		l.flight = nil
		e.tell(func(int) outcome { return outcome{code: codeUnknown} })
	}
	for i, waiting := range l.lanes {
		l.lanes[i] = nil
		for _, p := range waiting {
			p.done(outcome{code: codeNoLeader})
		}
	}
}

// decide proposes a decision of the leader. done may be nil.
func (l *leader) decide(c command.Command, done func(outcome)) {
	if done == nil {
		done = func(outcome) {}
	}
	l.propose(&proposal{c: c, sentAt: l.w.now, done: done})
}

// decide lets the leader, if any, propose a decision made elsewhere.
func (w *world) decide(c command.Command) {
	if w.leader != nil && w.knows(c) {
		w.leader.decide(c, nil)
	}
}

// propose queues a command.
func (l *leader) propose(p *proposal) {
	lane := command.LaneOf(p.c)
	if l.over || !l.serving && lane != command.LaneInternal && lane != command.LaneExpire {
		p.done(outcome{code: codeNoLeader})
		return
	}
	l.lanes[lane] = append(l.lanes[lane], p)
	l.pump()
}

// pump sends the waiting commands if nothing is in flight.
func (l *leader) pump() {
	w := l.w
	if l.over || l.flight != nil {
		return
	}
	if d := l.replica.paused(); d > 0 {
		w.after(d, l.pump)
		return
	}
	e := l.pack()
	if e == nil {
		return
	}
	l.flight = e
	d := newDice(w.seed, 1<<40+e.number)
	latency := (1 + d.n(w.profile.entryMS)) * millisecond
	if d.in(w.profile.slowEntry) {
		latency += (100 + d.n(1400)) * millisecond
	}
	if d.in(w.profile.hiccup) && !w.quiet {
		// The proposers are told before the outcome is known.
		w.after(latency/2, func() { e.tell(func(int) outcome { return outcome{code: codeUnknown} }) })
	}
	w.after(latency, func() { l.land(e) })
}

// pack makes an entry of the waiting commands, nil without any.
func (l *leader) pack() *entry {
	w := l.w
	var taken []*proposal
	for i := range l.lanes {
		n := min(len(l.lanes[i]), entryMax-len(taken))
		taken = append(taken, l.lanes[i][:n]...)
		l.lanes[i] = l.lanes[i][n:]
	}
	if len(taken) == 0 {
		return nil
	}
	w.entries++
	e := &entry{leader: l, number: w.entries, proposals: taken, stamp: l.clock.Now(), packedAt: w.now, led: w.watch.led}
	w.watch.calendar(w, e.stamp)
	e.data = command.AppendEntryHeader(make([]byte, 0, 128), e.stamp, len(taken))
	for _, p := range taken {
		e.data = command.AppendCommand(e.data, p.c)
	}
	return e
}

// land commits the entry in flight, unless its leader has been deposed.
func (l *leader) land(e *entry) {
	w := l.w
	if l.over || l.cut || l.flight != e {
		return
	}
	if d := l.replica.paused(); d > 0 {
		w.after(d, func() { l.land(e) })
		return
	}
	l.flight = nil
	w.commit(e)
	applied := l.apply(e)
	if applied == nil {
		return
	}
	if l.serving && len(applied.Leases) > 0 && l.timers.Add(applied.Leases) {
		l.sleepUntilDue()
	}
	e.tell(func(i int) outcome {
		return outcome{string(applied.Results[i].Code), applied.Results[i], applied.Stamp}
	})
	l.pump()
}

// commit finally appends an entry to the log.
func (w *world) commit(e *entry) {
	e.index = 1 + e.number%2
	if n := len(w.log); n > 0 {
		e.index += w.log[n-1].index
	}
	w.log = append(w.log, e)
	w.commands += len(e.proposals)
	if w.out != nil {
		w.say("entry %d of %s is committed: U=%d T=%d", e.index, e.leader.replica.name, e.stamp.U, e.stamp.T)
	}
	w.applyFirst(e)
}

func (l *leader) read(fn func(*fsm.Machine)) { fn(l.machine) }

// wake calls fn after d by the leader's clock, but not while the leader is paused.
func (l *leader) wake(d int64, fn func()) {
	l.w.after(l.replica.real(d), func() { l.awake(fn) })
}

func (l *leader) awake(fn func()) {
	if l.over {
		return
	}
	if d := l.replica.paused(); d > 0 {
		l.w.after(d, func() { l.awake(fn) })
		return
	}
	fn()
}

// onTime calls fn planned after begun, or later if the leader was paused.
func (l *leader) onTime(begun, planned time.Duration, fn func()) {
	if lease.Late(l.replica.Mono()-begun, planned) {
		l.wake(int64(lease.LatePause), fn)
		return
	}
	fn()
}
