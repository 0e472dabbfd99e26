package fsm

import (
	"cmp"
	"slices"

	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

const (
	dayMS      = 86_400_000
	tenMinutes = 600_000
)

// modelCount is a task of the type that was submitted, for which stands pending, or that ended.
type modelCount struct {
	of   string
	what record.Status
	at   int64
}

// perS returns the rate of the type over the last minute. For events 60 to 65 s ago it assumes
// that those of 5 s were spread evenly.
func (s *model) perS(name string, what record.Status) (rate int64) {
	for _, c := range s.counted {
		slots := s.t/5000 - c.at/5000
		switch {
		case c.of != name || c.what != what || slots > 12:
		case slots == 12:
			rate += 5000 - s.t%5000
		default:
			rate += 5000
		}
	}
	return rate * 1_000_000 / 60 / 5000
}

// ended notes when an ended task is to be removed, and what it remembers.
func (s *model) ended(t *record.Task) {
	t.CompletedAt = s.t
	s.setSignalUntil(t, 0)
	s.counted = append(s.counted, modelCount{t.Type, t.Status, s.t})
	s.endedNow = append(s.endedNow, t.ID)
	*map[record.Status]*int{
		record.StatusCompleted: &s.tally.Completed, record.StatusFailed: &s.tally.Failed, record.StatusCancelled: &s.tally.Cancelled,
	}[t.Status]++
	t.Token = lastClaimEnded(t).Token
	if t.Status == record.StatusCancelled {
		t.WorkerID = ""
	}
	if t.Opts().Step == nil { // steps go with their parent
		if keep := s.retention(t); keep > 0 {
			t.RemoveAt = s.t + keep
		}
	}
}

// retention returns how long an ended task is kept: its own, else its type's or the server's,
// else the built-in retention.
func (s *model) retention(t *record.Task) int64 {
	for _, keep := range []int64{t.Opts().RetentionMS, s.inForce(t.Type).RetentionMS} {
		if keep != 0 {
			return keep
		}
	}
	if t.Status == record.StatusFailed {
		return 14 * dayMS
	}
	return dayMS
}

// leaveIfNotKept removes a task that is not to be kept when it has ended.
func (s *model) leaveIfNotKept(t *record.Task) {
	if t.Status >= record.StatusCompleted && t.Opts().Step == nil && s.retention(t) == record.KeepNone {
		t.RemoveAt = t.CompletedAt
		s.leaving = append(s.leaving, t)
	}
}

// retire removes an ended task, with its steps, and leaves what repeats need.
func (s *model) retire(t *record.Task) {
	for _, step := range s.stepsOf(t) {
		s.retire(step)
	}
	s.remove(t)
	s.removed++
	s.endedNow = append(s.endedNow, t.ID)
	g := &modelGone{task: t, untilU: s.u + tenMinutes}
	if ms := t.Opts().UniqueMS; ms != 0 && s.inWindow(t) {
		g.untilU = max(g.untilU, s.u+t.CreatedAt+ms-s.t)
	} else if ms != 0 {
		g.task = s.answer(t)
		g.task.Key = ""
	}
	s.gone = append(s.gone, g)
	slices.SortStableFunc(s.gone, func(a, b *modelGone) int {
		return cmp.Or(cmp.Compare(a.untilU, b.untilU), cmp.Compare(a.task.ID, b.task.ID))
	})
	if len(s.gone) > s.mostGone {
		s.gone = s.gone[len(s.gone)-s.mostGone:]
	}
}

// forget forgets n removed tasks and claim requests, those first whose time would come
// first.
func (s *model) forget(n int) Result {
	s.gone = slices.DeleteFunc(s.gone, func(g *modelGone) bool { return g.untilU <= s.u })
	s.requests = slices.DeleteFunc(s.requests, func(r *modelRequest) bool { return r.endedU >= 0 && r.endedU+tenMinutes <= s.u })
	for range n {
		var first *modelRequest
		for _, r := range s.requests {
			if r.endedU >= 0 && (first == nil || r.endedU < first.endedU) {
				first = r
			}
		}
		if len(s.gone) > 0 && (first == nil || s.gone[0].untilU <= first.endedU+tenMinutes) {
			s.gone = s.gone[1:]
			continue
		}
		s.requests = slices.DeleteFunc(s.requests, func(r *modelRequest) bool { return r == first })
	}
	return Result{Forgotten: n}
}

// tick does what is due: by time, then by id.
func (s *model) tick() {
	for {
		var next *record.Task
		var nextDue int64
		for _, t := range s.tasks {
			if due := s.due(t); due != 0 && due <= s.t && (next == nil || due < nextDue) {
				next, nextDue = t, due
			}
		}
		if next == nil {
			s.moveDue()
			s.dropFinalizersDue()
			return
		}
		s.doDue(next)
	}
}

// due is when there is something to do about the task, 0 if there is not.
func (s *model) due(t *record.Task) int64 {
	due := t.RemoveAt
	if t.Status == record.StatusScheduled {
		due = t.RunAt
	}
	if s.mayExpire(t) && (due == 0 || t.Opts().ExpiresAt < due) {
		due = t.Opts().ExpiresAt
	}
	if until := t.Opts().SignalUntil; until != 0 && (due == 0 || until < due) {
		due = until
	}
	return due
}

// mayExpire tells whether the task is one that has to be started in time.
func (s *model) mayExpire(t *record.Task) bool {
	return t.Opts().ExpiresAt != 0 && (t.Attempts == 0 || t.Opts().ExpiresAgain) && t.Status < record.StatusClaimed
}

func (s *model) doDue(t *record.Task) {
	switch {
	case t.Status >= record.StatusCompleted:
		s.retire(t)
	case s.mayExpire(t) && t.Opts().ExpiresAt <= s.t && (t.Opts().SignalUntil == 0 || t.Opts().ExpiresAt <= t.Opts().SignalUntil) && (t.Status != record.StatusScheduled || t.Opts().ExpiresAt < t.RunAt):
		t.Status, t.Error, t.UpdatedAt = record.StatusFailed, "expired before it was claimed", s.t
		if t.Attempts > 0 {
			t.Error += " again"
		}
		s.ended(t)
		s.leaveIfNotKept(t)
		s.tell(event.Expired, t, nil, "")
		s.follow(t)
	case t.Opts().SignalUntil != 0:
		t.Status, t.Error, t.UpdatedAt = record.StatusFailed, "no signal came in time", s.t
		s.ended(t)
		s.leaveIfNotKept(t)
		s.tell(event.Expired, t, nil, "")
		s.follow(t)
	default:
		t.Status, t.UpdatedAt = record.StatusPending, s.t
	}
}

// evict removes n ended tasks: the oldest completed and cancelled ones, then
// the oldest failed ones. Steps go with their parent.
func (s *model) evict(n int) Result {
	var ended []*record.Task
	for _, t := range s.tasks {
		if t.Status >= record.StatusCompleted && t.Opts().Step == nil {
			ended = append(ended, t)
		}
	}
	slices.SortStableFunc(ended, func(a, b *record.Task) int {
		failed := func(t *record.Task) int {
			if t.Status == record.StatusFailed {
				return 1
			}
			return 0
		}
		return cmp.Or(failed(a)-failed(b), cmp.Compare(a.CompletedAt, b.CompletedAt), cmp.Compare(a.ID, b.ID))
	})
	gone := 0
	for _, t := range ended {
		if gone >= n {
			break
		}
		s.evicted, s.evictedBytes = t, record.HeldBytes(t)
		for _, step := range s.stepsOf(t) {
			s.evictedBytes += record.HeldBytes(step)
		}
		gone += 1 + len(s.stepsOf(t))
		s.retire(t)
	}
	return Result{Evicted: gone}
}
