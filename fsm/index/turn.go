package index

import (
	"cmp"
	"math"
	"slices"

	"github.com/claimq/claimq/fsm/record"
)

// Turns keeps the saved tags and clocks of the order in which the shares of fair types take
// turns. First values are not saved: a tag of one turn, and a clock of 0.
type Turns interface {
	// Begin saves a tag or clock and returns its number, which is higher than all others.
	Begin(turn record.Turn) (number uint64)
	// Set changes the value.
	Set(number, value uint64)
	// Move changes the value, and the number to one that is higher than all others.
	Move(number, value uint64) uint64
	// End removes it.
	End(number uint64)
}

// turns is the order of the shares of a fair type: self-clocked fair queueing. Each priority has a
// clock, a virtual time, and each share with claimable tasks of a priority has a tag there: the
// virtual time of its next turn. A claim takes a task of the share with the smallest tag, of equal
// tags the one that was set first, and moves the clock to that tag. The share's next tag is one
// turn later. The more weight a share has, the shorter is its turn, so the more often it is next.
// No tag is more than one turn after the clock, and that of an open share is never before it.
type turns struct {
	leads
	clocks map[int32]*clock // by priority
	recent *clock           // cache: the last one used, or nil
	idle   []*clock         // clocks without tags, to be ended unless one gets a tag again
}

// clock is the clock of one priority.
type clock struct {
	priority int32
	tags     int    // shares that have a tag at the priority
	number   uint64 // 0 while value is 0
	value    uint64
}

// tag is the virtual time of a share's next turn at a priority.
type tag struct {
	priority int32
	number   uint64 // 0: it has its first value; else it is higher than those of tags that were set before
	value    uint64
}

// turnOfOne is the length of a turn of a share with weight 1.
const turnOfOne = 1_000_000_000

// turn returns the length of the share's turn: how far a claim moves its tag.
func (s *stock) turn() uint64 {
	if s.weight == 0 {
		return turnOfOne / record.DefaultWeight
	}
	return turnOfOne / uint64(s.weight)
}

// tagOf returns the index of the share's tag at the priority, or -1.
func (s *stock) tagOf(priority int32) int {
	if s.tagAt != nil {
		if at, ok := s.tagAt[priority]; ok {
			return at
		}
		return -1
	}
	for at := range s.tags {
		if s.tags[at].priority == priority {
			return at
		}
	}
	return -1
}

// tagsListed bounds the tags of a share that are searched one by one; with more, tagAt finds them.
const tagsListed = 2

// addTag adds a tag with its first value and returns its index.
func (s *stock) addTag(priority int32) int {
	at := len(s.tags)
	if s.tags == nil {
		s.tags = s.tag[:0]
	}
	s.tags = append(s.tags, tag{priority: priority})
	switch {
	case s.tagAt != nil:
		s.tagAt[priority] = at
	case at == tagsListed:
		s.tagAt = map[int32]int{}
		for at := range s.tags {
			s.tagAt[s.tags[at].priority] = at
		}
	}
	return at
}

// dropTag drops the tag. The last one takes its place.
func (s *stock) dropTag(at int) {
	last := len(s.tags) - 1
	delete(s.tagAt, s.tags[at].priority)
	if at != last {
		s.tags[at] = s.tags[last]
		if s.tagAt != nil {
			s.tagAt[s.tags[at].priority] = at
		}
	}
	s.tags = s.tags[:last]
	if last == 0 {
		s.tagAt = nil
	}
}

// tagsInOrder returns the indexes of the tags by priority. Code that saves several tags goes
// through them in this order, so that they get the same numbers on all nodes.
func (s *stock) tagsInOrder() []int {
	all := make([]int, len(s.tags))
	for at := range all {
		all[at] = at
	}
	slices.SortFunc(all, func(a, b int) int { return cmp.Compare(s.tags[a].priority, s.tags[b].priority) })
	return all
}

// valueOf returns the value of the tag at the index.
func (s *stock) valueOf(at int) uint64 {
	if s.tags[at].number == 0 {
		return s.turn()
	}
	return s.tags[at].value
}

// setTag sets the value of a tag, and saves it unless it is the first value.
func (ts *Type) setTag(s *stock, at int, value uint64, saved Turns) {
	t := &s.tags[at]
	first := value == s.turn()
	switch {
	case first && t.number != 0:
		saved.End(t.number)
		t.number = 0
	case first:
	case t.number == 0:
		t.number = saved.Begin(record.Turn{Type: ts.name, ShareKey: s.key, Priority: t.priority, Value: value})
	case t.value != value:
		t.number = saved.Move(t.number, value)
	}
	t.value = value
}

// clockAt returns the clock of the priority, or nil.
func (u *turns) clockAt(priority int32) *clock {
	if c := u.recent; c != nil && c.priority == priority {
		return c
	}
	u.recent = u.clocks[priority]
	return u.recent
}

// setClock sets the value of a clock, and saves it unless it is 0.
func (ts *Type) setClock(c *clock, value uint64, saved Turns) {
	switch {
	case value == c.value:
	case value == 0:
		saved.End(c.number)
		c.number = 0
	case c.number == 0:
		c.number = saved.Begin(record.Turn{Type: ts.name, Priority: c.priority, Clock: true, Value: value})
	default:
		saved.Set(c.number, value)
	}
	c.value = value
}

// startTurns makes the type fair: its clocks are at 0, and all tags one turn after that.
func (ts *Type) startTurns() {
	ts.turns = &turns{clocks: map[int32]*clock{}}
	var waiting []lead
	ts.eachStock(func(s *stock) {
		ts.turns.add(s)
		for _, q := range s.queues {
			q.eachLevel(func(l *level) { ts.beginTag(s, l.priority) })
		}
		if its := s.lead(); its.of != nil {
			waiting = append(waiting, its)
		}
	})
	// In order, so that all of them stand in line and none is loose.
	slices.SortFunc(waiting, func(a, b lead) int { return int(b.before(&a)) - int(a.before(&b)) })
	for _, its := range waiting {
		ts.turns.put(its)
	}
}

// beginTag gives the share a tag with its first value, if it has none at the priority, and
// returns its index and the clock.
func (ts *Type) beginTag(s *stock, priority int32) (at int, c *clock) {
	c = ts.turns.clockAt(priority)
	if at = s.tagOf(priority); at >= 0 {
		return at, c
	}
	if c == nil {
		c = &clock{priority: priority}
		ts.turns.clocks[priority], ts.turns.recent = c, c
	}
	c.tags++
	return s.addTag(priority), c
}

// stopTurns makes the type not fair.
func (ts *Type) stopTurns(saved Turns) {
	for _, c := range ts.turns.clocks { // the order makes no difference
		ts.setClock(c, 0, saved)
	}
	ts.turns = nil
	ts.eachStock(func(s *stock) {
		for _, t := range s.tags {
			if t.number != 0 {
				saved.End(t.number)
			}
		}
		s.tags, s.tagAt, s.touched = nil, nil, nil
	})
}

// eachStock calls do with the tasks without share key, and with each share.
func (ts *Type) eachStock(do func(*stock)) {
	do(&ts.stock)
	if ts.shares != nil {
		for _, sh := range ts.shares.byName { // the caller does not depend on the order
			do(&sh.stock)
		}
	}
}

// settleTurns gives the share a tag, one turn after the clock, at each priority at which it has
// begun to wait, and ends those at which it waits no more. At the end of an undo new tags have
// their first value, because those with another value are restored from what was saved.
func (ts *Type) settleTurns(s *stock, saved Turns, undone bool) {
	for _, priority := range s.touched {
		at, waits := s.tagOf(priority), s.waitsAt(priority)
		switch {
		case waits && at < 0:
			at, c := ts.beginTag(s, priority)
			if !undone {
				ts.setTag(s, at, c.value+s.turn(), saved)
			}
		case at >= 0 && !waits:
			if n := s.tags[at].number; n != 0 {
				saved.End(n)
			}
			s.dropTag(at)
			c := ts.turns.clockAt(priority)
			if c.tags--; c.tags == 0 {
				ts.turns.idle = append(ts.turns.idle, c)
			}
		}
	}
	s.touched = s.touched[:0]
	ts.placeTurn(s)
}

// endClocks ends the clocks of priorities without waiting tasks.
func (ts *Type) endClocks(saved Turns) {
	for _, c := range ts.turns.idle {
		if c.tags == 0 {
			ts.setClock(c, 0, saved)
			delete(ts.turns.clocks, c.priority)
			ts.turns.recent = nil
		}
	}
	ts.turns.idle = ts.turns.idle[:0]
}

// tookTurn moves the clock to the turn that was taken, and the share's tag to one turn after it,
// if it has more tasks of the priority.
func (ts *Type) tookTurn(s *stock, l lead, saved Turns) {
	priority := rank{first: l.priority}.highest()
	c := ts.turns.clockAt(priority)
	if c == nil {
		return
	}
	ts.setClock(c, l.tag, saved)
	if at := s.tagOf(priority); at >= 0 {
		ts.setTag(s, at, l.tag+s.turn(), saved)
		ts.placeTurn(s)
	}
}

// catchUp moves the tags of a share that has opened to their clocks if these have passed them
// while it was closed. A tag that is not at most one turn after its clock has been passed; it is
// before the clock, and the difference wraps around.
func (ts *Type) catchUp(s *stock, saved Turns) {
	for _, at := range s.tagsInOrder() {
		if c := ts.turns.clockAt(s.tags[at].priority); s.valueOf(at)-c.value > s.turn() {
			ts.setTag(s, at, c.value, saved)
		}
	}
}

// placeTurn updates the place of the share among those of its type.
func (ts *Type) placeTurn(s *stock) {
	if its := s.lead(); its.of != nil {
		ts.turns.put(its)
		return
	}
	ts.turns.leave(s)
}

// lead returns the share's place, or noLead.
func (s *stock) lead() lead {
	if s.closed || s.count == 0 {
		return noLead
	}
	first := s.highest()
	at := s.tagOf(first.highest())
	if at < 0 {
		return noLead // in an undo its tag may come later
	}
	its := lead{priority: first.first, tag: s.valueOf(at), since: first.second, of: s}
	if number := s.tags[at].number; number != 0 {
		its.since = isSaved | number
	}
	return its
}

// highest returns the rank of the share's first task by priority, highest first.
func (s *stock) highest() rank {
	if len(s.queues) == 1 {
		return s.queues[0].rank(highest)
	}
	first := noRank
	for _, q := range s.queues {
		first = first.or(q.rank(highest))
	}
	return first
}

// waitsAt reports whether the share has claimable tasks of the priority.
func (s *stock) waitsAt(priority int32) bool {
	return slices.ContainsFunc(s.queues, func(q *queue) bool { return q.level(priority) != nil })
}

// highest returns the priority of the task, from its rank in highest.
func (r rank) highest() int32 { return int32(math.MaxInt32 - int64(r.first)) }

// touch notes that a tag of the share may have to begin or end. The type must be settled
// afterwards.
func (ts *Type) touch(s *stock, priority int32) {
	if n := len(s.touched); ts.turns != nil && (n == 0 || s.touched[n-1] != priority) {
		if s.touched == nil {
			s.touched = s.touching[:0]
		}
		s.touched = append(s.touched, priority)
	}
}

// SetWeight sets the weight of a share, 0 for the default. It also applies to tasks that wait
// already: none has to wait for more than one turn of the new weight. It must come before
// RestoreTurn. Between BeginUndo and EndUndo it changes no tag, because those are restored.
func (s *Types) SetWeight(ts *Type, shareKey string, weight int32, saved Turns) {
	if weight == record.DefaultWeight {
		weight = 0
	}
	if weight == 0 {
		delete(ts.weights, shareKey)
	} else {
		if ts.weights == nil {
			ts.weights = map[string]int32{}
		}
		ts.weights[shareKey] = weight
	}
	of := ts.stockOf(shareKey)
	if of == nil || of.weight == weight {
		return
	}
	was := of.turn()
	of.weight = weight
	if ts.turns == nil {
		return
	}
	if !s.undoing {
		ts.reweigh(of, was, saved)
	}
	ts.placeTurn(of)
}

// reweigh moves the tags of a share whose turn had the length was to at most one turn after their
// clocks. Tags that a clock has passed stay.
func (ts *Type) reweigh(s *stock, was uint64, saved Turns) {
	for _, at := range s.tagsInOrder() {
		t := &s.tags[at]
		value, now := t.value, ts.turns.clockAt(t.priority).value
		if t.number == 0 {
			value = was
		}
		if behind := value - now; behind > s.turn() && behind <= was {
			value = now + s.turn()
		}
		ts.setTag(s, at, value, saved)
	}
}

// RestoreTurn restores a saved tag or clock of a fair type. It returns what is wrong with it, or
// "". Tasks must be in their shares, and their weights set. SetRecord, or EndUndo, must have come
// before or must follow.
func (s *Types) RestoreTurn(ts *Type, t *record.Turn, number uint64) (problem string) {
	if t.Clock {
		return s.restoreClock(ts, t, number)
	}
	of := ts.stockOf(t.ShareKey)
	if of == nil || !of.waitsAt(t.Priority) {
		return "its share has no claimable task of the priority"
	}
	at, _ := ts.beginTag(of, t.Priority)
	switch {
	case of.tags[at].number != 0:
		return "its share has two tags"
	case t.Value == of.turn():
		return "it is a first value"
	}
	if !s.undoing { // a record that was read has strings of its own
		t.Type, t.ShareKey = ts.name, of.key
	}
	of.tags[at].number, of.tags[at].value = number, t.Value
	ts.placeTurn(of)
	return ""
}

// restoreClock restores the saved clock of a priority.
func (s *Types) restoreClock(ts *Type, t *record.Turn, number uint64) (problem string) {
	c := ts.turns.clockAt(t.Priority)
	switch {
	case c == nil && s.undoing:
		c = &clock{priority: t.Priority} // its tags begin with EndUndo
		ts.turns.clocks[t.Priority] = c
	case c == nil:
		return "no task of the priority waits"
	case c.number != 0:
		return "its priority has two clocks"
	}
	if t.ShareKey != "" || t.Value == 0 {
		return "it has a share key, or its first value"
	}
	c.number, c.value = number, t.Value
	return ""
}

// ForgetTurn forgets a tag or clock that an undo is about to remove.
func (s *Types) ForgetTurn(ts *Type, t *record.Turn) {
	if t.Clock {
		if c := ts.turns.clockAt(t.Priority); c != nil {
			c.number, c.value = 0, 0
		}
		return
	}
	of := ts.stockOf(t.ShareKey)
	if of == nil {
		return
	}
	if at := of.tagOf(t.Priority); at >= 0 {
		of.tags[at].number = 0
		ts.placeTurn(of)
	}
}

// ProblemOfTurns returns what is wrong with the restored tags of the type, or "".
func (ts *Type) ProblemOfTurns() (problem string) {
	if ts.turns == nil {
		return ""
	}
	ts.eachStock(func(s *stock) {
		for at := range s.tags {
			if c := ts.turns.clockAt(s.tags[at].priority); !s.closed && s.valueOf(at)-c.value > s.turn() {
				problem = "a tag is not within a turn behind its clock"
			}
		}
	})
	return problem
}

// BeginUndo keeps the shares and turns of fair types until EndUndo, even those whose tasks all
// leave.
func (s *Types) BeginUndo() { s.undoing = true }

// EndUndo settles what BeginUndo kept, at time now by T. The tasks and turns must be restored.
func (s *Types) EndUndo(saved Turns, now int64) {
	s.undoing, s.undone = false, true
	for _, u := range s.unsettled {
		if u.of.turns == nil || u.of.stockOf(u.key) != u.stock {
			continue // the type has gone, or the share was settled
		}
		if u.key != "" {
			u.of.shareOf(u.key)
		}
		s.settle(u.of, saved, now)
		s.place(u.of, now)
	}
	for _, u := range s.unsettled {
		if u.of.turns != nil {
			u.of.endClocks(saved)
		}
	}
	s.unsettled, s.undone = nil, false
}

// unsettled is a share of a fair type that EndUndo has to settle.
type unsettled struct {
	*stock
	of *Type
}

// settleLater leaves the share of a fair type to EndUndo.
func (s *Types) settleLater(ts *Type, of *stock) {
	s.unsettled = append(s.unsettled, unsettled{of, ts})
}
