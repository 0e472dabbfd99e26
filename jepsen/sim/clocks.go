package sim

import (
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
)

const (
	readWallsInterval = 5 * second       // between a leader's readings of the wall clocks
	hintLatency       = 20 * millisecond // of a hint, at most
)

// startClock starts the clocks of a new leader, from its state and from the hints that the
// answering replicas have.
func (w *world) startClock(r *replica, machine *fsm.Machine) *lease.Clock {
	var hints []lease.Hint
	for _, other := range w.replicas {
		if other.answers() {
			hints = append(hints, other.hint)
		}
	}
	start := machine.Stamp()
	if n := len(w.log); n > 0 {
		start.U = lease.StartU(start, uint64(w.log[n-1].leader.term), uint64(w.changes), hints...)
	}
	return lease.NewClock(r, start)
}

// answers reports whether others can reach the replica.
func (r *replica) answers() bool { return r.paused() == 0 }

// tellU sends U to the other replicas when it is due, and schedules the next check. A
// leader that was cut off and does not know it is still heard: that is worse than in
// reality, and must do no harm.
func (l *leader) tellU() {
	if l.over {
		return
	}
	w, m, now := l.w, l.machine, l.clock.Now()
	if l.serving && lease.HintDue(now, m.Stamp(), m.ClaimCount()+m.FinalizationCount()) {
		hint := lease.Hint{Term: uint64(l.term), U: now.U}
		l.replica.hint = l.replica.hint.Later(hint)
		for i, r := range w.replicas {
			if r != l.replica && r.answers() {
				d := newDice(w.seed, 1<<44+uint64(w.now)*replicaCount+uint64(i))
				w.after(d.n(hintLatency), func() { r.hint = r.hint.Later(hint) })
			}
		}
	}
	begun := l.replica.Mono()
	l.wake(int64(lease.HintInterval), func() { l.onTime(begun, lease.HintInterval, l.tellU) })
}

// readWalls reads the wall clocks of the replicas that answer, and schedules the next
// reading.
func (l *leader) readWalls() {
	if l.over {
		return
	}
	var walls []lease.Wall
	for _, r := range l.w.replicas {
		if r == l.replica || r.answers() && !l.cut {
			walls = append(walls, lease.ReadWall(r.Wall(), l.replica.Mono()))
		}
	}
	l.clock.SetMajority(lease.MajorityWall(walls, replicaCount))
	l.wake(readWallsInterval, l.readWalls)
}

// jumpWalls makes the wall clock of a replica jump, or all of them at once.
func (w *world) jumpWalls(r *replica, d *dice) {
	w.watch.walls(w)
	span := pick(d, 100*millisecond, 3*second, 5*minute, 26*60*minute)
	jump := d.n(2*span) - span
	if d.in(400) {
		for _, r := range w.replicas {
			r.wall += jump
		}
		w.say("all wall clocks jump by %.3f s", float64(jump)/float64(second))
	} else {
		r.wall += jump
		w.say("%s's wall clock is ahead by %.3f s now", r.name, float64(r.wall)/float64(second))
	}
	w.watch.walls(w)
}

// walls records the latest possible calendar: the clock in the middle, and what a leader
// adds to its own.
func (o *watch) walls(w *world) {
	a, b, c := w.replicas[0].Wall(), w.replicas[1].Wall(), w.replicas[2].Wall()
	middle := max(min(a, b), min(max(a, b), c))
	passed := w.now - o.walled
	o.walled = w.now
	// Without a majority the calendar continues at the leader's rate.
	o.mayBe = max(o.mayBe+passed+passed/1000, middle+int64(lease.WallBound)+wallSlack)
}

// wallSlack bounds the drift between the clocks of two replicas until they are read again,
// and the rounding to milliseconds.
const wallSlack = 20 * millisecond

// calendar checks the stamp of an entry that a leader has just made.
func (o *watch) calendar(w *world, stamp fsm.Stamp) {
	o.walls(w)
	if stamp.T*millisecond > o.mayBe {
		w.fail("T is %d ms ahead of what the clocks of two replicas have ever shown: one clock alone has moved it", (stamp.T*millisecond-o.mayBe)/millisecond)
	}
}
