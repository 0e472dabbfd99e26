package sim

import (
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// knows reports whether the cluster's feature level has the command.
func (w *world) knows(c command.Command) bool { return command.LevelOf(c) <= w.state.Level() }

// noted records what an entry gave out, from the state after it.
func (w *world) noted(applied *fsm.Applied) {
	for w.state.Assigned(w.ids + 1) {
		w.ids++
	}
	for _, l := range applied.Leases {
		w.tokens = max(w.tokens, l.Token)
	}
}

// tasks returns all tasks, by id.
func (w *world) tasks() []*fsm.Task {
	var all []*fsm.Task
	for id := uint64(1); id <= w.ids; id++ {
		if t := w.state.Get(id); t != nil {
			all = append(all, t)
		}
	}
	return all
}
