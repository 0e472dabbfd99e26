package sim

import (
	"strconv"

	"github.com/claimq/claimq/fsm/command"
)

// kind is a row of the table: the action of a step.
type kind struct {
	name   string
	always bool  // a seed may turn off the others
	weight int64 // frequency, unless it is turned off
	do     func(w *world, d *dice, name string)
}

// kinds lists all kinds of steps.
var kinds = []kind{
	{"submit", true, 120, (*world).submit},
	{"claim", true, 215, (*world).claimSome},
	{"settle", true, 200, (*world).settleHeld},
	{"meddle", true, 50, (*world).meddle},
	{"die", true, 6, (*world).die},
	{"retry", true, 30, asks(false, (*world).retry)},
	{"delete", true, 25, asks(true, func(w *world, d *dice) command.Command { return command.Delete{ID: w.anyID(d)} })},

	{"cancel", false, 30, asks(true, func(w *world, d *dice) command.Command { return command.Cancel{ID: w.anyID(d)} })},
	{"patch", false, 15, asks(false, (*world).patch)},
	{"type", false, 15, asks(false, (*world).setType)},
	{"batch", false, 35, (*world).batch},
	{"evict", false, 4, fault((*world).evict)},
	{"schedule", false, 15, asks(true, (*world).schedule)},
	{"act", false, 25, asks(false, (*world).act)},
	{"slot", false, 15, (*world).slot},
	{"finalization", false, 100, asks(true, (*world).finalization)},
	{"repeat", false, 25, (*world).repeatOld},
	{"old expiry", false, 12, (*world).proposeOld},

	{"idle", false, 6, fault((*world).idle)},
	{"depose", false, 10, fault((*world).depose)},
	{"pause", false, 6, fault((*world).pause)},
	{"wall", false, 8, fault((*world).jumpWalls)},
	{"restart", false, 8, fault((*world).restart)},
	{"capture", false, 20, fault((*world).capture)},
	{"write", false, 20, fault((*world).write)},
	{"admin", false, 6, fault((*world).admin)},
}

// asks returns a step of one call, which may be repeatable.
func asks(repeatable bool, draw func(*world, *dice) command.Command) func(*world, *dice, string) {
	return func(w *world, d *dice, name string) { w.call(d, name, draw(w, d), repeatable, nil) }
}

// fault returns a step about any replica.
func fault(do func(*world, *replica, *dice)) func(*world, *dice, string) {
	return func(w *world, d *dice, _ string) { do(w, w.replicas[d.n(replicaCount)], d) }
}

// do does one step.
func (w *world) do(s step) {
	d, k := newDice(w.seed, s.seed|1<<63), kinds[s.kind]
	w.say("-- step %d: %s", s.number, k.name)
	k.do(w, d, "c"+strconv.Itoa(s.number))
}
