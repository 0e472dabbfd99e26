package fsm

// queue holds the claimable tasks of one type that have equally many attempts
// left, in levels of equal priority.
type queue struct {
	contender // among the queues of its type
	left      int32
	levels    map[int32]*level
	recent    *level     // the one that changed last, if it is still there
	first     tournament // of the levels
	spare     *level     // an empty one, for the next new priority
	count     int        // of tasks
	// all has the ids of all levels while there are several. With one level its
	// ids are all there are, and a copy that shares them costs nothing until one
	// of the two changes.
	all *fifo
}

// level holds the claimable tasks of one queue that have one priority.
type level struct {
	contender
	priority int32
	ids      fifo
	min, max uint64 // of ids, which is not empty
}

// attemptsLeftNone is the number of attempts left that stands for more than
// AttemptsLeftMax, and for no limit: no claim tells these apart.
const attemptsLeftNone = AttemptsLeftMax + 1

// attemptsLeftOf returns how many attempts the task has left, at most
// attemptsLeftNone.
func attemptsLeftOf(t *Task) int32 {
	if t.MaxAttempts == 0 {
		return attemptsLeftNone
	}
	return max(min(t.MaxAttempts-t.Attempts, attemptsLeftNone), 0)
}

// newQueue returns an empty queue.
func newQueue() *queue {
	return &queue{levels: map[int32]*level{}, first: newTournament()}
}

// add adds a task that is not there yet.
func (q *queue) add(priority int32, id uint64) {
	q.count++
	l := q.level(priority)
	if l == nil {
		q.open(priority, id)
		return
	}
	q.recent = l
	if q.all != nil {
		q.all.add(id)
	}
	l.ids.add(id)
	l.min, l.max = min(l.min, id), max(l.max, id)
	q.place(l)
}

// open begins the level of the priority with its first task.
func (q *queue) open(priority int32, id uint64) {
	if len(q.levels) == 1 {
		q.all = q.only().ids.copy()
	}
	if q.all != nil {
		q.all.add(id)
	}
	var l *level
	if l, q.spare = q.spare, nil; l == nil {
		l = &level{}
	}
	l.priority, l.min, l.max = priority, id, id
	l.ids.add(id)
	q.levels[priority] = l
	q.recent = l
	q.first.add(&l.contender)
	q.place(l)
}

// place moves the level to where its first tasks put it.
func (q *queue) place(l *level) {
	q.first.put(&l.contender, &ranks{
		orderHighest: rankOf(orderHighest, l.priority, l.min),
		orderLowest:  rankOf(orderLowest, l.priority, l.min),
		orderOldest:  rankOf(orderOldest, l.priority, l.min),
		orderNewest:  rankOf(orderNewest, l.priority, l.max),
	})
}

// remove removes a task that is there.
func (q *queue) remove(priority int32, id uint64) {
	q.count--
	l := q.level(priority)
	q.recent = l
	l.ids.remove(id)
	if q.all != nil {
		q.all.remove(id)
	}
	if l.ids.count == 0 {
		delete(q.levels, priority)
		q.recent = nil
		q.first.remove(&l.contender)
		q.spare = l
		if len(q.levels) == 1 {
			q.all = nil
		}
		return
	}
	if id == l.min {
		l.min = l.ids.min()
	}
	if id == l.max {
		l.max = l.ids.max()
	}
	q.place(l)
}

// at returns the id that comes k-th by id, from 0; k is below count.
func (q *queue) at(k int) uint64 {
	ids := q.all
	if ids == nil {
		ids = &q.only().ids
	}
	return ids.at(k)
}

// level returns the level of the priority, nil if there is none.
func (q *queue) level(priority int32) *level {
	if l := q.recent; l != nil && l.priority == priority { // most queues have no other
		return l
	}
	return q.levels[priority]
}

// only returns the one level of a queue that has one.
func (q *queue) only() *level {
	return q.levels[q.first.top[orderLowest].priority()]
}
