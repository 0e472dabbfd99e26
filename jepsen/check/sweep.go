package check

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tidwall/btree"

	"github.com/claimq/claimq/jepsen/history"
)

// sweep goes through the log once, and at each entry holds the claims and
// lists of it against the tasks that were certainly pending through it.
func (w *logChecker) sweep() {
	var stretches []stretch
	completed := map[uint64][]*track{} // by the entry that did it
	for _, id := range slices.Sorted(maps.Keys(w.tracks)) {
		t := w.tracks[id]
		if t.left {
			continue
		}
		stretches = append(stretches, t.stretches()...)
		if t.ended > 0 && !t.deleted {
			completed[t.ended] = append(completed[t.ended], t)
		}
	}
	w.pending = len(stretches)
	starts, ends := map[uint64][]*stretch{}, map[uint64][]*stretch{}
	entries := map[uint64]*entry{}
	indexes := map[uint64]bool{}
	for i := range stretches {
		s := &stretches[i]
		if s.first > s.last {
			continue
		}
		starts[s.first] = append(starts[s.first], s)
		ends[s.last] = append(ends[s.last], s)
		indexes[s.first], indexes[s.last] = true, true
	}
	for i := range w.calls {
		c := &w.calls[i]
		if !asks(c) {
			continue
		}
		e := entries[c.index]
		if e == nil {
			e = &entry{}
			entries[c.index] = e
		}
		e.calls = append(e.calls, c)
		indexes[c.index] = true
	}
	for at := range completed {
		indexes[at] = true
	}
	state := newCertain()
	for _, at := range slices.Sorted(maps.Keys(indexes)) {
		for _, s := range starts[at] {
			state.add(s)
		}
		if e := entries[at]; e != nil {
			w.checkEntry(e, state)
		}
		for _, s := range ends[at] {
			state.remove(s)
		}
		for _, t := range completed[at] { // after this entry
			state.completed.Set(t.id, t)
		}
	}
	w.checkEntries(stretches)
}

// asks reports whether the call's answer depends on which tasks there are.
func asks(c *logCall) bool {
	switch op := c.first; {
	case c.index == 0:
		return false
	case op.Kind == history.Claim:
		// One that waited and got nothing may have left a task to one before it.
		// A repeat says what there was when it was first asked.
		return saysNoTask(op) && op.WaitMS == 0 && !op.Repeated || op.Outcome == history.OK && !op.Repeated
	case op.Kind == history.List:
		return op.Outcome == history.OK
	}
	return false
}

// entry is the claims and lists of one index.
type entry struct{ calls []*logCall }

// certain is what is certain at one entry.
type certain struct {
	types     map[string]*pendingTasks
	completed btree.Map[uint64, *track]
}

// pendingTasks are the tasks of one type that are certainly pending.
type pendingTasks struct {
	byPriority *btree.BTreeG[*stretch] // those that nothing holds
	oldest     *btree.BTreeG[*stretch] // the same
	byID       *btree.BTreeG[*stretch] // all
}

func newCertain() *certain { return &certain{types: map[string]*pendingTasks{}} }

// comesFirst reports whether a claim in the order takes a before b.
func comesFirst(byID bool, a, b *track) bool {
	if !byID && a.priority != b.priority {
		return a.priority > b.priority
	}
	return a.id < b.id
}

func (s *certain) add(st *stretch) {
	p := s.types[st.task.kind]
	if p == nil {
		inOrder := func(byID bool) *btree.BTreeG[*stretch] {
			return btree.NewBTreeG(func(a, b *stretch) bool { return comesFirst(byID, a.task, b.task) })
		}
		p = &pendingTasks{byPriority: inOrder(false), oldest: inOrder(true), byID: inOrder(true)}
		s.types[st.task.kind] = p
	}
	p.byID.Set(st)
	if !st.task.held {
		p.byPriority.Set(st)
		p.oldest.Set(st)
	}
}

func (s *certain) remove(st *stretch) {
	p := s.types[st.task.kind]
	p.byPriority.Delete(st)
	p.oldest.Delete(st)
	p.byID.Delete(st)
}

// best returns the first of the certainly pending tasks that a claim may take,
// nil if there is none.
func (s *certain) best(types []string, byID bool) *stretch {
	var best *stretch
	for name, p := range s.types {
		if len(types) > 0 && !slices.Contains(types, name) {
			continue
		}
		tree := p.byPriority
		if byID {
			tree = p.oldest
		}
		if st, ok := tree.Min(); ok && (best == nil || comesFirst(byID, st.task, best.task)) {
			best = st
		}
	}
	return best
}

// checkEntry checks the claims and lists of an entry.
func (w *logChecker) checkEntry(e *entry, s *certain) {
	for _, c := range e.calls {
		if c.first.Kind == history.List {
			w.lists++
			w.checkList(c, s)
			continue
		}
		w.checkClaim(c, s)
	}
}

// checkClaim checks that the call took the first tasks that it could, as far as
// is certain.
func (w *logChecker) checkClaim(c *logCall, s *certain) {
	op := c.first
	byID := op.SortBy == "created_at"
	best := s.best(op.Types, byID)
	if saysNoTask(op) {
		w.nones++
	} else {
		w.claimed++
	}
	taken := 0
	for _, i := range c.ops {
		got := w.tracks[w.h.Ops[i].TaskID]
		if got == nil || w.h.Ops[i].TaskID == 0 {
			continue
		}
		taken++
		if len(op.Types) > 0 && !slices.Contains(op.Types, got.kind) {
			w.Violate(RuleChoice, got.id, []int{i}, "the claim asked for types %v and got task %d of type %s", op.Types, got.id, got.kind)
		}
		if best != nil && comesFirst(byID, best.task, got) {
			w.Violate(RuleChoice, got.id, best.and(i), "the claim took task %d (priority %d) at index %d, although task %d (priority %d) was pending from index %d to %d",
				got.id, got.priority, c.index, best.task.id, best.task.priority, best.first, best.last)
		}
	}
	if taken < max(op.Limit, 1) && best != nil {
		w.Violate(RuleNone, best.task.id, best.and(c.ops[0]), "the claim asked for %d tasks and got %d at index %d, although task %d was pending from index %d to %d",
			max(op.Limit, 1), taken, c.index, best.task.id, best.first, best.last)
	}
}

// and returns the ops that show the stretch, and one more.
func (st *stretch) and(op int) []int {
	return slices.DeleteFunc([]int{st.from, st.to, op}, func(i int) bool { return i < 0 })
}

// checkList checks what the list shows, and that it leaves out no task that was
// certainly pending, or completed.
func (w *logChecker) checkList(c *logCall, s *certain) {
	op := c.first
	shown := map[uint64]bool{}
	ordered := slices.IsSortedFunc(op.Listed, func(a, b history.Task) int {
		if op.Desc {
			a, b = b, a
		}
		return cmp.Compare(a.ID, b.ID)
	})
	for i := range op.Listed {
		t := &op.Listed[i]
		if shown[t.ID] || !ordered || op.Status != "" && t.Status != op.Status || op.TaskType != "" && t.Type != op.TaskType {
			w.Violate(RuleList, t.ID, c.ops, "the list (status %q, type %q) has task %d (%s, %s) where it should not be", op.Status, op.TaskType, t.ID, t.Status, t.Type)
		}
		shown[t.ID] = true
	}
	missing := func(id uint64, what string, ops []int) {
		if !shown[id] {
			w.Violate(RuleList, id, ops, "the list (status %q, type %q) at index %d leaves out task %d, which was %s", op.Status, op.TaskType, c.index, id, what)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		if op.Status != "" && op.Status != "pending" || op.TaskType != "" && op.TaskType != name {
			continue
		}
		s.types[name].byID.Scan(func(st *stretch) bool {
			if covers(op, st.task.id) {
				missing(st.task.id, "pending", st.and(c.ops[0]))
			}
			return true
		})
	}
	if op.Status != "" && op.Status != "completed" {
		return
	}
	each := func(id uint64, t *track) bool {
		if !covers(op, id) {
			return false
		}
		if op.TaskType == "" || op.TaskType == t.kind {
			missing(id, "completed", []int{t.endedOp, c.ops[0]})
		}
		return true
	}
	if op.Desc {
		s.completed.Reverse(each)
	} else {
		s.completed.Scan(each)
	}
}

// checkEntries checks, for the claims that share an entry, that there is an
// order of them in which each took the first that it could: a claim that passed
// by a task which another one of the entry took comes after that one.
func (w *logChecker) checkEntries(stretches []stretch) {
	claims := map[uint64][]*logCall{}
	for i := range w.calls {
		if c := &w.calls[i]; c.first.Kind == history.Claim && asks(c) && !saysNoTask(c.first) {
			claims[c.index] = append(claims[c.index], c)
		}
	}
	before := map[uint64]*stretch{} // by op: the task that it claimed was pending when the entry began
	for i := range stretches {
		if s := &stretches[i]; s.taken > 0 && s.to >= 0 && !s.task.held {
			before[uint64(s.to)] = s
		}
	}
	for _, at := range slices.Sorted(maps.Keys(claims)) {
		if len(claims[at]) > 1 && !w.haveOrder(claims[at], before) {
			var ops []int
			for _, c := range claims[at] {
				ops = append(ops, c.ops...)
			}
			w.Violate(RuleEntry, 0, ops, "no order of the %d claims of entry %d lets each take the first task that it could", len(claims[at]), at)
		}
	}
}

// haveOrder reports whether the claims can be put in order.
func (w *logChecker) haveOrder(claims []*logCall, before map[uint64]*stretch) bool {
	waits := make([]int, len(claims)) // claims that must come before
	then := make([][]int, len(claims))
	for i, c := range claims {
		for j, d := range claims {
			if i != j && w.passedBy(c, d, before) {
				then[j] = append(then[j], i)
				waits[i]++
			}
		}
	}
	var free []int
	for i := range claims {
		if waits[i] == 0 {
			free = append(free, i)
		}
	}
	done := 0
	for ; len(free) > 0; done++ {
		i := free[0]
		free = free[1:]
		for _, j := range then[i] {
			if waits[j]--; waits[j] == 0 {
				free = append(free, j)
			}
		}
	}
	return done == len(claims)
}

// passedBy reports whether c took a task although it could have had an earlier
// one, which d took.
func (w *logChecker) passedBy(c, d *logCall, before map[uint64]*stretch) bool {
	byID := c.first.SortBy == "created_at"
	for _, i := range d.ops {
		s := before[uint64(i)]
		if s == nil || len(c.first.Types) > 0 && !slices.Contains(c.first.Types, s.task.kind) {
			continue
		}
		for _, k := range c.ops {
			if got := w.tracks[w.h.Ops[k].TaskID]; got != nil && comesFirst(byID, s.task, got) {
				return true
			}
		}
	}
	return false
}

// covers reports whether the page that op shows reaches as far as the id.
func covers(op *history.Op, id uint64) bool {
	if !op.More {
		return true
	}
	if len(op.Listed) == 0 {
		return false
	}
	last := op.Listed[len(op.Listed)-1].ID
	if op.Desc {
		return id >= last
	}
	return id <= last
}
