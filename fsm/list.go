package fsm

import (
	"iter"
	"math"
)

// Bounds of one page of a list.
const (
	pageTasksMax   = 1000
	pageRecordsMax = 10_000  // looked at
	pageBytesMax   = 8 << 20 // of the tasks on it; it has at least one task
)

// Filter selects tasks. Zero fields do not filter.
type Filter struct {
	Status        Status
	Type          string
	WorkerID      string
	Key           string
	ParentID      uint64
	Labels        []Label // each of them, sorted by name
	CreatedAfter  int64   // ms, exclusive
	CreatedBefore int64   // ms, exclusive
}

// ListQuery selects and orders the tasks of a page.
type ListQuery struct {
	Filter
	Descending bool // by id
	Limit      int  // 1 to 1,000
	// From is the cursor: the first id to look at, 0 = the start.
	From uint64
}

// ListPage is one page of a list.
type ListPage struct {
	Tasks []*Task // read-only, valid under the lock
	// Next is the cursor of the next page, 0 if there is no more. A page looks
	// at 10,000 records or 8 MiB at most, so it may be short with Next set.
	Next uint64
}

// List returns one page.
func (m *Machine) List(q ListQuery) ListPage {
	if q.Key != "" {
		return m.listByKey(q)
	}
	var (
		page   ListPage
		limit  = min(max(q.Limit, 1), pageTasksMax)
		looked int
		size   int64
	)
	for id, t := range m.walk(q) {
		if looked == pageRecordsMax || len(page.Tasks) == limit {
			page.Next = id
			break
		}
		looked++
		if !q.matches(t) {
			continue
		}
		size += bytesOf(t) - int64(len(t.Error)) + int64(quotedBytes(t.Error))
		if size > pageBytesMax && len(page.Tasks) > 0 {
			page.Next = id
			break
		}
		page.Tasks = append(page.Tasks, t)
	}
	return page
}

// listByKey is the list of at most one task, the one that has the key.
func (m *Machine) listByKey(q ListQuery) ListPage {
	t := m.ByKey(q.Key)
	switch {
	case t == nil || !q.matches(t):
		return ListPage{}
	case q.From != 0 && !q.Descending && t.ID < q.From:
		return ListPage{}
	case q.From != 0 && q.Descending && t.ID > q.From:
		return ListPage{}
	}
	return ListPage{Tasks: []*Task{t}}
}

// walk yields the tasks from the cursor on; if those of one parent are asked for,
// no others.
func (m *Machine) walk(q ListQuery) iter.Seq2[uint64, *Task] {
	if q.ParentID != 0 {
		return m.walkSteps(q)
	}
	if !q.Descending {
		return m.tasks.ascend(q.From)
	}
	from := q.From
	if from == 0 {
		from = math.MaxUint64
	}
	return m.tasks.descend(from)
}

// matches reports whether the filter selects the task.
func (q *Filter) matches(t *Task) bool {
	return (q.Status == 0 || t.Status == q.Status) &&
		(q.Type == "" || t.Type == q.Type) &&
		(q.WorkerID == "" || t.WorkerID == q.WorkerID) &&
		(q.CreatedAfter == 0 || t.CreatedAt > q.CreatedAfter) &&
		(q.CreatedBefore == 0 || t.CreatedAt < q.CreatedBefore) &&
		(q.Key == "" || t.Key == q.Key && holdsKey(t)) &&
		(len(q.Labels) == 0 || hasLabels(t.options().Labels, q.Labels)) &&
		(q.ParentID == 0 || t.Step() != nil && t.Step().ParentID == q.ParentID)
}

// hasLabels reports whether each of want is among all. Both are sorted by name;
// one that want has twice counts as one, and no task has two values of a name.
func hasLabels(all, want []Label) bool {
	for _, w := range want {
		for len(all) > 0 && all[0].Name < w.Name {
			all = all[1:]
		}
		if len(all) == 0 || all[0] != w {
			return false
		}
	}
	return true
}

// walkSteps yields the steps of the parent from the cursor on, nothing if there is
// no such parent.
func (m *Machine) walkSteps(q ListQuery) iter.Seq2[uint64, *Task] {
	return func(yield func(uint64, *Task) bool) {
		t := m.tasks.get(q.ParentID)
		if t == nil || t.Parent() == nil {
			return
		}
		first, last := t.ID+1, t.ID+uint64(len(t.Parent().Plan.Steps))
		if q.Descending {
			if q.From != 0 {
				last = min(last, q.From)
			}
			for id := last; id >= first; id-- {
				if !yield(id, m.tasks.get(id)) {
					return
				}
			}
			return
		}
		for id := max(first, q.From); id <= last; id++ {
			if !yield(id, m.tasks.get(id)) {
				return
			}
		}
	}
}
