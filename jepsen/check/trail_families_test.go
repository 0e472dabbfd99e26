package check

import (
	"slices"
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// reopened is a parent that has completed though its first step failed, and runs again once that is retried.
func reopened(goOn bool) *history.History {
	h := &history.History{Run: &history.Run{Nodes: 1}}
	tell := func(index uint64, sub uint32, kind string, task, token uint64, worker, message string) {
		h.Trail = append(h.Trail, history.Told{Index: index, Sub: sub, At: calendar + int64(index), Kind: kind, TaskID: task, Token: token, Worker: worker, Message: message})
	}
	did := func(index uint64, kind history.Kind, task, token uint64) *history.Op {
		h.Ops = append(h.Ops, history.Op{Kind: kind, Outcome: history.OK, TaskID: task, Token: token, Worker: "w", Index: index})
		return &h.Ops[len(h.Ops)-1]
	}
	op := did(3, history.Submit, 1, 0)
	op.Created, op.Plan = true, &history.Plan{Steps: []history.Step{{Name: "a"}, {Name: "b"}}, Continue: goOn}
	for id := range uint64(3) {
		tell(3, uint32(id), "submitted", 1+id, 0, "", "")
	}
	tell(4, 0, "claimed", 2, 1, "w", "")
	did(4, history.Claim, 2, 1)
	tell(5, 0, "failed", 2, 1, "w", "no luck")
	did(5, history.Fail, 2, 1)
	tell(6, 0, "claimed", 3, 2, "w", "")
	did(6, history.Claim, 3, 2)
	for index, token := range []uint64{2, 3} {
		at := 7 + 3*uint64(index)
		tell(at, 0, "completed", 3-uint64(index), token, "w", "")
		tell(at, 1, "finalized", 1, 0, "", "completed")
		tell(at, 2, "completed", 1, 0, "", "")
		did(at, history.Complete, 3-uint64(index), token)
		if index == 0 {
			tell(8, 0, "retried", 1, 0, "", "")
			tell(8, 1, "retried", 2, 0, "", "")
			did(8, history.Retry, 2, 0)
			tell(9, 0, "claimed", 2, 3, "w", "")
			did(9, history.Claim, 2, 3)
		}
	}
	return h
}

func TestTrail_parentsRunAgain(t *testing.T) {
	t.Parallel()
	if r := trailOf(reopened(true)); !r.OK() {
		t.Errorf("with continue: %+v", r.Part)
	}
	if r := trailOf(reopened(false)); r.OK() {
		t.Error("without continue a completed parent runs again, and nothing is wrong")
	}
}

// families is two parents of two steps each, the second of which waits for the
// first: 1 ends by itself, 4 by a processor once its first step has failed, is
// retried, and ended again; then it is deleted.
func families() *history.History {
	chain := func(byClaim bool) *history.Plan {
		return &history.Plan{Steps: []history.Step{{Name: "a"}, {Name: "b", DependsOn: []int{0}}}, ByClaim: byClaim}
	}
	h := &history.History{Run: &history.Run{Nodes: 1}}
	tell, did := telling(h)
	for id := uint64(1); id <= 6; id++ {
		tell(3, "submitted", id, 0, "", "")
	}
	for n, id := range []uint64{1, 4} {
		op := did(3, history.Submit, id, 0, "")
		op.Created, op.Plan = true, chain(n == 1)
	}
	tell(4, "claimed", 2, 1, "w", "")
	tell(4, "claimed", 5, 2, "w", "")
	did(4, history.Claim, 2, 1, "w")
	did(4, history.Claim, 5, 2, "w")
	tell(5, "completed", 2, 1, "w", "")
	did(5, history.Complete, 2, 1, "w")
	tell(6, "failed", 5, 2, "w", "no luck")
	tell(6, "cancelled", 6, 0, "", "")
	did(6, history.Fail, 5, 2, "w")
	tell(7, "claimed", 3, 3, "w", "")
	did(7, history.ClaimTask, 3, 3, "w")
	tell(8, "finalization_claimed", 4, 4, "p", "")
	op := did(8, history.ClaimFinalization, 4, 4, "p")
	op.Done = true
	op = did(9, history.ClaimFinalization, 4, 4, "p")
	op.Done, op.Repeated = true, true
	tell(10, "finalized", 4, 4, "p", "failed")
	tell(10, "failed", 4, 4, "p", "bad")
	tell(11, "completed", 3, 3, "w", "")
	tell(11, "finalized", 1, 0, "", "completed")
	tell(11, "completed", 1, 0, "", "")
	did(11, history.Complete, 3, 3, "w")
	tell(12, "retried", 4, 0, "", "")
	tell(12, "retried", 5, 0, "", "")
	tell(12, "retried", 6, 0, "", "")
	did(12, history.Retry, 4, 0, "")
	tell(13, "claimed", 5, 5, "w", "")
	did(13, history.Claim, 5, 5, "w")
	tell(14, "completed", 5, 5, "w", "")
	did(14, history.Complete, 5, 5, "w")
	tell(15, "claimed", 6, 6, "w", "")
	did(15, history.Claim, 6, 6, "w")
	tell(16, "completed", 6, 6, "w", "")
	did(16, history.Complete, 6, 6, "w")
	tell(17, "finalized", 4, 0, "q", "completed")
	tell(17, "completed", 4, 0, "q", "")
	op = did(17, history.Finalize, 4, 0, "q")
	op.Done, op.Goal = true, "completed"
	op = did(10, history.Finalize, 4, 4, "p")
	op.Done, op.Goal = true, "failed"
	tell(18, "deleted", 4, 0, "", "")
	tell(18, "deleted", 5, 0, "", "")
	tell(18, "deleted", 6, 0, "", "")
	did(18, history.Delete, 4, 0, "")
	return h
}

// telling returns what adds an event to the trail, and a call that was acknowledged.
func telling(h *history.History) (tell func(index uint64, kind string, task, token uint64, worker, message string), did func(index uint64, kind history.Kind, task, token uint64, worker string) *history.Op) {
	tell = func(index uint64, kind string, task, token uint64, worker, message string) {
		sub := uint32(0)
		if n := len(h.Trail); n > 0 && h.Trail[n-1].Index == index {
			sub = h.Trail[n-1].Sub + 1
		}
		h.Trail = append(h.Trail, history.Told{
			Index: index, Sub: sub, At: calendar + int64(index), Kind: kind, TaskID: task, Token: token, Worker: worker, Message: message,
		})
	}
	did = func(index uint64, kind history.Kind, task, token uint64, worker string) *history.Op {
		h.Ops = append(h.Ops, history.Op{Kind: kind, Outcome: history.OK, TaskID: task, Token: token, Worker: worker, Index: index})
		return &h.Ops[len(h.Ops)-1]
	}
	return tell, did
}

// adding is the trail of a parent whose first step adds two, and what callers saw of it. The second of these depends on
// the first.
func adding() *history.History {
	h := &history.History{Run: &history.Run{Nodes: 1}}
	tell, did := telling(h)
	tell(3, "submitted", 1, 0, "", "")
	tell(3, "submitted", 2, 0, "", "")
	op := did(3, history.Submit, 1, 0, "")
	op.Created, op.Plan = true, &history.Plan{Steps: []history.Step{{Name: "a"}}}
	tell(4, "claimed", 2, 1, "w", "")
	did(4, history.Claim, 2, 1, "w")
	tell(5, "steps_added", 1, 1, "w", "2 by step a")
	tell(5, "submitted", 3, 0, "", "")
	tell(5, "submitted", 4, 0, "", "")
	for _, index := range []uint64{5, 6} {
		op = did(index, history.AddSteps, 2, 1, "w")
		op.Plan = &history.Plan{Steps: []history.Step{{Name: "b"}, {Name: "c", DependsOn: []int{0}}}}
		op.Added, op.Repeated = &history.Added{ParentID: 1, IDs: []uint64{3, 4}}, index == 6
	}
	for i, id := range []uint64{2, 3, 4} {
		index, token := uint64(6+2*i), uint64(1+i)
		if id > 2 {
			tell(index, "claimed", id, token, "w", "")
			did(index, history.ClaimTask, id, token, "w")
		}
		tell(index+1, "completed", id, token, "w", "")
		did(index+1, history.Complete, id, token, "w")
	}
	tell(11, "finalized", 1, 0, "", "completed")
	tell(11, "completed", 1, 0, "", "")
	for _, shown := range []struct {
		index uint64
		steps []string
	}{{4, []string{"claimed"}}, {5, []string{"claimed", "pending", "blocked"}}, {10, []string{"completed", "completed", "claimed"}}} {
		did(shown.index, history.Get, 1, 0, "").Seen = &history.Task{ID: 1, Status: "running", Steps: shown.steps}
	}
	return h
}

func TestTrail_passesGoodAdding(t *testing.T) {
	t.Parallel()
	if r := trailOf(adding()); len(r.Violations) > 0 {
		t.Errorf("%+v", r.Part)
	}
	h := adding() // as if no answer had come
	for i := range h.Ops {
		if op := &h.Ops[i]; op.Kind == history.AddSteps {
			op.Outcome, op.Added, op.Index = history.Unknown, nil, 0
		}
	}
	if r := trailOf(h); len(r.Violations) > 0 {
		t.Errorf("with unknown outcomes: %+v", r.Part)
	}
}

func TestTrail_noticesBadAdding(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name string
		rule Rule
		lie  func(h *history.History)
	}{
		{"a parent that ends before a step that was added", RuleTrailSteps, func(h *history.History) {
			leaveOut(h, placeIn(h, "finalized", 1))
			leaveOut(h, placeIn(h, "completed", 1))
			insert(h, history.Told{Index: 9, Kind: "finalized", TaskID: 1, Message: "completed"})
			insert(h, history.Told{Index: 9, Kind: "completed", TaskID: 1})
		}},
		{"steps added to a parent that has ended", RuleTrailSteps, func(h *history.History) {
			insert(h, history.Told{Index: 12, Kind: "steps_added", TaskID: 1, Token: 1, Worker: "w"})
		}},
		{"an added step that began too early", RuleTrailSteps, func(h *history.History) {
			h.Trail[placeIn(h, "claimed", 3)].TaskID, h.Trail[placeIn(h, "claimed", 4)].TaskID = 4, 3
		}},
		{"an added step that is lost", RuleTrailSteps, func(h *history.History) { leaveOut(h, placeIn(h, "submitted", 4)) }},
		{"a step that came by itself", RuleTrailSteps, func(h *history.History) {
			leaveOut(h, placeIn(h, "submitted", 4))
			insert(h, history.Told{Index: 6, Kind: "submitted", TaskID: 4})
		}},
		{"acknowledged steps without an event", RuleTrailAcked, func(h *history.History) { leaveOut(h, placeIn(h, "steps_added", 1)) }},
		{"steps that nobody asked for", RuleTrailUnasked, func(h *history.History) {
			h.Ops = slices.DeleteFunc(h.Ops, func(op history.Op) bool { return op.Kind == history.AddSteps })
		}},
		{"an added step shown as it is not", RuleShown, func(h *history.History) {
			h.Ops = append(h.Ops, history.Op{Kind: history.Get, Outcome: history.OK, TaskID: 1, Index: 7, Seen: &history.Task{ID: 1, Status: "running", Steps: []string{"completed", "pending", "pending"}}})
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			h := adding()
			x.lie(h)
			r := trailOf(h)
			if !slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Rule == x.rule }) {
				t.Errorf("rule %s does not notice: %+v", x.rule, r.Part)
			}
		})
	}
}

func TestTrail_passesGoodFamilies(t *testing.T) {
	t.Parallel()
	h := families()
	for _, shown := range []struct {
		index  uint64
		status string
		steps  []string
	}{{3, "running", []string{"pending", "blocked"}}, {5, "running", []string{"completed", "pending"}}, {11, "completed", []string{"completed", "completed"}}} {
		h.Ops = append(h.Ops, history.Op{Kind: history.Get, Outcome: history.OK, TaskID: 1, Index: shown.index, Seen: &history.Task{ID: 1, Status: shown.status, Steps: shown.steps}})
	}
	if r := trailOf(h); !r.OK() || r.shown != 3 {
		t.Errorf("%+v", r.Part)
	}
	// No call was answered: only the state at the end is known.
	h = families()
	for i := range h.Ops {
		op := &h.Ops[i]
		if op.Kind == history.Submit {
			op.Key = []string{"", "a", "", "", "b"}[op.TaskID]
		}
		if op.Outcome = history.Unknown; op.Kind == history.Submit || op.Kind == history.Claim {
			op.TaskID, op.Token = 0, 0
		}
		if op.Kind == history.ClaimFinalization || op.Kind == history.ClaimTask {
			op.Token = 0
		}
	}
	for id, key := range map[uint64]string{1: "a", 4: "b"} {
		h.Ops = append(h.Ops, but(get(0, 1, id, "", 0, 0), func(o *history.Op) { o.Seen.Key = key }))
	}
	if r := trailOf(h); !r.OK() || r.plans() != 2 {
		t.Errorf("all outcomes unknown: %+v", r.Part)
	}
	// One of them was never answered, and no answer has its key.
	h = families()
	for i := range h.Ops {
		if op := &h.Ops[i]; op.Kind == history.Submit && op.TaskID == 4 {
			op.TaskID, op.Key, op.Outcome, op.Created = 0, "b", history.Unknown, false
		}
	}
	for id := uint64(5); id <= 6; id++ {
		h.Ops = append(h.Ops, but(get(0, 1, id, "", 0, 0), func(o *history.Op) { o.Seen.ParentID = 4 }))
	}
	if r := trailOf(h); !r.OK() || r.plans() != 1 {
		t.Errorf("one of which nothing is known: %+v", r.Part)
	}
}

// plans counts the parents whose steps are known.
func (c *trailChecker) plans() (count int) {
	for _, t := range c.all {
		if t.plan != nil {
			count++
		}
	}
	return count
}

func TestTrail_noticesOfFamilies(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name string
		rule Rule
		lie  func(h *history.History)
	}{
		{"a step unblocked early", RuleTrailSteps, func(h *history.History) { h.Trail[placeIn(h, "completed", 2)].Kind = "requeued" }},
		{"a step claimed before what it depends on was completed", RuleTrailSteps, func(h *history.History) {
			leaveOut(h, placeIn(h, "claimed", 3))
			insert(h, history.Told{Index: 4, Kind: "claimed", TaskID: 3, Token: 3, Worker: "w"})
		}},
		{"a step claimed after it was cancelled", RuleTrailLife, func(h *history.History) {
			insert(h, history.Told{Index: 9, Kind: "claimed", TaskID: 6, Token: 5, Worker: "w"})
		}},
		{"a parent that ends before its step", RuleTrailSteps, func(h *history.History) { leaveOut(h, placeIn(h, "cancelled", 6)) }},
		{"a parent that ends twice", RuleTrailSteps, func(h *history.History) {
			insert(h, history.Told{Index: 11, Kind: "finalized", TaskID: 4, Token: 4, Worker: "p", Message: "failed"})
			insert(h, history.Told{Index: 11, Kind: "failed", TaskID: 4, Token: 4, Worker: "p"})
		}},
		{"a parent that completes twice", RuleTrailLife, func(h *history.History) {
			insert(h, history.Told{Index: 16, Kind: "finalized", TaskID: 1, Message: "completed"})
			insert(h, history.Told{Index: 16, Kind: "completed", TaskID: 1})
		}},
		{"a parent that ends without being finalized", RuleTrailSteps, func(h *history.History) { leaveOut(h, placeIn(h, "finalized", 1)) }},
		{"a parent finalized as another end", RuleTrailSteps, func(h *history.History) { h.Trail[placeIn(h, "finalized", 1)].Message = "failed" }},
		{"a parent that ends otherwise than its steps", RuleTrailSteps, func(h *history.History) {
			h.Trail[placeIn(h, "finalized", 1)].Message = "failed"
			h.Trail[placeIn(h, "completed", 1)].Kind = "failed"
		}},
		{"a parent that fails, and was to go on", RuleTrailSteps, func(h *history.History) {
			plan := h.Ops[1].Plan
			plan.ByClaim, plan.Continue = false, true
			h.Trail[placeIn(h, "failed", 5)].Kind = "completed"
		}},
		{"a parent that nobody ended", RuleTrailUnasked, func(h *history.History) {
			for i := range h.Trail {
				if e := &h.Trail[i]; e.Index == 17 {
					e.Worker = ""
				}
			}
		}},
		{"a stuck parent", RuleTrailSteps, func(h *history.History) {
			leaveOut(h, placeIn(h, "finalized", 1))
			leaveOut(h, placeIn(h, "completed", 1))
		}},
		{"a parent that somebody claims", RuleTrailSteps, func(h *history.History) {
			insert(h, history.Told{Index: 8, Kind: "claimed", TaskID: 1, Token: 4, Worker: "w"})
		}},
		{"a step that goes on after its parent's end", RuleTrailSteps, func(h *history.History) {
			insert(h, history.Told{Index: 12, Kind: "requeued", TaskID: 3})
		}},
		{"a claim of an ended parent", RuleTrailSteps, func(h *history.History) {
			insert(h, history.Told{Index: 13, Kind: "finalization_claimed", TaskID: 1, Token: 7, Worker: "p"})
		}},
		{"a parent deleted while it runs", RuleTrailSteps, func(h *history.History) {
			h.Trail[placeIn(h, "deleted", 4)].TaskID = 1
			leaveOut(h, placeIn(h, "completed", 1))
		}},
		{"a step submitted later than its parent", RuleTrailSteps, func(h *history.History) {
			leaveOut(h, placeIn(h, "submitted", 6))
			insert(h, history.Told{Index: 5, Kind: "submitted", TaskID: 6})
		}},
		{"a finalization's token given out before", RuleTrailOrder, func(h *history.History) {
			h.Trail[placeIn(h, "finalization_claimed", 4)].Token = 3
		}},
		{"a finalization's claim left out", RuleTrailAcked, func(h *history.History) { leaveOut(h, placeIn(h, "finalization_claimed", 4)) }},
		{"a finalization told of another processor", RuleTrailAcked, func(h *history.History) {
			for i := range h.Trail {
				if e := &h.Trail[i]; e.Index == 17 {
					e.Worker = "p"
				}
			}
			h.Ops = append(h.Ops, history.Op{Kind: history.Finalize, Outcome: history.OK, TaskID: 1, Worker: "q", Done: true, Goal: "completed"})
		}},
		{"a finalization that nobody asked for", RuleTrailUnasked, func(h *history.History) {
			h.Ops = slices.DeleteFunc(h.Ops, func(op history.Op) bool { return op.Kind == history.Finalize })
		}},
		{"a claim of a finalization that nobody made", RuleTrailUnasked, func(h *history.History) {
			h.Ops = slices.DeleteFunc(h.Ops, func(op history.Op) bool { return op.Kind == history.ClaimFinalization })
		}},
		{"a step shown as pending before what it depends on was completed", RuleShown, func(h *history.History) {
			h.Ops = append(h.Ops, history.Op{Kind: history.Get, Outcome: history.OK, TaskID: 3, Index: 4, Seen: &history.Task{ID: 3, Status: "pending", ParentID: 1}})
		}},
		{"a parent shown as ended before its step", RuleShown, func(h *history.History) {
			h.Ops = append(h.Ops, history.Op{Kind: history.Get, Outcome: history.OK, TaskID: 1, Index: 10, Seen: &history.Task{ID: 1, Status: "completed"}})
		}},
		{"a parent shown with a step as it is not", RuleShown, func(h *history.History) {
			h.Ops = append(h.Ops, history.Op{Kind: history.Get, Outcome: history.OK, TaskID: 1, Index: 11, Seen: &history.Task{ID: 1, Status: "completed", Steps: []string{"completed", "claimed"}}})
		}},
		{"steps deleted by themselves", RuleTrailUnasked, func(h *history.History) {
			insert(h, history.Told{Index: 19, Kind: "deleted", TaskID: 3})
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			h := families()
			x.lie(h)
			r := trailOf(h)
			if !slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Rule == x.rule }) {
				t.Errorf("rule %s does not notice: %+v", x.rule, r.Part)
			}
		})
	}
}
