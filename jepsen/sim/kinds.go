package sim

import (
	"strconv"

	"github.com/claimq/claimq/fsm/command"
)

// class is what kinds of steps have in common, in the order of the table.
type class uint8

const (
	basic   class = iota
	further       // what a seed may turn off, from here on
	faulty        // nothing that a client does
)

// kind is a row of the table: what a step of a run does.
type kind struct {
	name   string
	class  class
	weight int64 // how often it is drawn, before a seed turns some off
	do     func(w *world, d *dice, name string)
}

// kinds are all kinds of steps.
var kinds = []kind{
	{"submit", basic, 120, (*world).submit},
	{"claim", basic, 215, (*world).claimSome},
	{"settle", basic, 200, (*world).settleHeld},
	{"meddle", basic, 50, (*world).meddle},
	{"die", basic, 6, (*world).die},
	{"retry", basic, 30, asks(false, (*world).retry)},
	{"delete", basic, 25, asks(true, func(w *world, d *dice) command.Command { return command.Delete{ID: w.anyID(d)} })},

	{"cancel", further, 30, asks(true, func(w *world, d *dice) command.Command { return command.Cancel{ID: w.anyID(d)} })},
	{"patch", further, 15, asks(false, (*world).patch)},
	{"type", further, 15, asks(false, (*world).setType)},
	{"batch", further, 35, (*world).batch},
	{"evict", further, 4, fault((*world).evict)},
	{"schedule", further, 15, asks(true, (*world).schedule)},
	{"act", further, 25, asks(false, (*world).act)},
	{"slot", further, 15, (*world).slot},
	{"finalization", further, 100, asks(true, (*world).finalization)},
	{"repeat", further, 25, (*world).repeatOld},
	{"old expiry", further, 12, (*world).proposeOld},

	{"idle", faulty, 6, fault((*world).idle)},
	{"depose", faulty, 10, fault((*world).depose)},
	{"pause", faulty, 6, fault((*world).pause)},
	{"wall", faulty, 8, fault((*world).jumpWalls)},
	{"restart", faulty, 8, fault((*world).restart)},
	{"capture", faulty, 20, fault((*world).capture)},
	{"write", faulty, 20, fault((*world).write)},
	{"admin", faulty, 6, fault((*world).admin)},
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
	k.do(w, d, "c"+strconv.Itoa(s.number))
}
