package fsm

import (
	"iter"
	"math"

	"github.com/claimq/claimq/fsm/table"
)

// Bounds of one page of a list.
const (
	pageTasksMax   = 1000
	pageRecordsMax = 10_000  // looked at
	pageBytesMax   = 8 << 20 // of the tasks on it; it has at least one task
)

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
	records := newRecordFilter(&q.Filter)
	for l := range m.walk(q) {
		if looked == pageRecordsMax || len(page.Tasks) == limit {
			page.Next = l.ID
			break
		}
		looked++
		t := l.Record
		switch {
		case t != nil:
			if !q.matches(t) {
				continue
			}
		case !records.matches(l.Packed):
			continue
		default:
			t = m.tasks.Unpack(l.Packed)
		}
		size += bytesOf(t) - int64(len(t.Error)) + int64(quotedBytes(t.Error))
		if size > pageBytesMax && len(page.Tasks) > 0 {
			page.Next = l.ID
			break
		}
		page.Tasks = append(page.Tasks, t)
	}
	return page
}

// listByKey is the list of at most one task, the one that has the key: of the type,
// if one is asked for, else among all tasks.
func (m *Machine) listByKey(q ListQuery) ListPage {
	t := m.ByKey(q.Key)
	if q.Type != "" {
		t = m.ByTypeKey(q.Type, q.Key)
	}
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
func (m *saved) walk(q ListQuery) iter.Seq[table.Kept[Task]] {
	if q.ParentID != 0 {
		return m.walkSteps(q)
	}
	return func(yield func(table.Kept[Task]) bool) {
		switch {
		case !q.Descending:
			m.tasks.Ascend(q.From, yield)
		case q.From == 0:
			m.tasks.Descend(math.MaxUint64, yield)
		default:
			m.tasks.Descend(q.From, yield)
		}
	}
}

// walkSteps yields the steps of the parent from the cursor on, nothing if there is
// no such parent.
func (m *saved) walkSteps(q ListQuery) iter.Seq[table.Kept[Task]] {
	return func(yield func(table.Kept[Task]) bool) {
		t := m.tasks.Get(q.ParentID)
		if t == nil || t.Parent() == nil {
			return
		}
		first, last := t.ID+1, t.ID+uint64(len(t.Parent().Plan.Steps))
		if q.Descending {
			if q.From != 0 {
				last = min(last, q.From)
			}
			for id := last; id >= first; id-- {
				if !yield(table.Kept[Task]{ID: id, Record: m.tasks.Get(id)}) {
					return
				}
			}
			return
		}
		for id := max(first, q.From); id <= last; id++ {
			if !yield(table.Kept[Task]{ID: id, Record: m.tasks.Get(id)}) {
				return
			}
		}
	}
}
