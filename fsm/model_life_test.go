package fsm

import (
	"cmp"
	"slices"

	"github.com/claimq/claimq/fsm/event"
)

const (
	dayMS      = 86_400_000
	tenMinutes = 600_000
)

// ended notes when an ended task is to be removed, and what it remembers.
func (s *model) ended(t *Task) {
	t.CompletedAt = s.t
	s.endedNow = append(s.endedNow, t.ID)
	*map[Status]*int{
		StatusCompleted: &s.tally.Completed, StatusFailed: &s.tally.Failed, StatusCancelled: &s.tally.Cancelled,
	}[t.Status]++
	t.Token = lastClaimEnded(t).Token
	if t.Status == StatusCancelled {
		t.WorkerID = ""
	}
	if s.level >= 2 && t.options().Step == nil { // steps go with their parent
		if keep := s.retention(t); keep > 0 {
			t.RemoveAt = s.t + keep
		}
	}
}

// retention is how long an ended task is kept: its own, else its type's or the
// server's, else what is built in.
func (s *model) retention(t *Task) int64 {
	for _, keep := range []int64{t.options().RetentionMS, s.inForce(t.Type).RetentionMS} {
		if keep != 0 {
			return keep
		}
	}
	if t.Status == StatusFailed {
		return 14 * dayMS
	}
	return dayMS
}

// leaveIfNotKept removes a task that is not to be kept when it has ended.
func (s *model) leaveIfNotKept(t *Task) {
	if t.Status >= StatusCompleted && s.level >= 2 && t.options().Step == nil && s.retention(t) == KeepNone {
		t.RemoveAt = t.CompletedAt
		s.leaving = append(s.leaving, t)
	}
}

// retire removes an ended task, with its steps, and leaves what repeats need.
func (s *model) retire(t *Task) {
	for _, step := range s.stepsOf(t) {
		s.retire(step)
	}
	s.remove(t)
	s.removed++
	s.endedNow = append(s.endedNow, t.ID)
	s.gone = append(s.gone, &modelGone{task: t, untilU: s.u + tenMinutes})
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
		var next *Task
		var nextDue int64
		for _, t := range s.tasks {
			if due := s.due(t); due != 0 && due <= s.t && (next == nil || due < nextDue) {
				next, nextDue = t, due
			}
		}
		if next == nil {
			s.dropFinalizersDue()
			return
		}
		s.doDue(next)
	}
}

// due is when there is something to do about the task, 0 if there is not.
func (s *model) due(t *Task) int64 {
	due := t.RemoveAt
	if t.Status == StatusScheduled {
		due = t.RunAt
	}
	if s.mayExpire(t) && (due == 0 || t.options().ExpiresAt < due) {
		due = t.options().ExpiresAt
	}
	return due
}

// mayExpire tells whether the task is one that has to be started in time.
func (s *model) mayExpire(t *Task) bool {
	return t.options().ExpiresAt != 0 && t.Attempts == 0 && t.Status < StatusClaimed
}

func (s *model) doDue(t *Task) {
	switch {
	case t.Status >= StatusCompleted:
		s.retire(t)
	case s.mayExpire(t) && t.options().ExpiresAt <= s.t && (t.Status != StatusScheduled || t.options().ExpiresAt < t.RunAt):
		t.Status, t.Error, t.UpdatedAt = StatusFailed, "expired before it was claimed", s.t
		s.ended(t)
		s.leaveIfNotKept(t)
		s.tell(event.Expired, t, nil, "")
		s.follow(t)
	default:
		t.Status, t.UpdatedAt = StatusPending, s.t
	}
}

// evict removes n ended tasks: the oldest completed and cancelled ones, then
// the oldest failed ones. Steps go with their parent.
func (s *model) evict(n int) Result {
	var ended []*Task
	for _, t := range s.tasks {
		if t.Status >= StatusCompleted && t.options().Step == nil {
			ended = append(ended, t)
		}
	}
	slices.SortStableFunc(ended, func(a, b *Task) int {
		failed := func(t *Task) int {
			if t.Status == StatusFailed {
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
		s.evicted, s.evictedBytes = t, heldBytes(t)
		for _, step := range s.stepsOf(t) {
			s.evictedBytes += heldBytes(step)
		}
		gone += 1 + len(s.stepsOf(t))
		s.retire(t)
	}
	return Result{Evicted: gone}
}
