package index

import (
	"cmp"
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// stock holds the claimable tasks of one share, or those of a type without share key.
type stock struct {
	key    string     // share key of the tasks, or ""
	queues []*queue   // by attempts left, ascending; never empty queues
	first  tournament // of the queues; a type's shares are in its tournament, too
	spare  *queue     // an empty queue to use next
	levels int        // of all queues
	count  int        // tasks in all queues
	census census     // the same tasks by priority
	closed bool       // none of them can be claimed, because the share has as many claims as it may have

	slot    int32         // in its type's turns
	weight  int32         // 0 = the default
	tags    []tag         // one for each priority of its tasks, if the type is fair
	tagAt   map[int32]int // where they are by priority; nil if they are few
	touched []int32       // priorities of which a tag may have to begin or end
}

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

// add adds a claimable task.
func (s *stock) add(t *record.Task) {
	left := attemptsLeftOf(t)
	at, known := s.findQueue(left)
	if !known {
		q := s.spare
		if s.spare = nil; q == nil {
			q = newQueue()
		}
		q.Left, q.Key = left, s.key
		s.queues = slices.Insert(s.queues, at, q)
		s.first.Add(&q.contender)
	}
	q := s.queues[at]
	s.levels -= q.Levels()
	q.Add(t.Priority, t.ID)
	s.levels += q.Levels()
	s.first.Put(&q.contender, q.First())
	s.count++
	s.census.Add(t.Priority)
}

// remove takes a task out.
func (s *stock) remove(t *record.Task) {
	at, _ := s.findQueue(attemptsLeftOf(t))
	q := s.queues[at]
	s.levels -= q.Levels()
	q.Remove(t.Priority, t.ID)
	s.levels += q.Levels()
	s.count--
	s.census.Remove(t.Priority)
	if q.Len() > 0 {
		s.first.Put(&q.contender, q.First())
		return
	}
	s.first.Remove(&q.contender)
	s.queues = slices.Delete(s.queues, at, at+1)
	s.spare = q
}

// findQueue returns the index of the queue for this number of attempts left, or where to
// insert it.
func (s *stock) findQueue(left int32) (at int, known bool) {
	if len(s.queues) == 1 && s.queues[0].Left == left {
		return 0, true // most have one queue
	}
	return slices.BinarySearchFunc(s.queues, left, func(q *queue, left int32) int { return cmp.Compare(q.Left, left) })
}

// above returns the queues whose tasks have more than left attempts left.
func (s *stock) above(left int32) []*queue {
	at, _ := s.findQueue(left + 1)
	return s.queues[at:]
}

// ahead returns how many tasks a claim by priority takes before t, which is one of them.
func (s *stock) ahead(t *record.Task) int64 {
	count := s.census.Above(t.Priority)
	for _, q := range s.queues {
		count += int64(q.Below(t.Priority, t.ID))
	}
	return count
}
