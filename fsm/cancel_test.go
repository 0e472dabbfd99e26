package fsm

import (
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

func TestMachine_CancelsTasksThatAreNotClaimed(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	pending := s.submit(record.NewTask{})
	scheduled := s.submit(record.NewTask{DelayMS: 10})
	failedOnce := s.submit(record.NewTask{})
	h := s.claim(failedOnce)
	s.must(command.Fail{Hold: h, Error: "no"})
	for _, id := range []uint64{pending, scheduled, failedOnce} {
		s.wait(1)
		if r := s.must(command.Cancel{ID: id}); r.Repeated || r.Task.Status != record.StatusCancelled || r.Task.CompletedAt != s.T || r.Task.CancelRequested {
			t.Errorf("cancelled as %+v", r.Task)
		}
		if r := s.must(command.Cancel{ID: id}); !r.Repeated {
			t.Error("cancelling a cancelled task is no repeat")
		}
	}
	if got := s.m.Get(failedOnce); got.Token != h.Token || got.WorkerID != "" || got.Error != "no" {
		t.Errorf("after an attempt it is cancelled as %+v", got)
	}
	if r := s.must(command.Fail{Hold: h}); !r.Repeated {
		t.Error("the fail of the last claim is no repeat")
	}
	s.refuse(command.Fail{Hold: command.Hold{ID: failedOnce, WorkerID: "w1"}}, CodeTaskCancelled) // that is not what ended it
	s.refuse(command.Complete{Hold: h}, CodeTaskCancelled)
	done := s.submit(record.NewTask{})
	s.must(command.Complete{Hold: s.claim(done)})
	s.refuse(command.Cancel{ID: done}, CodeTaskCompleted)
	failed := s.submit(record.NewTask{})
	s.must(command.Fail{Hold: s.claim(failed), Permanent: true})
	s.refuse(command.Cancel{ID: failed}, CodeTaskFailed)
	s.refuse(command.Cancel{ID: 999}, CodeTaskNotFound)
}

// "A fail, expiry, release or retry after a cancel was asked ends the task as
// `cancelled`"; "its complete still counts".
func TestMachine_CancelsClaimedTasks(t *testing.T) {
	t.Parallel()
	backoff := &record.Backoff{InitialMS: 1000, MaxMS: 1000, Factor: record.Million}
	for _, c := range []struct {
		name     string
		attempts int32
		end      func(*story, command.Hold) command.Command
		want     record.Status
		outcome  record.Outcome
	}{
		{"a fail", 3, func(_ *story, h command.Hold) command.Command { return command.Fail{Hold: h, Error: "no"} }, record.StatusCancelled, record.OutcomeFailed},
		{"the last fail", 1, func(_ *story, h command.Hold) command.Command { return command.Fail{Hold: h} }, record.StatusCancelled, record.OutcomeFailed},
		{"a permanent fail", 3, func(_ *story, h command.Hold) command.Command { return command.Fail{Hold: h, Permanent: true} }, record.StatusCancelled, record.OutcomeFailed},
		{"a fail that asks for a retry", 3, func(_ *story, h command.Hold) command.Command {
			return command.Fail{Hold: h, RetryIn: true, RetryInMS: 5}
		}, record.StatusCancelled, record.OutcomeFailed},
		{"a release", 3, func(_ *story, h command.Hold) command.Command { return command.Release{Hold: h, DelayMS: 5} }, record.StatusCancelled, record.OutcomeReleased},
		{"an expiry", 3, func(s *story, h command.Hold) command.Command {
			l, _ := s.m.Lease(h.ID)
			return command.Expire{Items: []command.Lease{l}}
		}, record.StatusCancelled, record.OutcomeExpired},
		{"the last expiry", 1, func(s *story, h command.Hold) command.Command {
			l, _ := s.m.Lease(h.ID)
			return command.Expire{Items: []command.Lease{l}}
		}, record.StatusCancelled, record.OutcomeExpired},
		{"a retry", 3, func(_ *story, h command.Hold) command.Command { return command.Retry{ID: h.ID, Token: h.Token} }, record.StatusCancelled, record.OutcomeCancelled},
		{"a retry without attempts left", 1, func(_ *story, h command.Hold) command.Command { return command.Retry{ID: h.ID} }, record.StatusCancelled, record.OutcomeCancelled},
		{"a complete", 3, func(_ *story, h command.Hold) command.Command { return command.Complete{Hold: h} }, record.StatusCompleted, record.OutcomeCompleted},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			h := s.claim(s.submit(record.NewTask{MaxAttempts: c.attempts, Backoff: backoff}))
			if r := s.must(command.Cancel{ID: h.ID}); r.Repeated || r.Task.Status != record.StatusClaimed || !r.Task.CancelRequested {
				t.Errorf("asked, the task is %+v", r.Task)
			}
			if r := s.must(command.Cancel{ID: h.ID}); !r.Repeated {
				t.Error("asking again is no repeat")
			}
			if r := s.must(command.Extend{Hold: h}); !r.Task.CancelRequested {
				t.Error("an extend does not tell the worker")
			}
			end := c.end(s, h)
			s.must(end)
			got := s.status(h.ID, c.want)
			if got.Claims()[0].Outcome != c.outcome || got.Token != h.Token || (got.WorkerID == "") != (c.want == record.StatusCancelled) || got.Error == leaseExpired {
				t.Errorf("ended as %+v", got)
			}
			if _, expiry := end.(command.Expire); expiry {
				return
			}
			if r, named := end.(command.Retry); named && r.Token == 0 {
				return // nothing tells it from a new one
			}
			if r := s.must(end); !r.Repeated || r.Task.Status != c.want {
				t.Errorf("the same once more: repeated %v, %+v", r.Repeated, r.Task)
			}
		})
	}
}

// A retry is the answer to a cancel: it takes the request back.
func TestMachine_RetriesCancelledTasks(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	h := s.claim(s.submit(record.NewTask{}))
	s.must(command.Cancel{ID: h.ID})
	s.must(command.Fail{Hold: h})
	s.must(command.Retry{ID: h.ID, Token: h.Token})
	if got := s.status(h.ID, record.StatusPending); got.CancelRequested || got.CompletedAt != 0 || got.RemoveAt != 0 {
		t.Errorf("retried as %+v", got)
	}
	s.must(command.Fail{Hold: s.claim(h.ID)})
	s.status(h.ID, record.StatusPending)
	s.due(0)
}

func TestMachine_RetriesTasksThatWait(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	id := s.submit(record.NewTask{DelayMS: 1000})
	if r := s.must(command.Retry{ID: id, Token: 77, AddAttempts: 5}); !r.Repeated || r.Task.Status != record.StatusPending || r.Task.MaxAttempts != 3 {
		t.Errorf("a scheduled task is retried as %+v", r)
	}
	s.due(0)
	if r := s.must(command.Retry{ID: id}); !r.Repeated {
		t.Error("the retry of a pending task is no repeat")
	}
	h := s.claim(id)
	s.must(command.Fail{Hold: h, Permanent: true})
	s.due(s.T + failedRetentionMS)
	s.must(command.Retry{ID: id})
	s.due(0)
}

// "unique: active: only until it ends"
func TestMachine_FreesActiveKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  func(*story, uint64)
	}{
		{"completed", func(s *story, id uint64) { s.must(command.Complete{Hold: s.claim(id)}) }},
		{"failed", func(s *story, id uint64) { s.must(command.Fail{Hold: s.claim(id), Permanent: true}) }},
		{"cancelled", func(s *story, id uint64) { s.must(command.Cancel{ID: id}) }},
		{"expired", func(s *story, _ uint64) {
			s.wait(100)
			s.must(command.Tick{})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			n := record.NewTask{Key: "k", UniqueActive: true, ExpiresAt: s.T + 50}
			first := s.submit(n)
			again := record.NewTask{Type: "mail", Key: "k", UniqueActive: true}
			if r := s.must(command.Submit{Tasks: []record.NewTask{again}}).Submitted[0]; r.Created || r.Task.ID != first {
				t.Fatalf("while it is active: %+v", r)
			}
			c.end(s, first)
			if s.m.ByKey("k") != nil {
				t.Error("an ended task has the key")
			}
			second := s.submit(again)
			if c.name != "completed" {
				if r := s.refuse(command.Retry{ID: first}, CodeKeyTaken); r.Task == nil || r.Task.ID != second {
					t.Errorf("the refusal names %+v", r.Task)
				}
			}
			s.must(command.Delete{ID: first})
			if got := s.m.ByKey("k"); got == nil || got.ID != second {
				t.Errorf("the key leads to %+v", got)
			}
		})
	}
}

func TestMachine_RetriesTakeActiveKeysAgain(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	id := s.submit(record.NewTask{Key: "k", UniqueActive: true, RetentionMS: 100})
	s.must(command.Cancel{ID: id})
	s.must(command.Retry{ID: id})
	if got := s.m.ByKey("k"); got == nil || got.ID != id {
		t.Errorf("the key leads to %+v", got)
	}
	s.must(command.Cancel{ID: id})
	s.wait(100)
	s.must(command.Tick{})
	s.submit(record.NewTask{Key: "k"}) // what is gone does not have it either
}
