package fsm

import "github.com/tidwall/btree"

// readyTypes finds the first pending task of all types, in every order. It is
// a tournament of the types' queues.
type readyTypes [orderCount]heads

// typeState is what is kept of a task type while it has tasks.
type typeState struct {
	name   string                     // shared by all its tasks
	tasks  int64                      // of any status
	counts [StatusCancelled + 1]int64 // by Status
	queue  queue
}

// queue holds the pending tasks of one type, in levels of equal priority.
type queue struct {
	contender // among the queues that are not empty
	levels    map[int32]*level
	heads     [orderCount]heads // of the levels
	spare     *level            // an empty one, for the next new priority
}

// level holds the pending tasks of one type and priority.
type level struct {
	contender
	priority int32
	ids      btree.Set[uint64]
	min, max uint64 // of ids, which is not empty
}

// add adds a pending task that is not there yet.
func (r *readyTypes) add(q *queue, priority int32, id uint64) {
	empty := len(q.levels) == 0
	q.add(priority, id)
	for o := range orderCount {
		first := q.heads[o].first().ranks[o]
		switch {
		case empty:
			q.ranks[o] = first
			r[o].add(&q.contender)
		case first != q.ranks[o]:
			q.ranks[o] = first
			r[o].moved(&q.contender)
		}
	}
}

// remove removes a pending task that is there.
func (r *readyTypes) remove(q *queue, priority int32, id uint64) {
	q.remove(priority, id)
	empty := len(q.levels) == 0
	for o := range orderCount {
		if empty {
			r[o].remove(&q.contender)
			continue
		}
		if first := q.heads[o].first().ranks[o]; first != q.ranks[o] {
			q.ranks[o] = first
			r[o].moved(&q.contender)
		}
	}
}

// first returns the id of the first pending task of any type.
func (r *readyTypes) first(o order) (id uint64, ok bool) {
	c := r[o].first()
	if c == nil {
		return 0, false
	}
	return c.ranks[o].task(o), true
}

// newReadyTypes returns an empty one.
func newReadyTypes() (r readyTypes) {
	for o := range orderCount {
		r[o].order = o
	}
	return r
}

// newQueue returns an empty queue.
func newQueue() queue {
	q := queue{levels: map[int32]*level{}}
	for o := range orderCount {
		q.heads[o].order = o
	}
	return q
}

func (q *queue) add(priority int32, id uint64) {
	l := q.levels[priority]
	if l == nil {
		if l, q.spare = q.spare, nil; l == nil {
			l = &level{}
		}
		l.priority, l.min, l.max = priority, id, id
		l.ids.Insert(id)
		l.rank()
		q.levels[priority] = l
		for o := range orderCount {
			q.heads[o].add(&l.contender)
		}
		return
	}
	l.ids.Insert(id)
	if id < l.min {
		l.min = id
		l.rank()
		q.heads[orderOldest].moved(&l.contender)
	}
	if id > l.max {
		l.max = id
		l.rank()
		q.heads[orderNewest].moved(&l.contender)
	}
}

func (q *queue) remove(priority int32, id uint64) {
	l := q.levels[priority]
	l.ids.Delete(id)
	if l.ids.Len() == 0 {
		delete(q.levels, priority)
		for o := range orderCount {
			q.heads[o].remove(&l.contender)
		}
		q.spare = l
		return
	}
	if id == l.min {
		l.min, _ = l.ids.Min()
		l.rank()
		q.heads[orderOldest].moved(&l.contender)
	}
	if id == l.max {
		l.max, _ = l.ids.Max()
		l.rank()
		q.heads[orderNewest].moved(&l.contender)
	}
}

// rank sets the ranks of the level's first tasks. In the orders of priority no
// two levels of a queue share the rank's first part: so only a change of the
// oldest or newest moves a level among the others.
func (l *level) rank() {
	for o := range orderCount {
		l.ranks[o] = rankOf(o, l.priority, l.min)
	}
	l.ranks[orderNewest] = rankOf(orderNewest, l.priority, l.max)
}
