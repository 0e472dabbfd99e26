package index

import (
	"cmp"
	"math"
	"slices"
)

// Turns keeps the saved order in which the shares of fair types take turns.
type Turns interface {
	// Begin adds a turn behind all others and returns its number, which is higher than theirs.
	Begin(taskType, shareKey string, priority int32) (number uint64)
	// End removes a turn.
	End(number uint64)
}

// startTurns makes the type fair. Shares whose turns were not restored come in the order of
// their oldest tasks.
func (ts *Type) startTurns(turns Turns) {
	type waiting struct {
		*stock
		priority int32
		oldest   uint64
	}
	var all []waiting
	ts.turns = new(newLazyTournament())
	ts.eachStock(func(s *stock) {
		s.turn.Of = s
		ts.turns.Add(&s.turn)
		for _, q := range s.queues {
			for priority, l := range q.levels { // sorted below
				all = append(all, waiting{s, priority, l.min})
			}
		}
	})
	slices.SortFunc(all, func(a, b waiting) int { return cmp.Compare(a.oldest, b.oldest) })
	for _, w := range all {
		w.touched = append(w.touched, w.priority)
		ts.settleTurns(w.stock, turns)
	}
}

// stopTurns makes the type not fair.
func (ts *Type) stopTurns(turns Turns) {
	ts.turns = nil
	ts.eachStock(func(s *stock) {
		for _, number := range s.numbers { // the order makes no difference
			turns.End(number)
		}
		s.numbers, s.touched = nil, nil
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

// settleTurns begins and ends turns of the share after its tasks have changed.
func (ts *Type) settleTurns(s *stock, turns Turns) {
	for _, priority := range s.touched {
		number, has := s.numbers[priority]
		switch waits := s.waitsAt(priority); {
		case waits && !has:
			s.setTurn(priority, turns.Begin(ts.name, s.key, priority))
		case has && !waits:
			turns.End(number)
			delete(s.numbers, priority)
		}
	}
	s.touched = s.touched[:0]
	ts.placeTurn(s)
}

// tookTurn moves the share behind the others of the priority, if it has more tasks of it.
func (ts *Type) tookTurn(s *stock, priority int32, turns Turns) {
	if number, waits := s.numbers[priority]; waits {
		turns.End(number)
		s.numbers[priority] = turns.Begin(ts.name, s.key, priority)
		ts.placeTurn(s)
	}
}

// placeTurn updates the rank of the share among those of its type: by its highest priority,
// then by the number of its turn.
func (ts *Type) placeTurn(s *stock) {
	ranks := noRanks
	if !s.closed && s.count > 0 {
		first := s.highest()
		ranks[highest] = rank{first.first, s.numbers[first.highest()]}
	}
	ts.turns.Put(&s.turn, &ranks)
}

// highest returns the rank of the share's first task by priority, highest first.
func (s *stock) highest() rank {
	first := noRank
	for _, q := range s.queues {
		first = first.or(q.First()[highest])
	}
	return first
}

// next returns the share of a fair type whose turn it is. The type must be open.
func (ts *Type) next() *stock {
	ts.turns.First(highest)
	return ts.turns.Winner(highest).Of.(*stock)
}

func (s *stock) setTurn(priority int32, number uint64) {
	if s.numbers == nil {
		s.numbers = map[int32]uint64{}
	}
	s.numbers[priority] = number
}

// waitsAt reports whether the share has claimable tasks of the priority.
func (s *stock) waitsAt(priority int32) bool {
	return slices.ContainsFunc(s.queues, func(q *queue) bool { return q.level(priority) != nil })
}

// highest returns the priority of the task, from its rank in Highest.
func (r rank) highest() int32 { return int32(math.MaxInt32 - int64(r.first)) }

// touch notes that the share's turn may have to begin or end. The type must be settled
// afterwards.
func (ts *Type) touch(s *stock, priority int32) {
	if n := len(s.touched); ts.turns != nil && (n == 0 || s.touched[n-1] != priority) {
		s.touched = append(s.touched, priority)
	}
}

// RestoreTurn sets the number of a saved turn. It returns what is wrong with it, or "". Tasks
// must be in their shares. Limit or EndUndo must follow.
func (s *Types) RestoreTurn(ts *Type, shareKey string, priority int32, number uint64) (problem string) {
	of := ts.stockOf(shareKey)
	switch {
	case of == nil || !of.waitsAt(priority):
		return "its share has no claimable task of the priority"
	case of.numbers[priority] != 0:
		return "its share has two turns"
	}
	of.setTurn(priority, number)
	s.settleLater(ts, of)
	return ""
}

// ForgetTurn forgets a turn that an undo is about to remove.
func (s *Types) ForgetTurn(ts *Type, shareKey string, priority int32) {
	if of := ts.stockOf(shareKey); of != nil {
		delete(of.numbers, priority)
		s.settleLater(ts, of)
	}
}

// BeginUndo keeps shares and turns of fair types, although their tasks leave, until EndUndo.
func (s *Types) BeginUndo() { s.undoing = true }

// EndUndo settles what BeginUndo kept, at time now by T. The tasks and turns must be restored.
func (s *Types) EndUndo(turns Turns, now int64) {
	s.undoing = false
	for _, u := range s.unsettled {
		if u.of.turns == nil || u.of.stockOf(u.key) != u.stock {
			continue // the type has gone, or the share was settled
		}
		if u.key != "" {
			u.of.shareOf(u.key)
		}
		s.settle(u.of, turns)
		s.place(u.of, now)
	}
	s.unsettled = nil
}

// unsettled is a share of a fair type during an undo.
type unsettled struct {
	*stock
	of *Type
}

// settleLater leaves the share of a fair type to EndUndo.
func (s *Types) settleLater(ts *Type, of *stock) {
	if ts.turns != nil {
		s.unsettled = append(s.unsettled, unsettled{of, ts})
	}
}
