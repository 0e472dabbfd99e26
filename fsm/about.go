package fsm

import (
	"github.com/claimq/claimq/fsm/command"
)

// ReachOf returns how many tasks a command may change, of those that a batch may
// hold and of a batch, which is the sum of its ops: each as often as an op names it.
// Of any other it is 1. What a batch and an entry change is bounded by it.
func (m *Machine) ReachOf(c command.Command) int {
	row, about := command.RowOf(c), command.AboutOf(c)
	switch {
	case about.Ops != nil:
		n := 0
		for _, op := range about.Ops {
			n += m.ReachOf(op)
		}
		return n
	case !row.Op:
		return 1
	case row.Family:
		return about.Changes - 1 + m.Reach(about.ID)
	}
	return about.Changes
}
