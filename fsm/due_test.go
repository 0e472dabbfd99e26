package fsm

import (
	"math"
	"testing"
)

func TestMachine_SchedulesTasks(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	delayed := s.submit(NewTask{DelayMS: 500})
	later := s.submit(NewTask{RunAt: s.T + 200})
	past := s.submit(NewTask{RunAt: s.T - 1})
	now := s.submit(NewTask{RunAt: s.T})
	forever := s.submit(NewTask{DelayMS: math.MaxInt64})
	for id, want := range map[uint64]int64{delayed: s.T + 500, later: s.T + 200, forever: math.MaxInt64} {
		if got := s.status(id, StatusScheduled); got.RunAt != want {
			t.Errorf("task %d runs at %d, want %d", id, got.RunAt, want)
		}
	}
	for id, want := range map[uint64]int64{past: s.T - 1, now: s.T} {
		if got := s.status(id, StatusPending); got.RunAt != want {
			t.Errorf("task %d was given %d, has %d", id, want, got.RunAt)
		}
	}
	s.refuse(ClaimTask{ID: later, WorkerID: "w1"}, CodeTaskNotClaimable)
	s.due(s.T + 200)
	s.wait(199)
	s.must(Tick{})
	s.status(later, StatusScheduled)
	s.wait(1)
	s.must(Tick{})
	s.status(later, StatusPending)
	s.status(delayed, StatusScheduled)
	s.wait(1000)
	s.status(delayed, StatusScheduled) // nothing but a tick does it
	s.must(Tick{})
	s.status(delayed, StatusPending)
	s.due(math.MaxInt64)
}

// "not started by then: failed, error `expired before it was claimed`"
func TestMachine_ExpiresTasksThatWereNotStarted(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	at := s.T + 100
	waits := s.submit(NewTask{ExpiresAt: at})
	scheduled := s.submit(NewTask{ExpiresAt: at, RunAt: at + 50})
	dueTogether := s.submit(NewTask{ExpiresAt: at, RunAt: at})
	claimed := s.submit(NewTask{ExpiresAt: at})
	failedOnce := s.submit(NewTask{ExpiresAt: at})
	releasedLate := s.submit(NewTask{ExpiresAt: at})
	late := s.submit(NewTask{ExpiresAt: s.T - 5})
	s.status(late, StatusPending)
	s.due(s.T - 5)
	hold := s.claim(claimed)
	s.must(Fail{Hold: s.claim(failedOnce)})
	released := s.claim(releasedLate)
	s.must(Release{Hold: released})
	s.wait(99)
	s.must(Tick{})
	s.status(late, StatusFailed)
	s.status(waits, StatusPending)
	s.due(at)
	s.wait(1)
	s.must(Tick{})
	for _, id := range []uint64{waits, scheduled, dueTogether, releasedLate} {
		got := s.status(id, StatusFailed)
		if got.Error != "expired before it was claimed" || got.WorkerID != "" || got.CompletedAt != at {
			t.Errorf("task %d expired as %+v", id, got)
		}
	}
	if got := s.m.Get(releasedLate); got.Token != released.Token || len(got.Log) != 1 || got.Log[0].Outcome != OutcomeReleased {
		t.Errorf("after a release it expired as %+v", got)
	}
	s.status(failedOnce, StatusPending)
	s.must(Complete{Hold: hold})
	s.must(Cancel{ID: failedOnce})
	s.must(Retry{ID: failedOnce})
	s.must(Tick{})
	if got := s.status(failedOnce, StatusPending); got.options().ExpiresAt != at {
		t.Errorf("a task that was started loses its time: %+v", got.Options)
	}

	// A retry is meant: the time that has passed does not end the task again.
	s.must(Retry{ID: waits})
	s.wait(1)
	s.must(Tick{})
	s.status(waits, StatusPending)
	if s.m.Get(waits).Options != nil {
		t.Errorf("options %+v stay", s.m.Get(waits).Options)
	}
}

// A released task was not started: it may expire while it is claimed, and does
// once it is given back.
func TestMachine_ExpiresTasksThatAreGivenBackTooLate(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	id := s.submit(NewTask{ExpiresAt: s.T + 10})
	h := s.claim(id)
	s.wait(100)
	s.must(Tick{})
	s.status(id, StatusClaimed)
	s.must(Release{Hold: h})
	s.must(Tick{})
	s.status(id, StatusFailed)
}

func TestMachine_TickIsBounded(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	const n = 3
	many := make([]NewTask, dueTickMax+n)
	for i := range many {
		many[i] = NewTask{Type: "mail", MaxAttempts: 1, DelayMS: 10}
	}
	scheduled := s.do(Submit{Tasks: many}).Submitted
	for i := range many {
		many[i] = NewTask{Type: "scan", MaxAttempts: 1, ExpiresAt: s.T + 10}
	}
	expiring := s.do(Submit{Tasks: many}).Submitted
	s.wait(10)
	s.must(Tick{})
	for _, tasks := range [][]Submitted{scheduled, expiring} {
		last, first := tasks[dueTickMax-1].Task, tasks[dueTickMax].Task
		if s.m.Get(last.ID).Status == last.Status && last.Status == StatusScheduled || s.m.Get(first.ID).Status != first.Status {
			t.Errorf("after one tick tasks %d and %d are %v and %v", last.ID, first.ID, s.m.Get(last.ID).Status, s.m.Get(first.ID).Status)
		}
	}
	if got := s.m.Stats(s.Stamp).Counts; got[StatusScheduled] != n || got[StatusFailed] != dueTickMax {
		t.Errorf("after one tick %d are scheduled, %d failed", got[StatusScheduled], got[StatusFailed])
	}
	s.due(s.T)
	s.must(Tick{})
	s.due(s.T + failedRetentionMS)
	s.wait(failedRetentionMS)
	s.must(Tick{})
	if got := s.m.gone.Len(); got != dueTickMax {
		t.Errorf("one tick removed %d tasks", got)
	}
	s.must(Tick{})
	s.due(0)
	s.wait(goneMS)
	s.must(Tick{})
	if got := s.m.gone.Len(); got != n {
		t.Errorf("one tick forgot all but %d tasks, want %d", got, n)
	}
}

// Nothing of this happens before the cluster has agreed on the feature level.
func TestMachine_LevelOneKeepsNoTimes(t *testing.T) {
	t.Parallel()
	s := &story{t: t, m: New(), Stamp: Stamp{U: 1, T: storyEpoch}}
	s.do(SetLevel{Level: 1})
	id := s.submit(NewTask{RunAt: s.T + 100, RetentionMS: KeepNone})
	s.must(Complete{Hold: s.claim(id)})
	if got := s.status(id, StatusCompleted); got.RemoveAt != 0 || got.Options != nil {
		t.Errorf("at level 1 the task ended as %+v", got)
	}
	s.due(0)
	s.wait(2 * failedRetentionMS)
	s.must(Tick{})
	s.status(id, StatusCompleted)
	s.must(SetLevel{Level: levelLife})
	if got := s.must(Evict{}).Evicted; got != 1 {
		t.Errorf("%d evicted of what ended at level 1, want 1", got)
	}
}
