package fsm

import (
	"iter"
	"math"

	"github.com/claimq/claimq/fsm/errorgroup"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/table"
)

// Bounds of one page of a list.
const (
	pageTasksMax   = 1000
	pageRecordsMax = 10_000  // records looked at
	pageBytesMax   = 8 << 20 // size of its tasks; one task is always allowed
)

// ListQuery selects and orders the tasks of a page.
type ListQuery struct {
	record.Filter
	Descending bool // by id
	// ByEnd lists the latest end first, using an index of ends. Status must be an end.
	ByEnd bool
	Limit int // 1 to 1,000
	// From is the cursor: the id to start at, 0 = the beginning. If ByEnd, FromAt is when that task
	// ended.
	From   uint64
	FromAt int64
	// A page may be built by several calls so that none holds the lock for long. Each looks at up to
	// Look records, 0 = as many as a page may. Looked and Bytes are the sums from earlier calls, and
	// Limit is the rest of it.
	Look, Looked int
	Bytes        int64
}

// End is a place in the order of ends: which task ended, and when.
type End = index.Moment

// ListPage is one page of a list.
type ListPage struct {
	Tasks []*record.Task // read-only, valid under the lock
	// Next is the cursor of the next page, or 0. Next may be set on a short page, because a page
	// looks at no more than 10,000 records and 8 MiB.
	Next   uint64
	NextAt int64 // if ByEnd: when that task ended
	Full   bool  // with Next: another look would add nothing to this page
	// Sums over this look and earlier ones.
	Looked int
	Bytes  int64
}

// List returns one page.
func (m *Machine) List(q ListQuery) ListPage {
	if q.Key != "" {
		return m.listByKey(q)
	}
	page := ListPage{Looked: q.Looked, Bytes: q.Bytes}
	limit, last := min(max(q.Limit, 1), pageTasksMax), pageRecordsMax
	if q.Look > 0 {
		last = min(q.Looked+q.Look, pageRecordsMax)
	}
	records := record.NewRecordFilter(&q.Filter)
	for l := range m.walk(q) {
		if page.Looked == last || len(page.Tasks) == limit {
			page.Full = page.Looked == pageRecordsMax || len(page.Tasks) == limit
			m.endPage(&page, &q, l.ID)
			break
		}
		page.Looked++
		t := l.Record
		switch {
		case t != nil:
			if !q.Matches(t) {
				continue
			}
		case !records.Matches(l.Packed):
			continue
		default:
			t = m.tasks.Unpack(l.Packed)
		}
		size := record.BytesOf(t) - int64(len(t.Error)) + int64(record.QuotedBytes(t.Error))
		if page.Bytes > 0 && page.Bytes+size > pageBytesMax {
			page.Full = true
			m.endPage(&page, &q, l.ID)
			break
		}
		page.Bytes += size
		page.Tasks = append(page.Tasks, t)
	}
	return page
}

// endPage sets the cursor so that the next page begins with the task.
func (m *saved) endPage(page *ListPage, q *ListQuery, id uint64) {
	page.Next = id
	if q.ByEnd {
		page.NextAt = m.Get(id).CompletedAt
	}
}

// listByKey lists the one task with the key, if any: of the type, if one is given, else of all tasks.
func (m *Machine) listByKey(q ListQuery) ListPage {
	t := m.ByKey(q.Key)
	if q.Type != "" {
		t = m.ByTypeKey(q.Type, q.Key)
	}
	switch {
	case t == nil || !q.Matches(t):
		return ListPage{}
	case q.From != 0 && q.ByEnd: // a page by key has no next page
		return ListPage{}
	case q.From != 0 && !q.Descending && t.ID < q.From:
		return ListPage{}
	case q.From != 0 && q.Descending && t.ID > q.From:
		return ListPage{}
	}
	return ListPage{Tasks: []*record.Task{t}}
}

// walk yields the tasks from the cursor on, restricted to one parent's steps or to one kind of end if
// q asks for that.
func (m *Machine) walk(q ListQuery) iter.Seq[table.Kept[record.Task]] {
	if q.ByEnd {
		from := latestEnd
		if q.From != 0 {
			from = End{At: q.FromAt, ID: q.From}
		}
		return m.walkEnds(q.Status, from)
	}
	if q.ParentID != 0 {
		return m.walkSteps(q)
	}
	return func(yield func(table.Kept[record.Task]) bool) {
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

// latestEnd is after all ends.
var latestEnd = End{At: math.MaxInt64, ID: math.MaxUint64}

// walkEnds yields the tasks that ended with the status, from from backwards, latest first.
func (m *Machine) walkEnds(s record.Status, from End) iter.Seq[table.Kept[record.Task]] {
	return func(yield func(table.Kept[record.Task]) bool) {
		if !s.Ended() {
			return
		}
		for end := range m.ends(s).Latest(from) {
			if !yield(m.tasks.Look(end.ID)) {
				return
			}
		}
	}
}

// walkSteps yields the steps of the parent from the cursor on, or nothing if it does not exist.
func (m *saved) walkSteps(q ListQuery) iter.Seq[table.Kept[record.Task]] {
	return func(yield func(table.Kept[record.Task]) bool) {
		t := m.Get(q.ParentID)
		if t == nil || t.Parent() == nil {
			return
		}
		first, last := t.ID+1, t.ID+uint64(len(t.Parent().Plan.Steps))
		if q.Descending {
			if q.From != 0 {
				last = min(last, q.From)
			}
			for id := last; id >= first; id-- {
				if !yield(table.Kept[record.Task]{ID: id, Record: m.Get(id)}) {
					return
				}
			}
			return
		}
		for id := max(first, q.From); id <= last; id++ {
			if !yield(table.Kept[record.Task]{ID: id, Record: m.Get(id)}) {
				return
			}
		}
	}
}

// FailuresQuery selects failed tasks.
type FailuresQuery struct {
	Type  string // "" = all
	From  End    // where to start; zero value = the latest
	Limit int    // how many tasks to look at, including those of other types
	// See reports whether the task's error may be shown; otherwise it counts as empty. nil allows
	// all.
	See func(id uint64) bool
}

// add adds a failed task to groups if its type matches.
func (q *FailuresQuery) add(groups *errorgroup.Groups, taskType, failure []byte, end End) {
	if q.Type != "" && string(taskType) != q.Type {
		return
	}
	if q.See != nil && !q.See(end.ID) {
		failure = nil
	}
	groups.Add(taskType, failure, end.ID, end.At)
}

// Failures adds the failed tasks that q selects to groups, the latest end first. next is where to
// continue; ok is false at the end.
func (m *Machine) Failures(groups *errorgroup.Groups, q FailuresQuery) (next End, ok bool) {
	if q.From == (End{}) {
		q.From = latestEnd
	}
	looked := 0
	for end := range m.failed.Latest(q.From) {
		if looked == q.Limit {
			return end, true
		}
		looked++
		kept := m.tasks.Look(end.ID)
		if t := kept.Record; t != nil {
			q.add(groups, []byte(t.Type), []byte(t.Error), end)
			continue
		}
		var name, failure []byte
		for r := (record.Scanner{Rest: kept.Packed}); r.NextUntil(record.FieldError); {
			switch r.Num {
			case record.FieldType:
				name = r.Text
			case record.FieldError:
				failure = r.Text
			}
		}
		q.add(groups, name, failure, end)
	}
	return End{}, false
}

// Failed returns how many tasks of the type have failed; "" = of all types.
func (m *Machine) Failed(taskType string) int64 {
	if taskType == "" {
		return m.counts[record.StatusFailed]
	}
	if ts := m.typeNamed(taskType); ts != nil {
		return ts.counts[record.StatusFailed]
	}
	return 0
}

// WorkerView is the state's view of a worker that holds claims.
type WorkerView struct {
	WorkerID string
	Claimed  int      // number of claims
	TaskIDs  []uint64 // the first workerTasksMax, ascending
	SeenT    int64    // the latest change of a claimed task, by T
}

const (
	// workerTasksMax bounds WorkerView.TaskIDs.
	workerTasksMax = 100
	// workerClaimsMax bounds how many claims of one worker are looked at: the newest ones. TaskIDs
	// and SeenT are based on those.
	workerClaimsMax = 10_000
	// workersLookMax is the number of claims after which Workers stops.
	workersLookMax = 20_000
)

// Workers returns at most limit workers that hold claims, in the order of their ids, starting above
// after. It may return fewer, because it looks at a bounded number of claims; only an empty result
// means the end.
func (m *Machine) Workers(after string, limit int) []WorkerView {
	var views []WorkerView
	looked := 0
	m.holdings.Workers(after, func(w *index.Worker) bool {
		if len(views) >= limit || looked >= workersLookMax {
			return false
		}
		if w.ID > after && w.Held.Len() > 0 {
			views = append(views, m.workerView(w))
			looked += min(w.Held.Len(), workerClaimsMax)
		}
		return true
	})
	return views
}

func (m *Machine) workerView(w *index.Worker) WorkerView {
	v := WorkerView{WorkerID: w.ID, Claimed: w.Held.Len()}
	ids := index.Smallest{Most: workerTasksMax}
	m.holdings.Tasks(w.Held, index.ByWorker, workerClaimsMax, func(id uint64) {
		ids.Add(id)
		v.SeenT = max(v.SeenT, m.Get(id).UpdatedAt)
	})
	v.TaskIDs = ids.IDs
	return v
}
