package sim

import (
	"github.com/claimq/claimq/fsm"
)

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

// stepsAre tells whether all steps of the parent are so.
func (w *world) stepsAre(parent uint64, so func(fsm.Status) bool) bool {
	for _, s := range w.state.Steps(parent) {
		if !so(s.Status) {
			return false
		}
	}
	return true
}

// over tells whether all steps of the parent have ended.
func (w *world) over(parent uint64) bool { return w.stepsAre(parent, fsm.Status.Ended) }

// anyDone tells whether a step of the parent has completed or failed.
func (w *world) anyDone(parent uint64) bool {
	return !w.stepsAre(parent, func(s fsm.Status) bool { return s != fsm.StatusCompleted && s != fsm.StatusFailed })
}
