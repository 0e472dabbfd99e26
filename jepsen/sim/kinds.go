package sim

import (
	"strconv"

	"github.com/claimq/claimq/fsm/command"
)

// Feature levels: what is drawn is what the cluster's knows.
const (
	levelLife  = 2
	levelSight = 3
	levelSteps = 4
	levelActs  = 5
)

// class is what kinds of steps have in common, in the order of the table.
type class uint8

const (
	basic   class = iota
	further       // what a seed may turn off, from here on
	family        // about parents
	again
	faulty // nothing that a client does
)

// kind is a row of the table: what a step of a run does.
type kind struct {
	name   string
	class  class
	weight int64  // how often it is drawn, before a seed turns some off
	level  uint32 // the cluster must have; else nothing is done
	do     func(w *world, d *dice, name string)
}

// kinds are all kinds of steps.
var kinds = []kind{
	{"submit", basic, 90, 0, submits(1, true)},
	{"submit many", basic, 20, 0, submits(0, true)},
	{"submit without key", basic, 10, 0, submits(1, false)},
	{"claim", basic, 190, 0, (*world).claimSome},
	{"claim task", basic, 25, 0, func(w *world, d *dice, name string) { w.claim(true, d, name, 0) }},
	{"complete", basic, 70, 0, settles(complete)},
	{"fail", basic, 25, 0, settles(fail)},
	{"extend", basic, 50, 0, settles(extend)},
	{"release", basic, 20, 0, settles(release)},
	{"late settle", basic, 25, 0, (*world).settleLate},
	{"meddle", basic, 25, 0, (*world).meddle},
	{"die", basic, 6, 0, (*world).die},
	{"retry", basic, 20, 0, asks(false, (*world).retry)},
	{"delete", basic, 25, 0, asks(true, func(w *world, d *dice) command.Command { return command.Delete{ID: w.anyID(d)} })},

	{"chain", further, 45, 0, settles(chain)},
	{"cancel", further, 20, 0, asks(true, func(w *world, d *dice) command.Command { return command.Cancel{ID: w.anyID(d)} })},
	{"patch", further, 15, 0, asks(false, func(w *world, d *dice) command.Command { return w.patch(d, w.anyID(d)) })},
	{"type", further, 15, 0, asks(false, (*world).setTypeOrDefaults)},
	{"batch", further, 35, 0, (*world).batch},
	{"evict", further, 4, 0, fault((*world).evict)},
	{"schedule", further, 15, levelSight, (*world).schedule},
	{"act", further, 25, levelSight, asks(false, (*world).act)},
	{"slot", further, 15, levelSight, (*world).slot},

	{"parent", family, 35, levelSteps, (*world).parent},
	{"work", family, 110, levelSteps, func(w *world, d *dice, name string) { w.work(d, w.worker(d), name, 2+int(d.n(10))) }},
	{"finalize", family, 80, levelSteps, (*world).finalize},
	{"finalization over", family, 20, levelSteps, (*world).finalizationOver},
	{"revise", family, 40, levelSteps, (*world).revise},

	{"repeat", again, 25, 0, (*world).repeatOld},
	{"old expiry", again, 12, 0, (*world).proposeOld},

	{"idle", faulty, 6, 0, fault((*world).idle)},
	{"depose", faulty, 10, 0, fault((*world).depose)},
	{"pause", faulty, 6, 0, fault((*world).pause)},
	{"wall", faulty, 8, 0, fault((*world).jumpWalls)},
	{"restart", faulty, 8, 0, fault((*world).restart)},
	{"install", faulty, 14, 0, fault((*world).install)},
	{"capture", faulty, 8, 0, fault(func(_ *world, r *replica, _ *dice) { r.capture() })},
	{"write", faulty, 10, 0, fault((*world).writeAll)},
	{"lag", faulty, 16, 0, fault((*world).lag)},
	{"skew", faulty, 2, 0, fault((*world).skew)},
	{"upgrade", faulty, 3, 0, fault(func(w *world, _ *replica, _ *dice) { w.upgrade() })},
	{"admin", faulty, 6, 0, fault((*world).admin)},
}

// asks is a step of one call, which may be repeated or not.
func asks(repeatable bool, draw func(*world, *dice) command.Command) func(*world, *dice, string) {
	return func(w *world, d *dice, name string) { w.call(d, name, draw(w, d), repeatable, nil) }
}

// fault is a step about a replica, any of them.
func fault(do func(*world, *replica, *dice)) func(*world, *dice, string) {
	return func(w *world, d *dice, _ string) { do(w, w.replicas[d.n(replicaCount)], d) }
}

// do does one step.
func (w *world) do(s step) {
	d, k := newDice(w.seed, s.seed|1<<63), kinds[s.kind]
	if k.class == faulty && w.tracing() {
		w.say("-- step %d: %s", s.number, k.name)
	}
	w.mix(uint64(s.number), uint64(s.kind), uint64(w.now))
	if w.knows(k.level) {
		k.do(w, d, "c"+strconv.Itoa(s.number))
	}
}
