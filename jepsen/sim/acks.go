package sim

import (
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/jepsen/sim/model"
)

// acks is what clients were told, to be held against the state at the end.
type acks struct {
	submitted []uint64
	completed []acknowledged
	claims    int
}

type acknowledged struct {
	id, token uint64
	result    string
}

// take takes the answer to a command.
func (a *acks) take(w *world, c *model.Command, result *fsm.Result) {
	switch c.Verb {
	case model.VerbSubmit:
		a.takeSubmit(w, c.Tasks, result.Submitted)
	case model.VerbComplete:
		if !result.Repeated { // else another call may have been the first
			a.takeSubmit(w, c.Tasks, result.Submitted)
			a.completed = append(a.completed, acknowledged{id: c.ID, token: c.Token, result: c.Result})
		}
	case model.VerbBatch:
		for i := range result.Results {
			if r := &result.Results[i]; r.Code == "" {
				a.take(w, c.Ops[i], r)
			}
		}
	default:
	}
}

// takeSubmit takes the outcome of submitted tasks.
func (a *acks) takeSubmit(w *world, tasks []model.NewTask, submitted []fsm.Submitted) {
	for i := range submitted {
		s := &submitted[i]
		if s.Refused {
			continue
		}
		if s.Task.Key != tasks[i].Key {
			w.fail("submit with key %q was answered with a task of key %q", tasks[i].Key, s.Task.Key)
		}
		a.submitted = append(a.submitted, s.Task.ID)
		if p := tasks[i].Parent; p != nil && s.Created {
			for place := range p.Steps {
				a.submitted = append(a.submitted, s.Task.ID+1+uint64(place))
			}
		}
	}
}

// check holds what was acknowledged against a replica that has everything.
func (a *acks) check(w *world, r *replica) {
	now := r.machine.Stamp()
	missing := func(id uint64) bool {
		t := w.watch.tasks[id]
		return t != nil && !w.watch.removable(t, now) && r.machine.Get(id) == nil
	}
	for _, id := range a.submitted {
		if missing(id) {
			w.fail("%s: task %d was acknowledged, never deleted, and is gone", r.name, id)
			return
		}
	}
	for _, c := range a.completed {
		t := r.machine.Get(c.id)
		switch {
		case missing(c.id):
			w.fail("%s: task %d was completed, never deleted, and is gone", r.name, c.id)
			return
		case t == nil:
		case t.Status.String() != model.Completed || c.token != 0 && t.Token != c.token || string(t.Result)+string(t.ResultPayload) != c.result:
			w.fail("%s: task %d was acknowledged as completed with %q (token %d); it is %s with %q (token %d)",
				r.name, c.id, c.result, c.token, t.Status, string(t.Result)+string(t.ResultPayload), t.Token)
			return
		}
	}
}
