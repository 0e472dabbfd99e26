package index

// Queue holds the claimable tasks of one type with the same number of attempts left, in
// levels of equal priority.
type Queue struct {
	Contender       // among the queues of its type
	Left      int32 // the caller's own; not used here
	levels    map[int32]*level
	recent    *level     // cache: the last level changed, or nil
	first     Tournament // of the levels
	spare     *level     // an empty level for the next new priority
	count     int        // number of tasks
	// all has the ids of all levels while there are several. With one level its ids are
	// used directly, and the copy that shares them costs nothing until one of the two
	// changes.
	all *fifo
}

// level holds the claimable tasks of a queue with one priority.
type level struct {
	Contender
	priority int32
	ids      fifo
	min, max uint64 // of ids, if it is not empty
}

// NewQueue returns an empty queue.
func NewQueue() *Queue {
	return &Queue{levels: map[int32]*level{}, first: NewTournament()}
}

// Add adds a task that is not in the queue.
func (q *Queue) Add(priority int32, id uint64) {
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
func (q *Queue) open(priority int32, id uint64) {
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
	q.first.Add(&l.Contender)
	q.place(l)
}

// place updates the level's ranks in the tournament.
func (q *Queue) place(l *level) {
	q.first.Put(&l.Contender, &Ranks{
		Highest: rankOf(Highest, l.priority, l.min),
		Lowest:  rankOf(Lowest, l.priority, l.min),
		Oldest:  rankOf(Oldest, l.priority, l.min),
		Newest:  rankOf(Newest, l.priority, l.max),
	})
}

// Remove removes a task that is in the queue.
func (q *Queue) Remove(priority int32, id uint64) {
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
		q.first.Remove(&l.Contender)
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
func (q *Queue) At(k int) uint64 {
	ids := q.all
	if ids == nil {
		ids = &q.only().ids
	}
	return ids.at(k)
}

// level returns the level of the priority, or nil.
func (q *Queue) level(priority int32) *level {
	if l := q.recent; l != nil && l.priority == priority { // most queues have only one level
		return l
	}
	return q.levels[priority]
}

// Len returns the number of tasks.
func (q *Queue) Len() int { return q.count }

// Levels returns the number of different priorities.
func (q *Queue) Levels() int { return len(q.levels) }

// First returns the ranks of the first tasks. The result is read-only and stays up to date.
func (q *Queue) First() *Ranks { return &q.first.top }

// Below returns how many tasks of the priority have a lower id.
func (q *Queue) Below(priority int32, id uint64) int {
	if l := q.level(priority); l != nil {
		return l.ids.below(id)
	}
	return 0
}

// only returns the level of a queue with exactly one.
func (q *Queue) only() *level {
	return q.levels[q.first.top[Lowest].priority()]
}
