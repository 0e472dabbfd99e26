package sim

import "slices"

// filter selects tasks; zero fields do not filter.
type filter struct {
	status        string
	kind          string
	worker        string
	labels        []label // each of them
	after, before int64   // when it was created, both exclusive
	of            uint64  // the parent
}

// matches reports whether the filter selects the task.
func (f *filter) matches(t *task) bool {
	for _, l := range f.labels {
		if !slices.Contains(t.options.labels, l) {
			return false
		}
	}
	switch {
	case f.of != 0 && f.of != t.of:
		return false
	case f.status != "" && f.status != t.status, f.kind != "" && f.kind != t.kind, f.worker != "" && f.worker != t.worker:
		return false
	}
	return (f.after == 0 || t.createdAt > f.after) && (f.before == 0 || t.createdAt < f.before)
}

// actedOn is a task that an action changed.
type actedOn struct {
	id    uint64
	after *task // nil: it was deleted
}

// act does the action with those tasks that match still.
func (m *model) act(c *command) answer {
	var a answer
	for _, id := range c.ids {
		t := m.find(id)
		if t == nil || !c.filter.matches(t) {
			continue
		}
		waited := t.status == scheduled
		one := answer{}
		switch c.action {
		case verbRetry:
			one = m.retry(&command{id: id, add: c.add})
			one.repeated = one.repeated && !waited // that is an answer for those who repeat it
		case verbCancel:
			one = m.cancel(id)
		default:
			one = m.delete(id)
		}
		if one.code == "" && !one.repeated {
			a.acted = append(a.acted, actedOn{id, m.find(id)})
		}
	}
	return a
}
