package index

// queue holds the claimable tasks of one type with the same number of attempts left, in
// levels of equal priority.
type queue struct {
	contender       // among the queues of its type
	Left      int32 // the caller's own, as Key; not used here
	Key       string
	levels    map[int32]*level
	recent    *level     // cache: the last level changed, or nil
	first     tournament // of the levels
	spare     *level     // an empty level for the next new priority
	count     int        // number of tasks
	// all has the ids of all levels while there are several. With one level its ids are
	// used directly, and the copy that shares them costs nothing until one of the two
	// changes.
	all *fifo
}

// level holds the claimable tasks of a queue with one priority.
type level struct {
	contender
	priority int32
	ids      fifo
	min, max uint64 // of ids, if it is not empty
}

// newQueue returns an empty queue.
func newQueue() *queue {
	return &queue{levels: map[int32]*level{}, first: newTournament()}
}

// Add adds a task that is not in the queue.
func (q *queue) Add(priority int32, id uint64) {
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

// open creates the level of the priority with its first task.
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
	q.first.Add(&l.contender)
	q.place(l)
}

// place updates the level's ranks in the tournament.
func (q *queue) place(l *level) {
	q.first.Put(&l.contender, &ranks{
		highest: rankOf(highest, l.priority, l.min),
		lowest:  rankOf(lowest, l.priority, l.min),
		oldest:  rankOf(oldest, l.priority, l.min),
		newest:  rankOf(newest, l.priority, l.max),
	})
}

// Remove removes a task that is in the queue.
func (q *queue) Remove(priority int32, id uint64) {
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
		q.first.Remove(&l.contender)
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

// At returns the k-th id in ascending order, from 0; k must be below Len.
func (q *queue) At(k int) uint64 {
	ids := q.all
	if ids == nil {
		ids = &q.only().ids
	}
	return ids.at(k)
}

// level returns the level of the priority, or nil.
func (q *queue) level(priority int32) *level {
	if l := q.recent; l != nil && l.priority == priority { // most queues have only one level
		return l
	}
	return q.levels[priority]
}

// Len returns the number of tasks.
func (q *queue) Len() int { return q.count }

// Levels returns the number of different priorities.
func (q *queue) Levels() int { return len(q.levels) }

// First returns the ranks of the first tasks. The result is read-only and stays up to date.
func (q *queue) First() *ranks { return &q.first.top }

// Below returns how many tasks of the priority have a lower id.
func (q *queue) Below(priority int32, id uint64) int {
	if l := q.level(priority); l != nil {
		return l.ids.below(id)
	}
	return 0
}

// only returns the level of a queue with exactly one.
func (q *queue) only() *level {
	return q.levels[q.first.top[lowest].priority()]
}
