package sim

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

// takeSubmit takes the answer to a submit.
func (a *acks) takeSubmit(w *world, c *command, r reply) {
	for i := range c.tasks {
		s := &r.o.result.Submitted[i]
		if s.Task.Key != c.tasks[i].key {
			w.fail("submit with key %q was answered with a task of key %q", c.tasks[i].key, s.Task.Key)
		}
		a.submitted = append(a.submitted, s.Task.ID)
	}
}

// takeSettle takes the answer to a settle.
func (a *acks) takeSettle(c *command, r reply) {
	if c.verb == verbComplete && !r.o.result.Repeated {
		a.completed = append(a.completed, acknowledged{id: c.id, token: c.token, result: c.result})
	}
}

// check holds what was acknowledged against a replica that has everything.
func (a *acks) check(w *world, r *replica) {
	for _, id := range a.submitted {
		if r.machine.Get(id) == nil && w.watch.tasks[id] != nil {
			w.fail("%s: task %d was acknowledged, never deleted, and is gone", r.name, id)
			return
		}
	}
	for _, c := range a.completed {
		t := r.machine.Get(c.id)
		switch {
		case t == nil && w.watch.tasks[c.id] != nil:
			w.fail("%s: task %d was completed, never deleted, and is gone", r.name, c.id)
			return
		case t == nil:
		case t.Status.String() != completed || t.Token != c.token || string(t.Result)+string(t.ResultPayload) != c.result:
			w.fail("%s: task %d was acknowledged as completed with %q (token %d); it is %s with %q (token %d)",
				r.name, c.id, c.result, c.token, t.Status, string(t.Result)+string(t.ResultPayload), t.Token)
			return
		}
	}
}
