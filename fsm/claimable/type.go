package claimable

import (
	"cmp"
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/sorted"
)

// Type is what can be claimed of one task type, and what keeps claims from it.
type Type struct {
	Of any // what is kept of the type beside, for whoever asks; nothing here looks at it

	seat    index.Contender   // among the types
	name    string            // shared by all its tasks
	oldest  uint64            // what Oldest returns; set by place
	claimed int64             // its tasks that are claimed
	record  *record.TaskType  // nil if it has no settings
	groups  map[string]*group // those with tasks that have not ended; nil if there never was one
	behind  sorted.IDs        // pending tasks that their group holds back

	// Its claimable tasks, as far as the type does not forbid it.
	queues []*index.Queue   // by attempts left, ascending; none is empty
	first  index.Tournament // of the queues
	spare  *index.Queue     // an empty one, for the next number of attempts left
	levels int              // of all queues
	ready  int              // tasks in all queues
	census index.Census     // the same, by priority

	rungs []*index.Rung // its queues in Types.ladder, by attempts left
	stale int           // its place in Types.stale, from 1; 0 = it is not there

	standing standing
	opensAt  int64 // while it waits
	added    int   // tasks added to the queues since the type was placed
	noted    int   // where in Types.noted it is, if it is there
	bytes    int64 // what of Types.bytes is of it, but for its groups
}

// Name returns the type's name, the one string that all its tasks share.
func (ts *Type) Name() string { return ts.name }

// Record returns the type's settings and what is saved with them, nil if it has none.
func (ts *Type) Record() *record.TaskType { return ts.record }

// Oldest returns the id of the pending task that was submitted first, 0 if none is
// pending.
func (ts *Type) Oldest() uint64 { return ts.oldest }

// Ready returns how many tasks could be claimed, did the type not forbid it.
func (ts *Type) Ready() int { return ts.ready }

// attemptsLeftNone is the number of attempts left that stands for more than
// AttemptsLeftMax, and for no limit: no claim tells these apart.
const attemptsLeftNone = command.AttemptsLeftMax + 1

// attemptsLeftOf returns how many attempts the task has left, at most
// attemptsLeftNone.
func attemptsLeftOf(t *record.Task) int32 {
	if t.MaxAttempts == 0 {
		return attemptsLeftNone
	}
	return max(min(t.MaxAttempts-t.Attempts, attemptsLeftNone), 0)
}

// add adds a claimable task that is not there yet. The type must be placed
// afterwards.
func (ts *Type) add(t *record.Task) {
	left := attemptsLeftOf(t)
	at, known := ts.findQueue(left)
	if !known {
		q := ts.spare
		if ts.spare = nil; q == nil {
			q = index.NewQueue()
		}
		q.Left = left
		ts.queues = slices.Insert(ts.queues, at, q)
		ts.first.Add(&q.Contender)
	}
	q := ts.queues[at]
	ts.levels -= q.Levels()
	q.Add(t.Priority, t.ID)
	ts.levels += q.Levels()
	ts.first.Put(&q.Contender, q.First())
	ts.ready++
	ts.census.Add(t.Priority)
	ts.added++
}

// remove removes a claimable task that is there. The type must be placed
// afterwards.
func (ts *Type) remove(t *record.Task) {
	at, _ := ts.findQueue(attemptsLeftOf(t))
	q := ts.queues[at]
	ts.levels -= q.Levels()
	q.Remove(t.Priority, t.ID)
	ts.levels += q.Levels()
	ts.ready--
	ts.census.Remove(t.Priority)
	if q.Len() > 0 {
		ts.first.Put(&q.Contender, q.First())
		return
	}
	ts.first.Remove(&q.Contender)
	ts.queues = slices.Delete(ts.queues, at, at+1)
	ts.spare = q
}

// findQueue returns the place of the queue of the tasks with that many
// attempts left, or where it would have to be.
func (ts *Type) findQueue(left int32) (at int, known bool) {
	if len(ts.queues) == 1 && ts.queues[0].Left == left {
		return 0, true // most types have one
	}
	return slices.BinarySearchFunc(ts.queues, left, func(q *index.Queue, left int32) int { return cmp.Compare(q.Left, left) })
}

// queuesAbove returns the queues of the tasks with more than that many
// attempts left.
func (ts *Type) queuesAbove(left int32) []*index.Queue {
	at, _ := ts.findQueue(left + 1)
	return ts.queues[at:]
}

// findOldest returns what Oldest does.
func (ts *Type) findOldest() uint64 {
	id, _ := ts.first.First(index.Oldest)
	if held, ok := ts.behind.Min(); ok && (id == 0 || held < id) {
		id = held
	}
	return id
}

// Ahead returns how many tasks that could be claimed, did the type not forbid it, a claim
// by priority takes before the task, which is one of them.
func (ts *Type) Ahead(t *record.Task) int64 {
	count := ts.census.Above(t.Priority)
	for _, q := range ts.queues {
		count += int64(q.Below(t.Priority, t.ID))
	}
	return count
}
