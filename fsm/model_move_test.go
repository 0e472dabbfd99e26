package fsm

import (
	"cmp"
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// moveTasks starts or cancels a move of the waiting tasks of a type.
func (s *model) moveTasks(c command.MoveTasks) Result {
	x := s.typeRecord(c.Type)
	running := x != nil && x.move != nil && x.move.Status == record.MoveRunning
	switch {
	case x == nil, c.Cancel == 0 && running, c.Cancel != 0 && (!running || x.move.Number != c.Cancel):
		view := s.typeView(c.Type)
		return Result{Code: CodeInvalidRequest, Type: &view}
	case running:
		x.move.Status = record.MoveCancelled
	default:
		x.move = &record.Move{
			Number: s.index, To: c.To, Rate: c.Rate, Until: s.ids + 1, ToMove: s.typeView(c.Type).Counts[record.StatusPending],
			StartedAt: s.t, NextAt: s.t, Status: record.MoveRunning,
		}
	}
	s.tell(event.TypeChanged, nil, nil, by(c.Type, c.By))
	view := s.typeView(c.Type)
	return Result{Type: &view}
}

// moveDue gives each move that is due one turn, the one that was due first before the others.
func (s *model) moveDue() {
	types := slices.DeleteFunc(slices.Clone(s.types), func(x *modelType) bool {
		return x.move == nil || x.move.Status != record.MoveRunning || x.move.NextAt > s.t
	})
	slices.SortFunc(types, func(a, b *modelType) int {
		return cmp.Or(cmp.Compare(a.move.NextAt, b.move.NextAt), cmp.Compare(a.name, b.name))
	})
	for _, x := range types {
		s.moveTurn(x)
	}
}

// moveTurn moves as many tasks as the rate lets in a second. Logs have fewer than a turn may move.
func (s *model) moveTurn(x *modelType) {
	v, n := x.move, int64(0)
	for v.Rate == 0 || n < int64(v.Rate) {
		id := s.typeView(x.name).OldestPending
		if id == 0 || id >= v.Until {
			v.Status = record.MoveCompleted
			break
		}
		t := s.find(id)
		to := v.To
		if from := t.Opts().Origin; to == "" && from != nil {
			to = from.Type
		}
		switch other := s.typeRecord(to); {
		case to == "":
			v.Failure = record.MoveNoOrigin
		case t.Opts().Step != nil:
			v.Failure = record.MoveOfStep
		case other == nil || (other.Queue == "") != (x.Queue == ""):
			v.Failure = record.MoveNoType
		}
		if v.Failure != 0 {
			v.Status = record.MoveFailed
			break
		}
		s.cancelOrAsk(t)
		s.leaveIfNotKept(t)
		s.copyOf(t, to, "moved from task ")
		n++
	}
	v.Moved += n
	if v.NextAt = s.t + 1; v.Rate > 0 {
		v.NextAt = s.t
		for (v.NextAt-s.t)*int64(v.Rate) < n*1000 {
			v.NextAt++
		}
	}
}
