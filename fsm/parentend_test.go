package fsm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// TestAutoEnd ensures what a parent ends as by itself, and when.
func TestAutoEnd(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		goOn    bool
		steps   func(s *story) // ends 2, 3 and 4: a, b and c
		status  record.Status
		result  string
		failure string
	}{
		{"all completed", false, func(s *story) { s.endStep(2, "1"); s.endStep(4, `{"x":2}`); s.endStep(3, "") }, record.StatusCompleted, `{"a":1,"b":null,"c":{"x":2}}`, ""},
		{"one failed", false, func(s *story) { s.endStep(2, "1"); s.failStep(4, "no route") }, record.StatusFailed, "", "step c failed: no route"},
		{"one was cancelled", false, func(s *story) { s.endStep(2, "1"); s.do(command.Cancel{ID: 4}) }, record.StatusFailed, "", "step b was cancelled"},
		{"one failed after another was cancelled", false, func(s *story) {
			s.do(command.ClaimTask{ID: 4, WorkerID: "w"})
			s.do(command.Cancel{ID: 2})
			s.failStep(4, "late")
		}, record.StatusFailed, "", "step a was cancelled"},
		{"two failed", true, func(s *story) { s.failStep(4, "second"); s.failStep(3, "first"); s.do(command.Cancel{ID: 2}) }, record.StatusFailed, "", "step b failed: first"},
		{"all were cancelled", true, func(s *story) { s.do(command.Cancel{ID: 4}); s.do(command.Cancel{ID: 3}); s.do(command.Cancel{ID: 2}) }, record.StatusFailed, "", "step a was cancelled"},
		{"one of three completed", true, func(s *story) { s.failStep(2, "no"); s.endStep(3, "[]"); s.do(command.Cancel{ID: 4}) }, record.StatusCompleted, `{"b":[]}`, ""},
		{"all completed, going on", true, func(s *story) { s.endStep(2, ""); s.endStep(3, ""); s.endStep(4, "") }, record.StatusCompleted, `{"a":null,"b":null,"c":null}`, ""},
		{"opaque results", true, func(s *story) {
			s.failStep(2, "no")
			s.do(command.ClaimTask{ID: 3, WorkerID: "w"})
			s.do(command.Complete{Hold: command.Hold{ID: 3, WorkerID: "w"}, ResultPayload: []byte{0, 255, 254}})
			s.endStep(4, ` {"kept": "as given"} `)
		}, record.StatusCompleted, `{"b":"AP/+","c": {"kept": "as given"} }`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			s.do(command.SetLevel{Level: record.FeatureLevel})
			s.do(command.Submit{Tasks: []record.NewTask{newParentOf(3, false, test.goOn)}})
			s.wait(1000)
			test.steps(s)
			got := s.m.Get(1)
			if got.Status != test.status || string(got.Result) != test.result || got.Error != test.failure {
				t.Errorf("%v, result %s, error %q; want %v, %s, %q", got.Status, got.Result, got.Error, test.status, test.result, test.failure)
			}
			if got.WorkerID != "" || got.Token != 0 || got.CompletedAt != s.T || got.RemoveAt == 0 {
				t.Errorf("%+v", got)
			}
			events := s.m.TaskEvents(1)
			finalized, end := events[len(events)-2], events[len(events)-1]
			if finalized.Kind != event.Finalized || finalized.Message != test.status.String() || finalized.WorkerID != "" || finalized.Token != 0 ||
				end.Kind.String() != test.status.String() || end.Message != test.failure || len(events) != 3 {
				t.Errorf("events %+v", events)
			}
		})
	}
}

// TestAutoEnd_LargeResult ensures that a result past 1 MiB names the ids of the
// steps, and that none of the bounds is missed by a byte.
func TestAutoEnd_LargeResult(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		larger int // than what fits exactly
		want   bool
	}{{"one that fits exactly", 0, true}, {"a byte too many", 1, false}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			s.do(command.SetLevel{Level: record.FeatureLevel})
			s.do(command.Submit{Tasks: []record.NewTask{newParentOf(3, false, true)}})
			rest := parentResultMax - len(`{"a":`) - len(`,"b":7`) - len(`}`)
			s.failStep(4, "no")
			s.endStep(3, "7")
			s.endStep(2, `"`+strings.Repeat("x", rest-2+test.larger)+`"`)
			result := s.m.Get(1).Result
			if full := len(result) == parentResultMax; full != test.want {
				t.Errorf("a result of %d bytes", len(result))
			}
			if !test.want && string(result) != `{"a":2,"b":3}` {
				t.Errorf("result %.100s", result)
			}
			if !json.Valid(result) || cap(result) > len(result)+2*decimalMax {
				t.Errorf("it is no JSON, or takes %d bytes for %d", cap(result), len(result))
			}
		})
	}
}

// TestAutoEnd_LongError ensures that the error is cut at 16 KiB, at a whole
// character.
func TestAutoEnd_LongError(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.do(command.SetLevel{Level: record.FeatureLevel})
	s.do(command.Submit{Tasks: []record.NewTask{newParentOf(1, false, false)}})
	s.failStep(2, strings.Repeat("ž", parentErrorMax/2))
	got := s.m.Get(1).Error
	if !strings.HasPrefix(got, "step a failed: žž") || len(got) > parentErrorMax || len(got) < parentErrorMax-1 || !utf8.ValidString(got) {
		t.Errorf("an error of %d bytes: %.40s", len(got), got)
	}
}

// TestEndParent_Cancelled ensures that a cancelled parent is recorded only as such, and
// that its finalization is no longer claimed.
func TestEndParent_Cancelled(t *testing.T) {
	t.Parallel()
	s := newParentStory(t, 2)
	s.endStep(2, "1")
	s.claimEnd("p1")
	s.do(command.ClaimTask{ID: 3, WorkerID: "w"})
	s.do(command.Cancel{ID: 1})
	if got := s.m.Get(1); got.Status != record.StatusRunning || !got.CancelRequested || s.view().ClaimedBy != "p1" {
		t.Errorf("while a step is claimed: %+v, %+v", got, s.view())
	}
	if r := s.do(command.Finalize{ID: 1, ProcessorID: "p1"}); r.Code != CodeStepsUnfinished {
		t.Errorf("finalized while it is being cancelled: %+v", r)
	}
	s.do(command.Complete{Hold: command.Hold{ID: 3, WorkerID: "w"}, Result: []byte("2")})
	if got := s.m.Get(1); got.Status != record.StatusCancelled || got.WorkerID != "" || got.Token != 0 || got.Result != nil || s.view().ClaimedBy != "" {
		t.Errorf("%+v, %+v", got, s.view())
	}
	if got := fmt.Sprint(s.eventsOf(1, 9)); got != "[submitted finalization_claimed cancel_requested cancelled]" {
		t.Errorf("events %v", got)
	}
	if !s.m.Get(3).Status.Ended() || s.m.FinalizationCount() != 0 {
		t.Error("a step has not ended, or the claim stands")
	}
}

// TestAutoEnd_OfAClaimedParent ensures that a claim does not hold up an automatic
// end.
func TestAutoEnd_OfAClaimedParent(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.do(command.SetLevel{Level: record.FeatureLevel})
	s.do(command.Submit{Tasks: []record.NewTask{newParentOf(2, false, false)}})
	s.endStep(2, "1")
	if got := s.claimEnd("p1"); got.Outcome != record.FinalizationClaimed {
		t.Fatalf("%+v", got)
	}
	s.endStep(3, "2")
	if got := s.m.Get(1); got.Status != record.StatusCompleted || got.WorkerID != "" || got.Token != 0 || s.m.FinalizationCount() != 0 {
		t.Errorf("%+v", got)
	}
	r := s.do(command.Finalize{ID: 1, ProcessorID: "p1", Failed: true, Error: "no"})
	if r.Code != "" || !r.Parent.AlreadyFinalized || r.Task.Status != record.StatusCompleted {
		t.Errorf("%+v", r)
	}
	if s.releaseEnd("p1").Done {
		t.Error("it was released by one that did not end it")
	}
}
