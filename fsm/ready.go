package fsm

import (
	"cmp"
	"slices"

	"github.com/tidwall/btree"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// typeState is what is kept of a task type while it has tasks or settings.
type typeState struct {
	index.Contender                                   // among the types
	name            string                            // shared by all its tasks
	tasks           int64                             // of any status
	oldest          uint64                            // the pending task that was submitted first, 0 if none is; set by place
	counts          [record.StatusCancelled + 1]int64 // by Status
	record          *record.TaskType                  // nil if it has no settings

	// Its claimable tasks, as far as the type does not forbid it.
	queues []*index.Queue   // by attempts left, ascending; none is empty
	first  index.Tournament // of the queues
	spare  *index.Queue     // an empty one, for the next number of attempts left
	ready  int              // tasks in all queues
	census index.Census     // the same, by priority

	held      index.Claims // claims
	rates     typeRates
	latencies *Latencies        // nil if they are not counted
	groups    map[string]*group // those with tasks that have not ended; nil if there never was one
	behind    btree.Set[uint64] // pending tasks that their group holds back

	rungs []*index.Rung // its queues in Machine.ladder, by attempts left
	stale int           // its place in Machine.stale, from 1; 0 = it is not there

	standing standing
	opensAt  int64 // while typeWaits
	added    int   // tasks added to the queues since the type was placed
	noted    int   // where in Machine.noted it is, if it is there
}

// standing says whether claims find a type.
type standing uint8

const (
	typeClosed standing = iota // it has no claimable task, is paused, or has claims enough
	typeWaits                  // only its rate limit forbids claims, until opensAt
	typeOpen                   // its tasks are in the tournament of the types
)

// opening is when a type that waits for its rate limit opens, by T.
type opening struct {
	t    int64
	name string
}

// newOpenings returns an empty set of types in the order in which they open.
func newOpenings() *btree.BTreeG[opening] {
	return btree.NewBTreeGOptions(func(a, b opening) bool {
		return a.t < b.t || a.t == b.t && a.name < b.name
	}, btree.Options{NoLocks: true})
}

// newTypeState returns the state of a type without tasks and settings.
func newTypeState(name string) *typeState {
	ts := &typeState{name: name, first: index.NewTournament()}
	ts.Of = ts
	return ts
}

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
func (ts *typeState) add(t *record.Task) {
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
	q.Add(t.Priority, t.ID)
	ts.first.Put(&q.Contender, q.First())
	ts.ready++
	ts.census.Add(t.Priority)
	ts.added++
}

// remove removes a claimable task that is there. The type must be placed
// afterwards.
func (ts *typeState) remove(t *record.Task) {
	at, _ := ts.findQueue(attemptsLeftOf(t))
	q := ts.queues[at]
	q.Remove(t.Priority, t.ID)
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
func (ts *typeState) findQueue(left int32) (at int, known bool) {
	if len(ts.queues) == 1 && ts.queues[0].Left == left {
		return 0, true // most types have one
	}
	return slices.BinarySearchFunc(ts.queues, left, func(q *index.Queue, left int32) int { return cmp.Compare(q.Left, left) })
}

// queuesAbove returns the queues of the tasks with more than that many
// attempts left.
func (ts *typeState) queuesAbove(left int32) []*index.Queue {
	at, _ := ts.findQueue(left + 1)
	return ts.queues[at:]
}

// standingAt returns where the type stands at t, and when it opens if it waits.
func (ts *typeState) standingAt(t int64) (s standing, opensAt int64) {
	switch {
	case ts.ready == 0:
		return typeClosed, 0
	case ts.record == nil:
		return typeOpen, 0
	case ts.record.Settings.Paused || ts.slots() <= 0:
		return typeClosed, 0
	}
	if at := ts.record.ClaimableAt(t); at > t {
		return typeWaits, at
	}
	return typeOpen, 0
}

// slots returns how many more claims the type may have at a time.
func (ts *typeState) slots() int64 {
	if ts.record == nil || ts.record.Settings.MaxClaimed <= 0 {
		return record.NoLimit
	}
	return int64(ts.record.Settings.MaxClaimed) - ts.counts[record.StatusClaimed]
}

// hasLimits reports whether the type has a limit of claims.
func (ts *typeState) hasLimits() bool {
	return ts.record != nil && (ts.record.Settings.MaxClaimed > 0 || ts.record.Settings.RateLimit > 0)
}

// place moves the type to where its tasks, its settings and the time say it
// stands, and notes what became claimable. Whoever changes one of these calls
// it afterwards. It costs O(log types), however many tasks the type has.
func (m *Machine) place(ts *typeState) {
	ts.oldest = ts.findOldest()
	was, opened := ts.standing, ts.opensAt
	ts.standing, ts.opensAt = ts.standingAt(m.Stamp().T)
	if was == typeWaits && (ts.standing != typeWaits || opened != ts.opensAt) {
		m.openings.Delete(opening{opened, ts.name})
		was = typeClosed
	}
	if ts.standing == typeOpen {
		m.ready.Put(&ts.Contender, ts.first.Top())
	} else {
		m.ready.Put(&ts.Contender, &index.NoRanks)
	}
	if ts.standing == typeWaits && was != typeWaits {
		m.openings.Set(opening{ts.opensAt, ts.name})
	}
	if ts.stale == 0 {
		m.stale = append(m.stale, ts)
		ts.stale = len(m.stale)
	}
	m.noteReady(ts, was == typeOpen)
	ts.added = 0
}

// climb brings the ladder up to date. Few claims ask for it, so what changes is left to
// the next one that does: a type costs it once, however often it changed.
func (m *Machine) climb() {
	for _, ts := range m.stale {
		ts.stale = 0
		ts.climb(&m.ladder)
	}
	clear(m.stale)
	m.stale = m.stale[:0]
}

// climb puts the type's queues into the ladder, none if claims do not find it.
func (ts *typeState) climb(l *index.Ladder) {
	var queues []*index.Queue
	if ts.standing == typeOpen {
		queues = ts.queues
	}
	if !slices.EqualFunc(ts.rungs, queues, func(r *index.Rung, q *index.Queue) bool { return r.Left == q.Left }) {
		ts.rungs = ts.rerung(l, queues)
	}
	for i, q := range queues {
		l.Put(ts.rungs[i], q.Len(), q.First())
	}
}

// rerung returns a rung for each queue, those that there were where they fit, and removes
// the others.
func (ts *typeState) rerung(l *index.Ladder, queues []*index.Queue) []*index.Rung {
	rungs, old := make([]*index.Rung, len(queues)), ts.rungs
	for i, q := range queues {
		for len(old) > 0 && old[0].Left < q.Left {
			l.Remove(old[0])
			old = old[1:]
		}
		if len(old) > 0 && old[0].Left == q.Left {
			rungs[i], old = old[0], old[1:]
		} else {
			rungs[i] = &index.Rung{Of: ts, Left: q.Left, Name: ts.name}
		}
	}
	for _, r := range old {
		l.Remove(r)
	}
	return rungs
}

// fall takes a type that is forgotten out of the ladder.
func (m *derived) fall(ts *typeState) {
	for _, r := range ts.rungs {
		m.ladder.Remove(r)
	}
	ts.rungs = nil
	if at := ts.stale - 1; at >= 0 {
		last := len(m.stale) - 1
		moved := m.stale[last]
		m.stale[at], moved.stale = moved, ts.stale
		m.stale[last], m.stale = nil, m.stale[:last]
		ts.stale = 0
	}
}

// anyAbove reports whether at t, by T, a type may be claimed from that has tasks with more
// than so many attempts left. It changes nothing, so it looks at what is stale.
func (m *derived) anyAbove(left int32, t int64) bool {
	synced := m.ladder.Count(left)
	for _, ts := range m.stale {
		for _, r := range ts.rungs {
			if r.Left > left {
				synced -= r.Len()
			}
		}
		if standing, _ := ts.standingAt(t); standing == typeOpen && len(ts.queuesAbove(left)) > 0 {
			return true
		}
	}
	found := synced > 0
	m.openings.Scan(func(o opening) bool {
		found = found || o.t <= t && len(m.types[o.name].queuesAbove(left)) > 0
		return !found && o.t <= t
	})
	return found
}

// openDue opens the types whose time has come.
func (m *Machine) openDue() {
	for {
		next, ok := m.openings.Min()
		if !ok || next.t > m.Stamp().T {
			return
		}
		m.place(m.types[next.name])
	}
}

// NextOpening returns the earliest time, by T, at which a type of which only
// its rate limit forbids claims may be claimed from; ok is false if there is
// none.
func (m *Machine) NextOpening() (t int64, ok bool) {
	next, ok := m.openings.Min()
	return next.t, ok
}

// noteReady notes the tasks that became claimable when the type was placed. An
// open type that was open before gained what was added; one that has just
// opened, all it has. What its limits let be claimed bounds both. A type with
// limits is noted with one task at least whenever it is placed and open: who
// waits is woken one by one as long as there is room, since room grows with
// time, of which nobody tells.
func (m *Machine) noteReady(ts *typeState, before bool) {
	if ts.standing != typeOpen {
		return
	}
	n := ts.added
	if !before {
		n = ts.ready
	}
	if ts.hasLimits() {
		n = int(min(int64(max(n, 1)), ts.slots(), ts.record.ClaimsAt(m.Stamp().T)))
	}
	switch {
	case n == 0:
	case ts.noted < len(m.noted) && m.noted[ts.noted].Type == ts.name:
		m.noted[ts.noted].Count += n
	default:
		ts.noted = len(m.noted)
		m.noted = append(m.noted, ReadyTasks{Type: ts.name, Count: n})
	}
}

// Openings returns the types of which only the rate limit forbids claims by the
// state's clock, and not any more at t, with how many of their tasks may be
// claimed then; and when the next one opens, ok false if none does. The next
// entry opens those that are due: until then nobody else is told of them.
func (m *Machine) Openings(t int64) (due []ReadyTasks, next int64, ok bool) {
	m.openings.Scan(func(o opening) bool {
		if o.t > t {
			next, ok = o.t, true
			return false
		}
		ts := m.types[o.name]
		if n := min(int64(ts.ready), ts.slots(), ts.record.ClaimsAt(t)); n > 0 {
			due = append(due, ReadyTasks{Type: o.name, Count: int(n)})
		}
		return true
	})
	return due, next, ok
}

// NameOfType returns the type's name, the string that all its tasks share if there
// are any.
func (m *derived) NameOfType(name []byte) string {
	if ts := m.recent; ts != nil && ts.name == string(name) {
		return ts.name
	}
	if ts := m.types[string(name)]; ts != nil {
		return ts.name
	}
	return string(name)
}
