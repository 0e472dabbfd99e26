package fsm

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/internal/proof"
)

// newParentOf returns a parent with steps a, b, ... that depend on nothing.
func newParentOf(steps int, byClaim, goOn bool) record.NewTask {
	p := &record.NewParent{ByClaim: byClaim, Continue: goOn}
	for place := range steps {
		task := record.NewTask{Type: "part", Params: []byte("1"), MaxAttempts: record.DefaultAttempts}
		p.Steps = append(p.Steps, record.NewStep{Name: string(rune('a' + place)), Task: task})
	}
	return record.NewTask{Type: "whole", MaxAttempts: record.DefaultAttempts, Parent: p}
}

// newParentStory returns a story whose task 1 is a parent that a processor ends,
// with the steps 2, 3, ... Failed steps take no others along.
func newParentStory(t *testing.T, steps int) *story {
	t.Helper()
	s := newStory(t)
	s.do(command.SetLevel{Level: record.FeatureLevel})
	s.do(command.Submit{Tasks: []record.NewTask{newParentOf(steps, true, true)}})
	return s
}

// endStep claims a step and completes it, with the result if it has one.
func (s *story) endStep(id uint64, result string) {
	s.t.Helper()
	s.do(command.ClaimTask{ID: id, WorkerID: "w"})
	c := command.Complete{Hold: command.Hold{ID: id, WorkerID: "w"}}
	if result != "" {
		c.Result = []byte(result)
	}
	if r := s.do(c); r.Code != "" {
		s.t.Fatalf("complete %d: %s", id, r.Code)
	}
}

// failStep claims a step and lets it fail for good.
func (s *story) failStep(id uint64, text string) {
	s.t.Helper()
	s.do(command.ClaimTask{ID: id, WorkerID: "w"})
	if r := s.do(command.Fail{Hold: command.Hold{ID: id, WorkerID: "w"}, Error: text, Permanent: true}); r.Code != "" {
		s.t.Fatalf("fail %d: %s", id, r.Code)
	}
}

// claimEnd claims the finalization of task 1 for 10 s.
func (s *story) claimEnd(processor string) *ParentAnswer {
	s.t.Helper()
	return s.do(command.ClaimFinalization{ID: 1, ProcessorID: processor, TimeoutMS: 10_000}).Parent
}

func (s *story) releaseEnd(processor string) *ParentAnswer {
	s.t.Helper()
	return s.do(command.ReleaseFinalization{ID: 1, ProcessorID: processor}).Parent
}

func (s *story) extendEnd(processor string, timeoutMS int64) *ParentAnswer {
	s.t.Helper()
	return s.do(command.ExtendFinalization{ID: 1, ProcessorID: processor, TimeoutMS: timeoutMS}).Parent
}

// view returns what is known of the finalization of task 1 by the story's clocks.
func (s *story) view() FinalizationView {
	v, _ := s.m.Finalization(1, s.Stamp)
	return v
}

// eventsOf returns the kinds of the task's last n events.
func (s *story) eventsOf(id uint64, n int) []string {
	var kinds []string
	for _, e := range s.m.TaskEvents(id) {
		kinds = append(kinds, e.Kind.String())
	}
	return kinds[max(len(kinds)-n, 0):]
}

// records returns the records of all tasks.
func (s *story) records() [][]byte {
	var all [][]byte
	for _, t := range s.m.tasks.All() {
		all = append(all, record.AppendTask(nil, t))
	}
	return all
}

func TestClaimFinalization_OrderOfChecks(t *testing.T) {
	t.Parallel()
	const over = 10_000 + 10_000/2000 + 2 // when a claim of 10 s is over
	done := command.Finalize{ID: 1, ProcessorID: "p2"}
	tests := []struct {
		name  string
		setup func(s *story)
		want  ParentAnswer // of p1; Token: that it has one
	}{
		{"nothing is there", func(s *story) { s.do(command.Cancel{ID: 1}); s.do(command.Delete{ID: 1}) }, ParentAnswer{Outcome: record.FinalizationNotFound, State: record.StateNotFound}},
		{"removed after it completed", func(s *story) { s.endStep(2, ""); s.endStep(3, ""); s.do(done); s.do(command.Evict{}) }, ParentAnswer{Outcome: record.FinalizationAlreadyDone, State: record.StateComplete}},
		{"removed after it was cancelled", func(s *story) { s.do(command.Cancel{ID: 1}); s.do(command.Evict{}) }, ParentAnswer{Outcome: record.FinalizationAlreadyDone, State: record.StateCancelled}},
		{"removed and forgotten", func(s *story) { s.do(command.Cancel{ID: 1}); s.do(command.Evict{}); s.wait(goneMS) }, ParentAnswer{Outcome: record.FinalizationNotFound, State: record.StateNotFound}},
		{"completed", func(s *story) { s.endStep(2, ""); s.endStep(3, ""); s.do(done) }, ParentAnswer{Outcome: record.FinalizationAlreadyDone, State: record.StateComplete}},
		{"failed, and was claimed", func(s *story) {
			s.endStep(2, "")
			s.endStep(3, "")
			s.claimEnd("p2")
			s.do(command.Finalize{ID: 1, ProcessorID: "p2", Failed: true, Error: "no"})
		}, ParentAnswer{Outcome: record.FinalizationAlreadyDone, State: record.StateFailed}},
		{"cancelled, and was claimed", func(s *story) { s.endStep(2, ""); s.claimEnd("p2"); s.do(command.Cancel{ID: 1}) }, ParentAnswer{Outcome: record.FinalizationAlreadyDone, State: record.StateCancelled}},
		{"cancelled, and was claimed by itself", func(s *story) { s.endStep(2, ""); s.claimEnd("p1"); s.do(command.Cancel{ID: 1}) }, ParentAnswer{Outcome: record.FinalizationAlreadyDone, State: record.StateCancelled}},
		{"no step has ended", func(*story) {}, ParentAnswer{Outcome: record.FinalizationNotReady, State: record.StateWaitingForSteps}},
		{"a step is cancelled", func(s *story) { s.do(command.Cancel{ID: 2}) }, ParentAnswer{Outcome: record.FinalizationNotReady, State: record.StateWaitingForSteps}},
		{"all steps are cancelled", func(s *story) { s.do(command.Cancel{ID: 2}); s.do(command.Cancel{ID: 3}) }, ParentAnswer{Outcome: record.FinalizationNotReady, State: record.StateEvaluatingResults}},
		{"a step is claimed", func(s *story) { s.do(command.ClaimTask{ID: 2, WorkerID: "w"}) }, ParentAnswer{Outcome: record.FinalizationNotReady, State: record.StateWaitingForSteps}},
		{"a step has completed", func(s *story) { s.endStep(2, "") }, ParentAnswer{Outcome: record.FinalizationClaimed, State: record.StateWaitingForSteps, Holder: "p1", Token: 1}},
		{"a step has failed", func(s *story) { s.failStep(2, "no") }, ParentAnswer{Outcome: record.FinalizationClaimed, State: record.StateWaitingForSteps, Holder: "p1", Token: 1}},
		{"all steps have ended", func(s *story) { s.endStep(2, ""); s.do(command.Cancel{ID: 3}) }, ParentAnswer{Outcome: record.FinalizationClaimed, State: record.StateEvaluatingResults, Holder: "p1", Token: 1}},
		{"another has it", func(s *story) { s.endStep(2, ""); s.claimEnd("p2") }, ParentAnswer{Outcome: record.FinalizationAlreadyClaimed, State: record.StateWaitingForSteps, Holder: "p2"}},
		{"another has it, at the last moment", func(s *story) { s.endStep(2, ""); s.claimEnd("p2"); s.wait(over - 1) }, ParentAnswer{Outcome: record.FinalizationAlreadyClaimed, State: record.StateWaitingForSteps, Holder: "p2"}},
		{"another had it", func(s *story) { s.endStep(2, ""); s.claimEnd("p2"); s.wait(over) }, ParentAnswer{Outcome: record.FinalizationClaimed, State: record.StateWaitingForSteps, Holder: "p1", Token: 1}},
		{"another gave it back", func(s *story) { s.endStep(2, ""); s.claimEnd("p2"); s.releaseEnd("p2") }, ParentAnswer{Outcome: record.FinalizationClaimed, State: record.StateWaitingForSteps, Holder: "p1", Token: 1}},
		{"it has it itself", func(s *story) { s.endStep(2, ""); s.claimEnd("p1") }, ParentAnswer{Outcome: record.FinalizationExtended, State: record.StateWaitingForSteps, Holder: "p1", Token: 1}},
		{"it had it itself", func(s *story) { s.endStep(2, ""); s.claimEnd("p1"); s.wait(over) }, ParentAnswer{Outcome: record.FinalizationClaimed, State: record.StateWaitingForSteps, Holder: "p1", Token: 1}},
		{"it has it, and the step that had failed was retried", func(s *story) { s.failStep(2, "no"); s.claimEnd("p1"); s.do(command.Retry{ID: 1}) }, ParentAnswer{Outcome: record.FinalizationExtended, State: record.StateWaitingForSteps, Holder: "p1", Token: 1}},
		{"another had it, and the step that had failed was retried", func(s *story) { s.failStep(2, "no"); s.claimEnd("p2"); s.do(command.Retry{ID: 1}); s.wait(over) }, ParentAnswer{Outcome: record.FinalizationNotReady, State: record.StateWaitingForSteps}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newParentStory(t, 2)
			test.setup(s)
			before, events := s.view(), len(s.m.TaskEvents(1))
			token := s.m.header.NextToken
			got := *s.claimEnd("p1")
			switch test.want.Outcome {
			case record.FinalizationClaimed:
				test.want.Token = token
			case record.FinalizationExtended:
				test.want.Token = token - 1
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if told := len(s.m.TaskEvents(1)) > events; told != (test.want.Outcome == record.FinalizationClaimed) || told && s.eventsOf(1, 1)[0] != "finalization_claimed" {
				t.Errorf("events are %v", s.eventsOf(1, 9))
			}
			if s.m.Get(1) == nil {
				return
			}
			after := s.view()
			want := append(slices.Clone(before.Attempts), record.FinalizationAttempt{
				ProcessorID: "p1", Outcome: test.want.Outcome, Holder: test.want.Holder, State: test.want.State, At: s.T,
			})
			if diff := cmp.Diff(want, after.Attempts); diff != "" || after.ClaimedBy != test.want.Holder {
				t.Errorf("claimed by %q; attempts (-want +got):\n%s", after.ClaimedBy, diff)
			}
		})
	}
}

// TestClaimFinalization_OfTasksWithoutSteps ensures that plain tasks, and steps,
// are no parents, and that nothing is noted of them.
func TestClaimFinalization_OfTasksWithoutSteps(t *testing.T) {
	t.Parallel()
	s := newParentStory(t, 1)
	s.do(command.Submit{Tasks: []record.NewTask{{Type: "mail", Params: []byte("1")}}}) // task 3
	for _, id := range []uint64{2, 3} {
		for _, want := range []record.Status{record.StatusPending, record.StatusClaimed, record.StatusCompleted} {
			switch want {
			case record.StatusClaimed:
				s.do(command.ClaimTask{ID: id, WorkerID: "w"})
			case record.StatusCompleted:
				s.do(command.Complete{Hold: command.Hold{ID: id, WorkerID: "w"}})
			}
			task := *s.m.Get(id)
			got := s.do(command.ClaimFinalization{ID: id, ProcessorID: "p", TimeoutMS: 1000}).Parent
			if got.Outcome != record.FinalizationNotReady || got.State.String() != want.String() || got.Holder != "" || got.Token != 0 {
				t.Errorf("task %d: %+v, want not ready, %v", id, got, want)
			}
			if r := s.do(command.Finalize{ID: id, ProcessorID: "p"}); r.Code != CodeTaskNotClaimable || r.Reason != ReasonNoSteps || r.Task.ID != id {
				t.Errorf("finalize task %d: %+v", id, r)
			}
			for _, c := range []command.Command{command.ExtendFinalization{ID: id, ProcessorID: "p"}, command.ReleaseFinalization{ID: id, ProcessorID: "p"}} {
				if got := s.do(c).Parent; got.Done || got.State.String() != want.String() {
					t.Errorf("%T of task %d: %+v", c, id, got)
				}
			}
			// The one who completed it did not finalize it.
			if s.do(command.ReleaseFinalization{ID: id, ProcessorID: "w"}).Parent.Done {
				t.Errorf("task %d: its worker released what it never had", id)
			}
			if v, ok := s.m.Finalization(id, s.Stamp); !ok || v.Attempts != nil || v.ClaimedBy != "" {
				t.Errorf("task %d: %+v", id, v)
			}
			if diff := cmp.Diff(task, *s.m.Get(id), cmpopts.IgnoreUnexported(record.Plan{}, record.PlannedStep{})); diff != "" {
				t.Errorf("task %d was changed:\n%s", id, diff)
			}
		}
	}
	s.do(command.Evict{})
	if s.m.Get(3) != nil || s.do(command.ReleaseFinalization{ID: 3, ProcessorID: "w"}).Parent.Done {
		t.Error("a removed task is there, or its worker released what it never had")
	}
	if _, ok := s.m.Finalization(99, s.Stamp); ok {
		t.Error("a task that never was is there")
	}
}

// TestFinalizationClaim_EndsByTheLeaseClock ensures that a claim stands for its
// whole time by U, and the margin, whatever the calendar does, as it does when the
// leader changes; and that a tick takes it away no earlier.
func TestFinalizationClaim_EndsByTheLeaseClock(t *testing.T) {
	t.Parallel()
	for _, timeout := range []int64{1000, 30_000, 3_600_000} {
		s := newParentStory(t, 1)
		s.endStep(2, "")
		s.do(command.ClaimFinalization{ID: 1, ProcessorID: "p1", TimeoutMS: timeout})
		end := s.U + timeout
		over := end + timeout/2000 + 2
		s.T += 10 * timeout // hours without a leader
		if v := s.view(); v.ClaimedBy != "p1" || v.LeftMS != timeout {
			t.Errorf("%d ms: %+v after hours without a leader", timeout, v)
		}
		for _, u := range []int64{end - 1, end, over - 1} {
			s.U = u
			s.do(command.Tick{})
			if v := s.view(); v.ClaimedBy != "p1" || v.LeftMS != max(end-u, 0) || s.m.FinalizationCount() != 1 {
				t.Errorf("%d ms, at %d of %d: %+v", timeout, u, over, v)
			}
		}
		s.U = over
		if v := s.view(); v.ClaimedBy != "" || v.LeftMS != 0 || len(v.Attempts) != 1 || s.m.FinalizationCount() != 1 {
			t.Errorf("%d ms, at its end, before a tick: %+v", timeout, v)
		}
		s.do(command.Tick{})
		if f := s.m.Get(1).Parent().Finalization; f.ProcessorID != "" || f.Token != 0 || f.EndU != 0 || len(f.Attempts) != 1 || s.m.FinalizationCount() != 0 {
			t.Errorf("%d ms, after a tick: %+v, %d claims", timeout, f, s.m.FinalizationCount())
		}
	}
}

// TestFinalizationClaim_LastsAtLeastAsLong ensures that no extension lets a claim be
// over earlier than it was, or earlier than it says.
func TestFinalizationClaim_LastsAtLeastAsLong(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		timeout := rapid.Int64Range(1000, 3_600_000)
		f := &record.Finalization{ProcessorID: "p", Token: 1, TimeoutMS: timeout.Draw(t, "timeout")}
		u := rapid.Int64Range(0, 1<<40).Draw(t, "U")
		f.EndU = u + f.TimeoutMS
		promised := f.OverU()
		for range rapid.IntRange(1, 5).Draw(t, "extends") {
			u += rapid.Int64Range(0, max(f.OverU()-1-u, 0)).Draw(t, "later")
			asked := timeout.Draw(t, "timeout")
			promised = max(promised, u+asked+asked/2000+2)
			was := *f
			f = f.Lasting(asked, u)
			if f.OverU() != promised || f.TimeoutMS != asked || f.EndU < u+asked {
				t.Fatalf("at %d %+v became %+v, which is over at %d, want %d", u, was, *f, f.OverU(), promised)
			}
		}
	})
}

func TestExtendFinalization(t *testing.T) {
	t.Parallel()
	s := newParentStory(t, 1)
	if got := s.extendEnd("p1", 5000); got.Done || got.State != record.StateWaitingForSteps {
		t.Errorf("a claim that nobody has: %+v", got)
	}
	s.endStep(2, "")
	token := s.claimEnd("p1").Token
	left := func() int64 { return s.view().LeftMS }
	s.wait(4000)
	if got := s.extendEnd("p2", 5000); got.Done || got.Holder != "p1" || got.Token != 0 || left() != 6000 {
		t.Errorf("by another: %+v, %d ms left", got, left())
	}
	if got := s.extendEnd("p1", 2000); !got.Done || got.Token != token || left() < 6000 || left() > 6000+5 {
		t.Errorf("by less than it has: %+v, %d ms left, want 6000", got, left())
	}
	if s.extendEnd("p1", 20_000); left() != 20_000 {
		t.Errorf("%d ms left, want 20000", left())
	}
	s.wait(7000)
	if got := s.extendEnd("p1", 0); !got.Done || got.Holder != "p1" || left() != 20_000 {
		t.Errorf("by its own length: %+v, %d ms left, want 20000", got, left())
	}
	s.wait(20_000 + 20_000/2000 + 1)
	if got := s.extendEnd("p1", 0); !got.Done {
		t.Errorf("at the last moment: %+v", got)
	}
	s.wait(20_000 + 20_000/2000 + 2)
	if got := s.extendEnd("p1", 1000); got.Done || got.Holder != "" || got.State != record.StateEvaluatingResults {
		t.Errorf("after its end: %+v", got)
	}
	if n := len(s.view().Attempts); n != 1 {
		t.Errorf("%d attempts, want 1: extends are none", n)
	}
	s.claimEnd("p1")
	s.do(command.Finalize{ID: 1, ProcessorID: "p1"})
	if got := s.extendEnd("p1", 1000); got.Done || got.State != record.StateComplete {
		t.Errorf("of an ended parent: %+v", got)
	}
	s.do(command.Delete{ID: 1})
	if got := s.extendEnd("p1", 1000); got.Done || got.State != record.StateNotFound {
		t.Errorf("of a task that is not there: %+v", got)
	}
}

func TestReleaseFinalization(t *testing.T) {
	t.Parallel()
	s := newParentStory(t, 1)
	if s.releaseEnd("p1").Done {
		t.Error("a claim that nobody has was released")
	}
	s.endStep(2, "")
	s.claimEnd("p1")
	if got := s.releaseEnd("p2"); got.Done || got.Holder != "p1" {
		t.Errorf("by another: %+v", got)
	}
	if got := s.releaseEnd("p1"); !got.Done || got.Holder != "" || s.view().ClaimedBy != "" || s.m.FinalizationCount() != 0 {
		t.Errorf("by its holder: %+v", got)
	}
	if s.releaseEnd("p1").Done {
		t.Error("it was released twice")
	}
	s.claimEnd("p1")
	s.wait(10_007)
	if s.releaseEnd("p1").Done {
		t.Error("a claim that is over was released")
	}
	s.do(command.Finalize{ID: 1, ProcessorID: "p1"})
	for range 2 {
		if !s.releaseEnd("p1").Done || s.releaseEnd("p2").Done {
			t.Error("who finalized it may release it, again and again, and nobody else")
		}
	}
	s.do(command.Evict{})
	if s.m.Get(1) != nil || !s.releaseEnd("p1").Done || s.releaseEnd("p2").Done {
		t.Error("also when it was removed")
	}
	s.wait(goneMS)
	if s.releaseEnd("p1").Done {
		t.Error("it is forgotten")
	}
}

func TestFinalize_OrderOfChecks(t *testing.T) {
	t.Parallel()
	const over = 10_007
	ready := func(s *story) { s.endStep(2, ""); s.endStep(3, "") }
	tests := []struct {
		name  string
		setup func(s *story)
		token func(s *story) uint64 // nil: none is sent
		code  Code
		// Otherwise how it ends, or had ended.
		already   bool
		status    record.Status
		by        string
		withToken bool
	}{
		{name: "nothing is there", setup: func(s *story) { s.do(command.Cancel{ID: 1}); s.do(command.Delete{ID: 1}) }, code: CodeTaskNotFound},
		{name: "removed", setup: func(s *story) {
			ready(s)
			s.do(command.Finalize{ID: 1, ProcessorID: "p2", Failed: true})
			s.do(command.Evict{})
		}, already: true, status: record.StatusFailed, by: "p2"},
		{name: "ended by another", setup: func(s *story) { ready(s); s.claimEnd("p2"); s.do(command.Finalize{ID: 1, ProcessorID: "p2"}) }, already: true, status: record.StatusCompleted, by: "p2", withToken: true},
		{name: "ended by another, with a stale token", setup: func(s *story) { ready(s); s.do(command.Finalize{ID: 1, ProcessorID: "p2"}) }, token: func(*story) uint64 { return 77 }, already: true, status: record.StatusCompleted, by: "p2"},
		{name: "cancelled", setup: func(s *story) { s.do(command.Cancel{ID: 1}) }, already: true, status: record.StatusCancelled},
		{name: "another has it", setup: func(s *story) { ready(s); s.claimEnd("p2") }, code: CodeTaskAlreadyClaimed},
		{name: "another has it, and steps are open", setup: func(s *story) { s.endStep(2, ""); s.claimEnd("p2") }, code: CodeTaskAlreadyClaimed},
		{name: "another has it, with its token", setup: func(s *story) { ready(s); s.claimEnd("p2") }, token: func(s *story) uint64 { return s.m.header.NextToken - 1 }, code: CodeTaskAlreadyClaimed},
		{name: "another has it, at the last moment", setup: func(s *story) { ready(s); s.claimEnd("p2"); s.wait(over - 1) }, code: CodeTaskAlreadyClaimed},
		{name: "another had it", setup: func(s *story) { ready(s); s.claimEnd("p2"); s.wait(over) }, status: record.StatusCompleted, by: "p1"},
		{name: "with an earlier token", setup: func(s *story) { ready(s); s.claimEnd("p1") }, token: func(s *story) uint64 { return s.m.header.NextToken - 2 }, code: CodeStaleClaim},
		{name: "with a token that nobody has", setup: ready, token: func(*story) uint64 { return 2 }, code: CodeStaleClaim},
		{name: "with the token of a claim that is over", setup: func(s *story) { ready(s); s.claimEnd("p1"); s.wait(over) }, token: func(s *story) uint64 { return s.m.header.NextToken - 1 }, code: CodeStaleClaim},
		{name: "with the token of a claim given back", setup: func(s *story) { ready(s); s.claimEnd("p1"); s.releaseEnd("p1") }, token: func(s *story) uint64 { return s.m.header.NextToken - 1 }, code: CodeStaleClaim},
		{name: "a stale token, and steps are open", setup: func(s *story) { s.endStep(2, ""); s.claimEnd("p1") }, token: func(*story) uint64 { return 1 }, code: CodeStaleClaim},
		{name: "a step is pending", setup: func(s *story) { s.endStep(2, ""); s.claimEnd("p1") }, code: CodeStepsUnfinished},
		{name: "a step is claimed", setup: func(s *story) { s.endStep(2, ""); s.do(command.ClaimTask{ID: 3, WorkerID: "w"}) }, code: CodeStepsUnfinished},
		{name: "without a claim", setup: ready, status: record.StatusCompleted, by: "p1"},
		{name: "all steps were cancelled", setup: func(s *story) { s.do(command.Cancel{ID: 2}); s.do(command.Cancel{ID: 3}) }, status: record.StatusCompleted, by: "p1"},
		{name: "with its claim, and no token", setup: func(s *story) { ready(s); s.claimEnd("p1") }, status: record.StatusCompleted, by: "p1", withToken: true},
		{name: "with its claim and token", setup: func(s *story) { ready(s); s.claimEnd("p1") }, token: func(s *story) uint64 { return s.m.header.NextToken - 1 }, status: record.StatusCompleted, by: "p1", withToken: true},
		{name: "with a claim that is over, and no token", setup: func(s *story) { ready(s); s.claimEnd("p1"); s.wait(over) }, status: record.StatusCompleted, by: "p1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newParentStory(t, 2)
			test.setup(s)
			c := command.Finalize{ID: 1, ProcessorID: "p1", Result: []byte(`{"sum":1}`)}
			if test.token != nil {
				c.Token = test.token(s)
			}
			before := s.records()
			claim := s.m.header.NextToken - 1
			r := s.do(c)
			if r.Code != test.code {
				t.Fatalf("code %q, want %q", r.Code, test.code)
			}
			if r.Code != "" {
				if diff := cmp.Diff(before, s.records()); diff != "" {
					t.Errorf("what was refused changed something:\n%s", diff)
				}
				return
			}
			task := r.Task
			if r.Parent.AlreadyFinalized != test.already || task.Status != test.status || task.WorkerID != test.by || (task.Token != 0) != test.withToken || test.withToken && task.Token != claim {
				t.Errorf("%+v of task %+v, want already %v, %v by %q", r.Parent, task, test.already, test.status, test.by)
			}
			if !test.already && (string(task.Result) != `{"sum":1}` || s.m.FinalizationCount() != 0 || s.view().ClaimedBy != "") {
				t.Errorf("result %s, %+v", task.Result, s.view())
			}
			if !r.Gone && len(r.Parent.Steps) != 2 {
				t.Errorf("steps %+v", r.Parent.Steps)
			}
		})
	}
}

// TestFinalize_AsFailed ensures that result and error go where they belong, and
// what is told.
func TestFinalize_AsFailed(t *testing.T) {
	t.Parallel()
	s := newParentStory(t, 1)
	s.endStep(2, "7")
	token := s.claimEnd("p1").Token
	s.wait(100)
	r := s.do(command.Finalize{ID: 1, ProcessorID: "p1", Token: token, Failed: true, Error: "the sum is wrong"})
	if got := r.Task; got.Status != record.StatusFailed || got.Error != "the sum is wrong" || got.Result != nil || got.CompletedAt != s.T ||
		got.UpdatedAt != s.T || got.RemoveAt != s.T+failedRetentionMS || got.Token != token {
		t.Errorf("%+v", got)
	}
	var told []string
	for _, e := range s.m.TaskEvents(1) {
		told = append(told, fmt.Sprintf("%v %s %d %q", e.Kind, e.WorkerID, e.Token, e.Message))
	}
	want := []string{
		`submitted  0 ""`,
		fmt.Sprintf(`finalization_claimed p1 %d ""`, token),
		fmt.Sprintf(`finalized p1 %d "failed"`, token),
		fmt.Sprintf(`failed p1 %d "the sum is wrong"`, token),
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	// Retried, it can be finalized again; who tried before is still known.
	s.do(command.Retry{ID: 1})
	if got := s.claimEnd("p2"); got.Outcome != record.FinalizationClaimed || got.Token <= token || len(s.view().Attempts) != 2 {
		t.Errorf("after a retry: %+v, %+v", got, s.view())
	}
	s.do(command.Finalize{ID: 1, ProcessorID: "p2"})
	if got := s.m.Get(1); got.Status != record.StatusCompleted || got.WorkerID != "p2" || got.Error != "the sum is wrong" {
		t.Errorf("after a retry: %+v", got)
	}
	if got := s.eventsOf(1, 2); !slices.Equal(got, []string{"finalized", "completed"}) {
		t.Errorf("after a retry: %v", got)
	}
}

// TestFinalize_ByMany ensures that of 20 processors one gets the claim, and that of
// several which finalize at once one does it and all learn what was done.
func TestFinalize_ByMany(t *testing.T) {
	t.Parallel()
	s := newParentStory(t, 1)
	s.endStep(2, "")
	claimed := 0
	for i := range 20 {
		got := s.claimEnd(fmt.Sprint("p", i))
		if got.Outcome == record.FinalizationClaimed {
			claimed++
		} else if got.Outcome != record.FinalizationAlreadyClaimed || got.Holder != "p0" {
			t.Errorf("processor %d: %+v", i, got)
		}
	}
	if claimed != 1 || len(s.view().Attempts) != 20 {
		t.Errorf("%d got the claim, %d attempts", claimed, len(s.view().Attempts))
	}
	s.releaseEnd("p0")
	var done []string
	for i := range 20 {
		r := s.do(command.Finalize{ID: 1, ProcessorID: fmt.Sprint("p", i), Failed: i%2 == 0, Error: "no"})
		if !r.Parent.AlreadyFinalized {
			done = append(done, r.Task.WorkerID)
		}
		if r.Code != "" || r.Task.Status != record.StatusFailed || r.Task.WorkerID != "p0" || r.Parent.State != record.StateFailed {
			t.Errorf("processor %d: %+v", i, r)
		}
	}
	if !slices.Equal(done, []string{"p0"}) {
		t.Errorf("it was finalized by %v", done)
	}
	if got := s.eventsOf(1, 3); !slices.Equal(got, []string{"finalization_claimed", "finalized", "failed"}) {
		t.Errorf("events %v", got)
	}
}

// TestFinalize_NotKept ensures that a parent which goes with its end still answers
// who comes later.
func TestFinalize_NotKept(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.do(command.SetLevel{Level: record.FeatureLevel})
	parent := newParentOf(1, true, false)
	parent.RetentionMS = record.KeepNone
	s.do(command.Submit{Tasks: []record.NewTask{parent}})
	s.endStep(2, "")
	token := s.claimEnd("p1").Token
	r := s.do(command.Finalize{ID: 1, ProcessorID: "p1", Result: []byte("1")})
	if r.Code != "" || r.Parent.AlreadyFinalized || string(r.Task.Result) != "1" || len(r.Parent.Steps) != 1 {
		t.Errorf("%+v", r)
	}
	if s.m.Get(1) != nil || s.m.Get(2) != nil || s.m.FinalizationCount() != 0 {
		t.Error("it is kept")
	}
	again := s.do(command.Finalize{ID: 1, ProcessorID: "p2"})
	if again.Code != "" || !again.Gone || !again.Parent.AlreadyFinalized || again.Parent.State != record.StateComplete ||
		again.Task.Status != record.StatusCompleted || again.Task.WorkerID != "p1" || again.Task.Token != token {
		t.Errorf("again: %+v of %+v", again, again.Task)
	}
	restored := restore(t, snapshotOf(t, s.m))
	if g := restored.gone.table.Get(1); g == nil || g.WorkerID != "p1" || g.Token != token {
		t.Errorf("restored, it is remembered as %+v", g)
	}
}

// TestClaimFinalization_KeepsTheLastHundred ensures that attempts are bounded, and
// are the last ones, in order.
func TestClaimFinalization_KeepsTheLastHundred(t *testing.T) {
	t.Parallel()
	s := newParentStory(t, 1)
	s.endStep(2, "")
	earlier := s.m.Get(1).Options
	for i := range 250 {
		s.wait(1)
		s.claimEnd(fmt.Sprint("p", i))
	}
	attempts := s.view().Attempts
	if len(attempts) != record.FinalizationAttemptsMax {
		t.Fatalf("%d attempts are kept", len(attempts))
	}
	for i, a := range attempts {
		if a.ProcessorID != fmt.Sprint("p", 150+i) || a.At != s.T-int64(len(attempts)-1-i) || a.Holder != "p0" {
			t.Errorf("attempt %d is %+v", i, a)
		}
	}
	if earlier.Parent.Finalization != nil {
		t.Error("what was handed out before was changed")
	}
	s.do(command.Finalize{ID: 1, ProcessorID: "p0"})
	s.claimEnd("late")
	if v := s.view(); len(v.Attempts) != record.FinalizationAttemptsMax || v.Attempts[99].ProcessorID != "late" || v.Attempts[99].Outcome != record.FinalizationAlreadyDone {
		t.Errorf("after its end: %d, the last %+v", len(v.Attempts), v.Attempts[99])
	}
}

// TestClaimFinalization_LeavesTheTaskAlone ensures that claims are no change of the
// task that its users see, nor of copies that they have.
func TestClaimFinalization_LeavesTheTaskAlone(t *testing.T) {
	t.Parallel()
	s := newParentStory(t, 1)
	s.endStep(2, "")
	saved := s.m.Snapshot()
	defer saved.Release()
	var before bytes.Buffer
	if _, err := saved.WriteTo(&before); err != nil {
		t.Fatal(err)
	}
	was := *s.m.Get(1)
	options := *was.Options
	s.wait(1000)
	s.claimEnd("p1")
	s.claimEnd("p2")
	s.extendEnd("p1", 20_000)
	s.releaseEnd("p1")
	s.claimEnd("p2")
	s.wait(20_000)
	s.do(command.Tick{})
	now := *s.m.Get(1)
	if diff := cmp.Diff(options, *was.Options, cmpopts.IgnoreUnexported(record.Plan{}, record.PlannedStep{})); diff != "" {
		t.Errorf("a copy was changed:\n%s", diff)
	}
	now.Options = was.Options
	if diff := cmp.Diff(was, now, cmpopts.IgnoreUnexported(record.Plan{}, record.PlannedStep{})); diff != "" {
		t.Errorf("the task was changed:\n%s", diff)
	}
	var after bytes.Buffer
	if _, err := saved.WriteTo(&after); err != nil || !bytes.Equal(before.Bytes(), after.Bytes()) {
		t.Errorf("a snapshot that was taken before is another: %v", err)
	}
}

// TestTick_ClearsFinalizations ensures that ticks clear what is over, the earliest
// first, a bounded number.
func TestTick_ClearsFinalizations(t *testing.T) {
	t.Parallel()
	const n = dueTickMax + 7
	h := newHarness(t)
	h.do(command.SetLevel{Level: record.FeatureLevel})
	for id := uint64(1); id <= 2*n; id += 2 {
		h.do(command.Submit{Tasks: []record.NewTask{newParentOf(1, true, false)}})
		h.do(command.ClaimTask{ID: id + 1, WorkerID: "w"})
		h.do(command.Complete{Hold: command.Hold{ID: id + 1, WorkerID: "w"}})
		timeout := int64(2000)
		if id < 10 {
			timeout = 60_000
		}
		h.do(command.ClaimFinalization{ID: id, ProcessorID: "p", TimeoutMS: timeout})
	}
	for _, want := range []struct {
		u    int64
		left int
	}{{2002, n}, {2003, n - dueTickMax}, {2003, 5}, {2003, 5}, {60_000, 5}, {60_032, 0}} {
		h.stamp.U = want.u
		h.do(command.Tick{})
		if got := h.m.FinalizationCount(); got != want.left {
			t.Errorf("at %d %d claims are left, want %d", want.u, got, want.left)
		}
	}
	mustCheck(t, h.m)
}

// TestBatch_UndoesWhatEndedAFinalization ensures that a claim stands again when the
// batch that ended its parent is refused.
func TestBatch_UndoesWhatEndedAFinalization(t *testing.T) {
	t.Parallel()
	s := newParentStory(t, 2)
	s.endStep(2, "")
	s.claimEnd("p1")
	s.claimEnd("p2")
	before, view := hashOf(s.m), s.view()
	r := s.do(command.Batch{Atomic: true, Ops: []command.Command{command.Cancel{ID: 1}, command.Delete{ID: 1}, command.Cancel{ID: 99}}})
	if r.Code != CodeTaskNotFound || r.FailedOp != 2 {
		t.Fatalf("%+v", r)
	}
	s.m.header.Index--
	if hashOf(s.m) != before || s.m.FinalizationCount() != 1 {
		t.Errorf("it is not as it was: %d claims", s.m.FinalizationCount())
	}
	s.m.header.Index++
	if diff := cmp.Diff(view, s.view()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	s.wait(10_007)
	if got := s.claimEnd("p2"); got.Outcome != record.FinalizationClaimed {
		t.Errorf("at its end: %+v", got)
	}
	s.do(command.Batch{Atomic: true, Ops: []command.Command{command.Cancel{ID: 1}}})
	if s.m.FinalizationCount() != 0 || s.view().ClaimedBy != "" {
		t.Errorf("cancelled, %+v", s.view())
	}
}

// TestRestore_KeepsFinalizations ensures that claims that live, are over, and were
// given back are unchanged after a restore.
func TestRestore_KeepsFinalizations(t *testing.T) {
	t.Parallel()
	s := newParentStory(t, 2)
	s.endStep(2, "")
	s.claimEnd("p1")
	s.claimEnd("p2")
	for _, wait := range []int64{0, 10_006, 1, 0} {
		s.wait(wait)
		restored := restore(t, snapshotOf(t, s.m))
		if restored.FinalizationCount() != s.m.FinalizationCount() {
			t.Fatalf("%d claims, want %d", restored.FinalizationCount(), s.m.FinalizationCount())
		}
		got, _ := restored.Finalization(1, s.Stamp)
		if diff := cmp.Diff(s.view(), got); diff != "" {
			t.Errorf("(-before +restored):\n%s", diff)
		}
		other := &story{t: t, m: restored, Stamp: s.Stamp, index: s.index}
		for _, c := range []command.Command{command.ClaimFinalization{ID: 1, ProcessorID: "p2", TimeoutMS: 10_000}, command.Tick{}} {
			if diff := cmp.Diff(s.do(c), other.do(c)); diff != "" {
				t.Errorf("%T (-before +restored):\n%s", c, diff)
			}
		}
		if hashOf(s.m) != hashOf(restored) {
			t.Error("they go other ways")
		}
	}
	if got := s.view(); got.ClaimedBy != "p2" || len(got.Attempts) != 6 {
		t.Errorf("%+v", got)
	}
}
