package index

import (
	"cmp"
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// stock holds the claimable tasks of one share, or those of a type without share key.
type stock struct {
	slot               // in its type's ranking
	place  int32       // in its type's turns, where stand says
	weight int32       // 0 = the default
	stand  stand       // where its type's turns keep it
	closed bool        // none of them can be claimed, because of a pause or limit of the share
	key    string      // share key of the tasks, or ""
	queues []*queue    // by attempts left, ascending; none is empty
	room   [1]*queue   // memory for queues: most have one
	one    queue       // one of the queues
	first  *tournament // of the queues; nil as long as there has been only one
	spare  *queue      // an empty queue to use next
	census *census     // the same tasks by priority; nil as long as they have one
	levels int         // of all queues
	count  int         // tasks in all queues

	share    *share        // nil for the tasks without share key
	tags     []tag         // one for each priority of its tasks, if the type is fair
	tag      [1]tag        // memory for tags: most have one
	tagAt    map[int32]int // where they are by priority; nil if they are few
	touched  []int32       // priorities whose tag may have to begin or end
	touching [2]int32      // memory for touched: most have one
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

// rank returns the rank of its first task, unless it is closed.
func (s *stock) rank(o order) rank {
	if s.closed {
		return noRank
	}
	return s.firstOf(o)
}

// add adds a claimable task.
func (s *stock) add(t *record.Task) {
	left := attemptsLeftOf(t)
	at, known := s.findQueue(left)
	if !known {
		s.addQueue(at, left)
	}
	q := s.queues[at]
	s.levels -= q.levelCount()
	q.add(t.Priority, t.ID)
	s.levels += q.levelCount()
	s.playQueue(q)
	s.count++
	switch {
	case s.census != nil:
		s.census.add(t.Priority)
	case s.levels > 1:
		s.census = &census{}
		for _, q := range s.queues {
			q.eachLevel(func(l *level) {
				for range l.ids.count {
					s.census.add(l.priority)
				}
			})
		}
	}
}

// addQueue adds an empty queue.
func (s *stock) addQueue(at int, left int32) {
	q := s.spare
	switch s.spare = nil; {
	case q != nil:
	case s.one.of == nil:
		q = &s.one
	default:
		q = &queue{}
	}
	q.left, q.of = left, s
	if s.queues == nil {
		s.queues = s.room[:0]
	}
	s.queues = slices.Insert(s.queues, at, q)
	switch {
	case s.first != nil:
		s.first.add(q)
	case len(s.queues) > 1:
		s.first = new(newTournament())
		for _, q := range s.queues {
			s.first.add(q)
			s.playQueue(q)
		}
	}
}

// playQueue updates the queue's ranks among several.
func (s *stock) playQueue(q *queue) {
	if s.first != nil {
		its := q.top()
		s.first.put(q.slot, &its)
	}
}

// firstOf returns the rank of its first task in the order, even while it is closed.
func (s *stock) firstOf(o order) rank {
	switch {
	case s.first != nil:
		return s.first.first()[o]
	case len(s.queues) == 0:
		return noRank
	}
	return s.queues[0].rank(o)
}

// remove takes a task out.
func (s *stock) remove(t *record.Task) {
	at, _ := s.findQueue(attemptsLeftOf(t))
	q := s.queues[at]
	s.levels -= q.levelCount()
	q.remove(t.Priority, t.ID)
	s.levels += q.levelCount()
	s.count--
	if s.census != nil {
		s.census.remove(t.Priority)
	}
	if q.len() > 0 {
		s.playQueue(q)
		return
	}
	if s.first != nil {
		s.first.remove(q)
	}
	s.queues = slices.Delete(s.queues, at, at+1)
	s.spare = q
}

// findQueue returns the index of the queue for this number of attempts left, or where to
// insert it.
func (s *stock) findQueue(left int32) (at int, known bool) {
	if len(s.queues) == 1 && s.queues[0].left == left {
		return 0, true // most have one queue
	}
	return slices.BinarySearchFunc(s.queues, left, func(q *queue, left int32) int { return cmp.Compare(q.left, left) })
}

// above returns the queues whose tasks have more than left attempts left.
func (s *stock) above(left int32) []*queue {
	at, _ := s.findQueue(left + 1)
	return s.queues[at:]
}

// ahead returns how many tasks a claim by priority takes before t, which is one of them.
func (s *stock) ahead(t *record.Task) int64 {
	count := int64(0)
	if s.census != nil {
		count = s.census.above(t.Priority)
	}
	for _, q := range s.queues {
		count += int64(q.below(t.Priority, t.ID))
	}
	return count
}
