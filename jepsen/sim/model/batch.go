package model

import (
	"maps"
	"slices"
)

// batch applies the ops in order; an atomic one as a whole or not at all.
func (m *Model) batch(c *Command) Answer {
	var before *Model
	if c.Atomic {
		before = m.clone()
	}
	a := Answer{Results: make([]Answer, len(c.Ops))}
	for i, op := range c.Ops {
		var h Hint
		if i < len(m.hint.Ops) {
			h = m.hint.Ops[i]
		}
		r := m.op(op, &h)
		if c.Atomic && op.Verb == VerbClaimNext && r.Code == "" && len(r.Claims) == 0 {
			r.Code = "no_pending_tasks"
		}
		if c.Atomic && r.Code != "" {
			hint := m.hint
			*m = *before
			m.hint = hint
			return Answer{Code: r.Code, Why: r.Why, Task: r.Task, Gone: r.Gone, Submitted: r.Submitted, FailedOp: i}
		}
		a.Results[i] = r
	}
	return a
}

// clone returns a copy that shares nothing that changes.
func (m *Model) clone() *Model {
	c := *m
	c.Tasks = slices.Clone(m.Tasks)
	c.Keys = maps.Clone(m.Keys)
	c.removed = maps.Clone(m.removed)
	c.Begun = slices.Clone(m.Begun)
	c.Unsure = slices.Clone(m.Unsure)
	c.leaving = slices.Clone(m.leaving)
	c.Types = map[string]*taskType{}
	for name, k := range m.Types {
		same := *k
		c.Types[name] = &same
	}
	c.Requests, c.byToken = map[string]*remembered{}, map[uint64]*remembered{}
	copies := map[*remembered]*remembered{}
	copyOf := func(r *remembered) *remembered {
		if copies[r] == nil {
			same := *r
			copies[r] = &same
		}
		return copies[r]
	}
	for id, r := range m.Requests {
		c.Requests[id] = copyOf(r)
	}
	for token, r := range m.byToken {
		c.byToken[token] = copyOf(r)
	}
	return &c
}
