package fsm

import (
	"math"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

func TestMachine_SchedulesTasks(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	delayed := s.submit(record.NewTask{DelayMS: 500})
	later := s.submit(record.NewTask{RunAt: s.T + 200})
	past := s.submit(record.NewTask{RunAt: s.T - 1})
	now := s.submit(record.NewTask{RunAt: s.T})
	forever := s.submit(record.NewTask{DelayMS: math.MaxInt64})
	for id, want := range map[uint64]int64{delayed: s.T + 500, later: s.T + 200, forever: math.MaxInt64} {
		if got := s.status(id, record.StatusScheduled); got.RunAt != want {
			t.Errorf("task %d runs at %d, want %d", id, got.RunAt, want)
		}
	}
	for id, want := range map[uint64]int64{past: s.T - 1, now: s.T} {
		if got := s.status(id, record.StatusPending); got.RunAt != want {
			t.Errorf("task %d was given %d, has %d", id, want, got.RunAt)
		}
	}
	s.refuse(command.ClaimTask{ID: later, WorkerID: "w1"}, CodeTaskNotClaimable)
	s.due(s.T + 200)
	s.wait(199)
	s.must(command.Tick{})
	s.status(later, record.StatusScheduled)
	s.wait(1)
	s.must(command.Tick{})
	s.status(later, record.StatusPending)
	s.status(delayed, record.StatusScheduled)
	s.wait(1000)
	s.status(delayed, record.StatusScheduled) // nothing but a tick does it
	s.must(command.Tick{})
	s.status(delayed, record.StatusPending)
	s.due(math.MaxInt64)
}

// "not started by then: failed, error `expired before it was claimed`"
func TestMachine_ExpiresTasksThatWereNotStarted(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	at := s.T + 100
	waits := s.submit(record.NewTask{ExpiresAt: at})
	scheduled := s.submit(record.NewTask{ExpiresAt: at, RunAt: at + 50})
	dueTogether := s.submit(record.NewTask{ExpiresAt: at, RunAt: at})
	claimed := s.submit(record.NewTask{ExpiresAt: at})
	failedOnce := s.submit(record.NewTask{ExpiresAt: at})
	releasedLate := s.submit(record.NewTask{ExpiresAt: at})
	late := s.submit(record.NewTask{ExpiresAt: s.T - 5})
	s.status(late, record.StatusPending)
	s.due(s.T - 5)
	hold := s.claim(claimed)
	s.must(command.Fail{Hold: s.claim(failedOnce)})
	released := s.claim(releasedLate)
	s.must(command.Release{Hold: released})
	s.wait(99)
	s.must(command.Tick{})
	s.status(late, record.StatusFailed)
	s.status(waits, record.StatusPending)
	s.due(at)
	s.wait(1)
	s.must(command.Tick{})
	for _, id := range []uint64{waits, scheduled, dueTogether, releasedLate} {
		got := s.status(id, record.StatusFailed)
		if got.Error != "expired before it was claimed" || got.WorkerID != "" || got.CompletedAt != at {
			t.Errorf("task %d expired as %+v", id, got)
		}
	}
	if got := s.m.Get(releasedLate); got.Token != released.Token || len(got.Log) != 1 || got.Log[0].Outcome != record.OutcomeReleased {
		t.Errorf("after a release it expired as %+v", got)
	}
	s.status(failedOnce, record.StatusPending)
	s.must(command.Complete{Hold: hold})
	s.must(command.Cancel{ID: failedOnce})
	s.must(command.Retry{ID: failedOnce})
	s.must(command.Tick{})
	if got := s.status(failedOnce, record.StatusPending); got.Opts().ExpiresAt != at {
		t.Errorf("a task that was started loses its time: %+v", got.Options)
	}

	// A retry is meant: the time that has passed does not end the task again.
	s.must(command.Retry{ID: waits})
	s.wait(1)
	s.must(command.Tick{})
	s.status(waits, record.StatusPending)
	if s.m.Get(waits).Options != nil {
		t.Errorf("options %+v stay", s.m.Get(waits).Options)
	}
}

// A released task was not started: it may expire while it is claimed, and does
// once it is given back.
func TestMachine_ExpiresTasksThatAreGivenBackTooLate(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	id := s.submit(record.NewTask{ExpiresAt: s.T + 10})
	h := s.claim(id)
	s.wait(100)
	s.must(command.Tick{})
	s.status(id, record.StatusClaimed)
	s.must(command.Release{Hold: h})
	s.must(command.Tick{})
	s.status(id, record.StatusFailed)
}

func TestMachine_TickIsBounded(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	const n = 3
	many := make([]record.NewTask, dueTickMax+n)
	for i := range many {
		many[i] = record.NewTask{Type: "mail", MaxAttempts: 1, DelayMS: 10}
	}
	scheduled := s.do(command.Submit{Tasks: many}).Submitted
	for i := range many {
		many[i] = record.NewTask{Type: "scan", MaxAttempts: 1, ExpiresAt: s.T + 10}
	}
	expiring := s.do(command.Submit{Tasks: many}).Submitted
	s.wait(10)
	s.must(command.Tick{})
	for _, tasks := range [][]Submitted{scheduled, expiring} {
		last, first := tasks[dueTickMax-1].Task, tasks[dueTickMax].Task
		if s.m.Get(last.ID).Status == last.Status && last.Status == record.StatusScheduled || s.m.Get(first.ID).Status != first.Status {
			t.Errorf("after one tick tasks %d and %d are %v and %v", last.ID, first.ID, s.m.Get(last.ID).Status, s.m.Get(first.ID).Status)
		}
	}
	if got := s.m.Stats(s.Stamp).Counts; got[record.StatusScheduled] != n || got[record.StatusFailed] != dueTickMax {
		t.Errorf("after one tick %d are scheduled, %d failed", got[record.StatusScheduled], got[record.StatusFailed])
	}
	s.due(s.T)
	s.must(command.Tick{})
	s.due(s.T + failedRetentionMS)
	s.wait(failedRetentionMS)
	s.must(command.Tick{})
	if got := s.m.gone.table.Len(); got != dueTickMax {
		t.Errorf("one tick removed %d tasks", got)
	}
	s.must(command.Tick{})
	s.due(0)
	s.wait(goneMS)
	s.must(command.Tick{})
	if got := s.m.gone.table.Len(); got != n {
		t.Errorf("one tick forgot all but %d tasks, want %d", got, n)
	}
}
