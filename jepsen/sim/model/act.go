package model

import "slices"

// Filter selects tasks; zero fields do not filter.
type Filter struct {
	Status        string
	Kind          string
	Worker        string
	Labels        []Label // each of them
	After, Before int64   // when it was created, both exclusive
	Of            uint64  // the parent
}

// Matches reports whether the filter selects the task.
func (f *Filter) Matches(t *Task) bool {
	for _, l := range f.Labels {
		if !slices.Contains(t.Options.Labels, l) {
			return false
		}
	}
	switch {
	case f.Of != 0 && f.Of != t.Of:
		return false
	case f.Status != "" && f.Status != t.Status, f.Kind != "" && f.Kind != t.Kind, f.Worker != "" && f.Worker != t.Worker:
		return false
	}
	return (f.After == 0 || t.CreatedAt > f.After) && (f.Before == 0 || t.CreatedAt < f.Before)
}

// ActedOn is a task that an action changed.
type ActedOn struct {
	ID    uint64
	After *Task // nil: it was deleted
}

// act does the action with those tasks that match still.
func (m *Model) act(c *Command) Answer {
	var a Answer
	for _, id := range c.IDs {
		t := m.Find(id)
		if t == nil || !c.Filter.Matches(t) {
			continue
		}
		waited := t.Status == Scheduled
		one := Answer{}
		switch c.Action {
		case VerbRetry:
			one = m.retry(&Command{ID: id, Add: c.Add})
			one.Repeated = one.Repeated && !waited // that is an answer for those who repeat it
		case VerbCancel:
			one = m.cancel(id)
		default:
			one = m.delete(id)
		}
		if one.Code == "" && !one.Repeated {
			a.Acted = append(a.Acted, ActedOn{id, m.Find(id)})
		}
	}
	return a
}
