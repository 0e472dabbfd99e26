package sim

import (
	"maps"
	"slices"
)

// batch applies the ops in order; an atomic one as a whole or not at all.
func (m *model) batch(c *command) answer {
	var before *model
	if c.atomic {
		before = m.clone()
	}
	a := answer{results: make([]answer, len(c.ops))}
	for i, op := range c.ops {
		var h hint
		if i < len(m.hint.ops) {
			h = m.hint.ops[i]
		}
		r := m.op(op, &h)
		if c.atomic && op.verb == verbClaimNext && r.code == "" && len(r.claims) == 0 {
			r.code = "no_pending_tasks"
		}
		if c.atomic && r.code != "" {
			hint := m.hint
			*m = *before
			m.hint = hint
			return answer{code: r.code, why: r.why, task: r.task, gone: r.gone, failedOp: i}
		}
		a.results[i] = r
	}
	return a
}

// clone returns a copy that shares nothing that changes.
func (m *model) clone() *model {
	c := *m
	c.tasks = slices.Clone(m.tasks)
	c.keys = maps.Clone(m.keys)
	c.removed = maps.Clone(m.removed)
	c.begun = slices.Clone(m.begun)
	c.unsure = slices.Clone(m.unsure)
	c.leaving = slices.Clone(m.leaving)
	c.types = map[string]*taskType{}
	for name, k := range m.types {
		same := *k
		c.types[name] = &same
	}
	c.requests, c.byToken = map[string]*remembered{}, map[uint64]*remembered{}
	copies := map[*remembered]*remembered{}
	copyOf := func(r *remembered) *remembered {
		if copies[r] == nil {
			same := *r
			copies[r] = &same
		}
		return copies[r]
	}
	for id, r := range m.requests {
		c.requests[id] = copyOf(r)
	}
	for token, r := range m.byToken {
		c.byToken[token] = copyOf(r)
	}
	return &c
}
