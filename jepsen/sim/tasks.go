package sim

import (
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// knows tells whether the cluster's feature level is one that has the command.
func (w *world) knows(c command.Command) bool { return command.LevelOf(c) <= w.state.Level() }

// noted takes from the state, as an entry has left it, what is given out.
func (w *world) noted(applied *fsm.Applied) {
	for w.state.Assigned(w.ids + 1) {
		w.ids++
	}
	for _, l := range applied.Leases {
		w.tokens = max(w.tokens, l.Token)
	}
}

// tasks returns the tasks that there are, by id.
func (w *world) tasks() []*fsm.Task {
	var all []*fsm.Task
	for id := uint64(1); id <= w.ids; id++ {
		if t := w.state.Get(id); t != nil {
			all = append(all, t)
		}
	}
	return all
}
