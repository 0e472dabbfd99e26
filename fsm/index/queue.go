package index

// queue holds the claimable tasks of one share with the same number of attempts left, in
// levels of equal priority. Most have one level, which is part of the queue: others, and what
// finds the first among several, are allocated when there is a second one.
type queue struct {
	slot        // among the queues of its share
	left  int32 // attempts left of its tasks
	of    *stock
	count int // number of tasks
	one   level
	// Of several levels; nil as long as the queue has had only one.
	levels map[int32]*level
	recent *level      // cache: the last level changed, or nil
	first  *tournament // of the levels
	spare  *level      // an empty level for the next new priority
	// all has the ids of all levels while there are several. With one level its ids are
	// used directly, and the copy that shares them costs nothing until one of the two
	// changes.
	all *fifo
}

// level holds the claimable tasks of a queue with one priority.
type level struct {
	slot
	priority int32
	ids      fifo
	min, max uint64 // of ids, if it is not empty
}

// add adds a task that is not in the queue.
func (q *queue) add(priority int32, id uint64) {
	l := q.level(priority)
	if l == nil {
		q.open(priority, id)
		q.count++
		return
	}
	q.count++
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
	l := &q.one
	if q.levels != nil || q.count > 0 {
		l = q.another(priority)
	}
	if q.all != nil {
		q.all.add(id)
	}
	l.priority, l.min, l.max = priority, id, id
	l.ids.add(id)
	q.recent = l
	q.place(l)
}

// another returns an empty level among several.
func (q *queue) another(priority int32) *level {
	if q.levels == nil {
		q.levels, q.first = map[int32]*level{q.one.priority: &q.one}, new(newTournament())
		q.first.add(&q.one)
		q.place(&q.one)
	}
	if len(q.levels) == 1 {
		q.all = q.only().ids.copy()
	}
	l := q.spare
	if q.spare = nil; l == nil {
		l = &level{}
	}
	q.levels[priority] = l
	q.first.add(l)
	return l
}

// place updates the level's ranks among several.
func (q *queue) place(l *level) {
	if q.levels != nil {
		its := l.top()
		q.first.put(l.slot, &its)
	}
}

// rank returns the rank of the level's first task in the order. There must be one.
func (l *level) rank(o order) rank {
	if o == newest {
		return rankOf(o, l.priority, l.max)
	}
	return rankOf(o, l.priority, l.min)
}

// top returns the ranks of the level's first tasks. There must be one.
func (l *level) top() ranks {
	return ranks{highest: l.rank(highest), lowest: l.rank(lowest), oldest: l.rank(oldest), newest: l.rank(newest)}
}

// remove removes a task that is in the queue.
func (q *queue) remove(priority int32, id uint64) {
	l := q.level(priority)
	q.count--
	q.recent = l
	l.ids.remove(id)
	if q.all != nil {
		q.all.remove(id)
	}
	if l.ids.count == 0 {
		q.close(l)
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

// close removes a level without tasks.
func (q *queue) close(l *level) {
	q.recent = nil
	if q.levels == nil {
		return
	}
	delete(q.levels, l.priority)
	q.first.remove(l)
	q.spare = l
	if len(q.levels) == 1 {
		q.all = nil
	}
}

// at returns the k-th id in ascending order, from 0; k must be below the number of tasks.
func (q *queue) at(k int) uint64 {
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
	if q.levels != nil {
		return q.levels[priority]
	}
	if q.count > 0 && q.one.priority == priority {
		return &q.one
	}
	return nil
}

// eachLevel calls do with each level, in no particular order.
func (q *queue) eachLevel(do func(*level)) {
	if q.levels == nil && q.count > 0 {
		do(&q.one)
	}
	for _, l := range q.levels { // the caller does not depend on the order
		do(l)
	}
}

// len returns the number of tasks.
func (q *queue) len() int { return q.count }

// levelCount returns the number of different priorities.
func (q *queue) levelCount() int {
	if q.levels == nil {
		return min(q.count, 1)
	}
	return len(q.levels)
}

// top returns the ranks of the first tasks.
func (q *queue) top() ranks {
	switch {
	case q.levels != nil:
		return *q.first.first()
	case q.count == 0:
		return noRanks
	}
	return q.one.top()
}

// rank returns the rank of the first task in the order.
func (q *queue) rank(o order) rank {
	switch {
	case q.levels != nil:
		return q.first.first()[o]
	case q.count == 0:
		return noRank
	}
	return q.one.rank(o)
}

// below returns how many tasks of the priority have a lower id.
func (q *queue) below(priority int32, id uint64) int {
	if l := q.level(priority); l != nil {
		return l.ids.below(id)
	}
	return 0
}

// only returns the level of a queue with exactly one.
func (q *queue) only() *level {
	if q.levels == nil {
		return &q.one
	}
	return q.levels[q.rank(lowest).priority()]
}
