package index

import (
	"cmp"
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// Type holds what can be claimed of one task type, and what holds claims back.
type Type struct {
	Of any // the caller's own data of the type; not used here

	seat    contender         // in the tournament of types
	name    string            // shared by all its tasks
	oldest  uint64            // result of Oldest; set by place
	claimed int64             // number of claimed tasks
	record  *record.TaskType  // nil if it has no settings
	groups  map[string]*group // groups with tasks that have not ended; nil until there is one
	behind  IDs               // pending tasks held back by their group

	// The claimable tasks, regardless of the type's own limits.
	queues []*queue   // by attempts left, ascending; never empty queues
	first  tournament // of the queues
	spare  *queue     // an empty queue to use next
	levels int        // of all queues
	ready  int        // tasks in all queues
	census census     // the same tasks by priority

	rungs []*rung // its queues in Types.ladder, by attempts left
	stale int     // 1-based index in Types.stale; 0 if not in it

	standing standing
	opensAt  int64 // while standing is waits
	added    int   // tasks queued since the type was last placed
	noted    int   // index in Types.noted, if it is there
	bytes    int64 // its part of Types.bytes, without its groups
}

// Name returns the type's name. All its tasks share this string.
func (ts *Type) Name() string { return ts.name }

// Record returns the type's settings and what is saved with them, or nil.
func (ts *Type) Record() *record.TaskType { return ts.record }

// Oldest returns the id of the oldest pending task, or 0.
func (ts *Type) Oldest() uint64 { return ts.oldest }

// Ready returns how many tasks could be claimed if the type itself had no limits.
func (ts *Type) Ready() int { return ts.ready }

// attemptsLeftNone stands for more attempts left than AttemptsLeftMax, or no limit. No
// claim can tell the two apart.
const attemptsLeftNone = command.AttemptsLeftMax + 1

// attemptsLeftOf returns how many attempts the task has left, at most attemptsLeftNone.
func attemptsLeftOf(t *record.Task) int32 {
	if t.MaxAttempts == 0 {
		return attemptsLeftNone
	}
	return max(min(t.MaxAttempts-t.Attempts, attemptsLeftNone), 0)
}

// add queues a claimable task. The type must be placed afterwards.
func (ts *Type) add(t *record.Task) {
	left := attemptsLeftOf(t)
	at, known := ts.findQueue(left)
	if !known {
		q := ts.spare
		if ts.spare = nil; q == nil {
			q = newQueue()
		}
		q.Left = left
		ts.queues = slices.Insert(ts.queues, at, q)
		ts.first.Add(&q.contender)
	}
	q := ts.queues[at]
	ts.levels -= q.Levels()
	q.Add(t.Priority, t.ID)
	ts.levels += q.Levels()
	ts.first.Put(&q.contender, q.First())
	ts.ready++
	ts.census.Add(t.Priority)
	ts.added++
}

// remove takes a queued task out. The type must be placed afterwards.
func (ts *Type) remove(t *record.Task) {
	at, _ := ts.findQueue(attemptsLeftOf(t))
	q := ts.queues[at]
	ts.levels -= q.Levels()
	q.Remove(t.Priority, t.ID)
	ts.levels += q.Levels()
	ts.ready--
	ts.census.Remove(t.Priority)
	if q.Len() > 0 {
		ts.first.Put(&q.contender, q.First())
		return
	}
	ts.first.Remove(&q.contender)
	ts.queues = slices.Delete(ts.queues, at, at+1)
	ts.spare = q
}

// findQueue returns the index of the queue for this number of attempts left, or where to
// insert it.
func (ts *Type) findQueue(left int32) (at int, known bool) {
	if len(ts.queues) == 1 && ts.queues[0].Left == left {
		return 0, true // most types have one queue
	}
	return slices.BinarySearchFunc(ts.queues, left, func(q *queue, left int32) int { return cmp.Compare(q.Left, left) })
}

// queuesAbove returns the queues whose tasks have more than left attempts left.
func (ts *Type) queuesAbove(left int32) []*queue {
	at, _ := ts.findQueue(left + 1)
	return ts.queues[at:]
}

// findOldest computes the result of Oldest.
func (ts *Type) findOldest() uint64 {
	id, _ := ts.first.First(oldest)
	if held, ok := ts.behind.Min(); ok && (id == 0 || held < id) {
		id = held
	}
	return id
}

// Ahead returns how many ready tasks a claim by priority takes before t, which is one of
// them.
func (ts *Type) Ahead(t *record.Task) int64 {
	count := ts.census.Above(t.Priority)
	for _, q := range ts.queues {
		count += int64(q.Below(t.Priority, t.ID))
	}
	return count
}
