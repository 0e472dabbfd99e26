package fsm

import (
	"iter"
	"math"

	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// Bounds of one page of a list.
const (
	pageTasksMax   = 1000
	pageRecordsMax = 10_000  // records looked at
	pageBytesMax   = 8 << 20 // size of its tasks; one task is always allowed
	// Bytes of params and payloads that are read to select by them: for a page, and in one look. One
	// task is always allowed.
	pageReadMax = 64 << 20
	lookReadMax = 1 << 20
)

// ListQuery selects and orders the tasks of a page.
type ListQuery struct {
	record.Filter
	// Failure selects among failed tasks by type and error, which it must not keep; nil = all. With it,
	// Status must be failed.
	Failure func(taskType, err []byte) bool
	// Data selects tasks by params and payload, which it must not keep; nil = all.
	Data       func(params, payload []byte) bool
	Descending bool // by id
	// ByEnd lists the latest end first, using an index of ends. Status must be an end.
	ByEnd bool
	Limit int // 1 to 1,000
	// From is the cursor: the id to start at, 0 = the beginning. If ByEnd, FromAt is when that task
	// ended.
	From   uint64
	FromAt int64
	// A page may be built by several calls so that none holds the lock for long. Each looks at up to
	// Look records, 0 = as many as a page may, and reads up to a megabyte for Data. Looked, Bytes and
	// Read are the sums from earlier calls, and Limit is what they left of the page's limit.
	Look, Looked int
	Bytes, Read  int64
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
	// Sums over this look and earlier ones; Read is of params and payloads that Data was asked about.
	Looked int
	Bytes  int64
	Read   int64
}

// List returns one page, or what one look adds to it. It reads the packed records of tasks that do
// not match without unpacking them.
func (m *Machine) List(q ListQuery) ListPage {
	switch {
	case q.Failure != nil && q.Status != record.StatusFailed:
		return ListPage{}
	case q.Key != "":
		return listByKey(m, q)
	}
	page := ListPage{Looked: q.Looked, Bytes: q.Bytes, Read: q.Read}
	limit, last := min(max(q.Limit, 1), pageTasksMax), pageRecordsMax
	if q.Look > 0 {
		last = min(q.Looked+q.Look, pageRecordsMax)
	}
	records := record.NewRecordFilter(&q.Filter)
	for l := range walkList(m, q) {
		if page.Looked == last || len(page.Tasks) == limit || page.Read-q.Read >= lookReadMax {
			page.Full = page.Looked == pageRecordsMax || len(page.Tasks) == limit || page.Read >= pageReadMax
			endPage(m, &page, &q, l.ID)
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
		}
		if q.Failure != nil && !q.Failure(failureOf(l)) {
			continue
		}
		if q.Data != nil {
			params, payload := dataOf(l)
			page.Read += int64(len(params) + len(payload))
			if !q.Data(params, payload) {
				continue
			}
		}
		if t == nil {
			t = m.tasks.Unpack(l.Packed)
		}
		size := record.BytesOf(t) - int64(len(t.Error)) + int64(record.QuotedBytes(t.Error))
		if page.Bytes > 0 && page.Bytes+size > pageBytesMax {
			page.Full = true
			endPage(m, &page, &q, l.ID)
			break
		}
		page.Bytes += size
		page.Tasks = append(page.Tasks, t)
	}
	return page
}

// endPage sets the cursor so that the next page begins with the task.
func endPage(m *Machine, page *ListPage, q *ListQuery, id uint64) {
	page.Next = id
	if q.ByEnd {
		page.NextAt = m.Get(id).CompletedAt
	}
}

// listByKey lists the one task with the key, if any: of the type, if one is given, else of all tasks.
func listByKey(m *Machine, q ListQuery) ListPage {
	t := m.ByKey(q.Key)
	if q.Type != "" {
		t = m.ByTypeKey(q.Type, q.Key)
	}
	switch {
	case t == nil || !q.Matches(t) || q.Failure != nil && !q.Failure([]byte(t.Type), []byte(t.Error)) || q.Data != nil && !q.Data(t.Params, t.Payload):
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

// walkList yields the tasks from the cursor on: those of one parent or with one kind of end, if q
// asks for that, else all.
func walkList(m *Machine, q ListQuery) iter.Seq[record.Kept[record.Task]] {
	if q.ByEnd {
		from := latestEnd
		if q.From != 0 {
			from = End{At: q.FromAt, ID: q.From}
		}
		return walkEnds(m, q.Status, from)
	}
	if q.ParentID != 0 {
		return walkSteps(m, q)
	}
	return func(yield func(record.Kept[record.Task]) bool) {
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
func walkEnds(m *Machine, s record.Status, from End) iter.Seq[record.Kept[record.Task]] {
	return func(yield func(record.Kept[record.Task]) bool) {
		if !s.Ended() {
			return
		}
		for end := range m.ends.of(s).Latest(from) {
			if !yield(m.tasks.Look(end.ID)) {
				return
			}
		}
	}
}

// walkSteps yields the steps of the parent from the cursor on, or nothing if it does not exist.
func walkSteps(m *Machine, q ListQuery) iter.Seq[record.Kept[record.Task]] {
	return func(yield func(record.Kept[record.Task]) bool) {
		t := m.Get(q.ParentID)
		if t == nil || t.Parent() == nil {
			return
		}
		plan := t.Parent().Plan
		at, by := 0, 1
		if q.Descending {
			at, by = len(plan.Steps)-1, -1
		}
		for ; at >= 0 && at < len(plan.Steps); at += by {
			id := plan.IDOf(t.ID, at)
			if id < q.From && !q.Descending || id > q.From && q.Descending && q.From != 0 {
				continue // it was on a page before
			}
			if !yield(record.Kept[record.Task]{ID: id, Record: m.Get(id)}) {
				return
			}
		}
	}
}

// FailuresQuery selects failed tasks.
type FailuresQuery struct {
	Type  string // "" = all
	After int64  // only those that ended after this time, in ms, by T; 0 = all
	From  End    // where to start; zero value = the latest
	Limit int    // how many tasks to look at, including those of other types
}

// Failures calls add for each failed task that q selects, the latest end first. add must not keep
// taskType and err. next is where to continue; ok is false at the end.
func (m *Machine) Failures(q FailuresQuery, add func(taskType, err []byte, end End)) (next End, ok bool) {
	if q.From == (End{}) {
		q.From = latestEnd
	}
	looked := 0
	for end := range m.ends.failed.Latest(q.From) {
		if q.After != 0 && end.At <= q.After {
			break
		}
		if looked == q.Limit {
			return end, true
		}
		looked++
		if taskType, err := failureOf(m.tasks.Look(end.ID)); q.Type == "" || string(taskType) == q.Type {
			add(taskType, err, end)
		}
	}
	return End{}, false
}

// failureOf returns the type and the error of a failed task.
func failureOf(kept record.Kept[record.Task]) (taskType, err []byte) {
	if t := kept.Record; t != nil {
		return []byte(t.Type), []byte(t.Error)
	}
	for r := (record.Scanner{Rest: kept.Packed}); r.NextUntil(record.FieldError); {
		switch r.Num {
		case record.FieldType:
			taskType = r.Text
		case record.FieldError:
			err = r.Text
		}
	}
	return taskType, err
}

// dataOf returns the params and the payload of a task.
func dataOf(kept record.Kept[record.Task]) (params, payload []byte) {
	if t := kept.Record; t != nil {
		return t.Params, t.Payload
	}
	for r := (record.Scanner{Rest: kept.Packed}); r.NextUntil(record.FieldPayload); {
		switch r.Num {
		case record.FieldParams:
			params = r.Text
		case record.FieldPayload:
			payload = r.Text
		}
	}
	return params, payload
}

// Failed returns how many tasks of the type have failed; "" = of all types.
func (m *Machine) Failed(taskType string) int64 {
	if taskType == "" {
		return m.counts[record.StatusFailed]
	}
	if ts := m.types.named(taskType); ts != nil {
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
	m.claims.holdings.Workers(after, func(w *index.Worker) bool {
		if len(views) >= limit || looked >= workersLookMax {
			return false
		}
		if w.ID > after && w.Held.Len() > 0 {
			views = append(views, workerView(m, w))
			looked += min(w.Held.Len(), workerClaimsMax)
		}
		return true
	})
	return views
}

func workerView(m *Machine, w *index.Worker) WorkerView {
	v := WorkerView{WorkerID: w.ID, Claimed: w.Held.Len()}
	ids := index.Smallest{Most: workerTasksMax}
	m.claims.holdings.Tasks(w.Held, index.ByWorker, workerClaimsMax, func(id uint64) {
		ids.Add(id)
		v.SeenT = max(v.SeenT, m.Get(id).UpdatedAt)
	})
	v.TaskIDs = ids.IDs
	return v
}
