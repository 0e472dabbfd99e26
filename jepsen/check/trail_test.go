package check

import (
	"slices"
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// calendar is the first event's.
const calendar = 1_750_000_000_000

// good is a run in which two workers do what they can: task 1 is released, its
// lease ends, it fails, is retried, completed and deleted; task 2 fails for good
// by its lease; a schedule has three slots, and misses the second.
func good() *history.History {
	h := &history.History{
		Run: &history.Run{Nodes: 2},
	}
	tell := func(index uint64, sub uint32, after int64, kind string, task, token uint64, worker, message string) {
		h.Trail = append(h.Trail, history.Told{
			Index: index, Sub: sub, At: calendar + after, Kind: kind, TaskID: task, Token: token, Worker: worker, Message: message,
		})
	}
	did := func(index uint64, kind history.Kind, task, token uint64, worker string) {
		h.Ops = append(h.Ops, history.Op{
			Kind: kind, Outcome: history.OK, TaskID: task, Token: token, Worker: worker, Index: index, Created: kind == history.Submit,
		})
	}
	tell(1, 0, 0, "node_set", 0, 0, "", "n1")
	tell(2, 0, 0, "schedule_set", 0, 0, "", "tick")
	tell(3, 0, 10, "submitted", 1, 0, "", "")
	tell(3, 1, 10, "submitted", 2, 0, "", "")
	did(3, history.Submit, 1, 0, "")
	did(3, history.Submit, 2, 0, "")
	tell(5, 0, 20, "claimed", 1, 1, "v", "")
	did(5, history.Claim, 1, 1, "v")
	tell(6, 0, 30, "released", 1, 1, "v", "")
	tell(6, 1, 30, "requeued", 1, 1, "v", "")
	did(6, history.Release, 1, 1, "v")
	tell(7, 0, 40, "claimed", 1, 2, "w", "")
	tell(7, 1, 40, "claimed", 2, 3, "w", "")
	did(7, history.ClaimTask, 1, 2, "w")
	did(7, history.ClaimTask, 2, 3, "w")
	tell(8, 0, 1010, "submitted", 3, 0, "", "schedule tick")
	tell(8, 1, 1010, "scheduled", 3, 0, "", "until then")
	tell(9, 0, 1100, "lease_expired", 1, 2, "w", "")
	tell(9, 1, 1100, "requeued", 1, 2, "w", "")
	tell(9, 2, 1100, "lease_expired", 2, 3, "w", "")
	tell(9, 3, 1100, "failed", 2, 3, "w", "lease expired")
	tell(10, 0, 3100, "submitted", 4, 0, "", "schedule tick")
	tell(11, 0, 3200, "claimed", 1, 4, "v", "")
	did(11, history.Claim, 1, 4, "v")
	tell(12, 0, 3300, "failed", 1, 4, "v", "no luck")
	did(12, history.Fail, 1, 4, "v")
	tell(13, 0, 3400, "retried", 1, 0, "", "")
	did(13, history.Retry, 1, 0, "")
	tell(14, 0, 3500, "claimed", 1, 5, "v", "")
	did(14, history.Claim, 1, 5, "v")
	tell(15, 0, 3600, "completed", 1, 5, "v", "")
	did(15, history.Complete, 1, 5, "v")
	did(16, history.Complete, 1, 5, "v")
	h.Ops[len(h.Ops)-1].Repeated = true
	tell(17, 0, 3700, "deleted", 1, 0, "", "")
	did(17, history.Delete, 1, 0, "")
	tell(18, 0, 3800, "schedule_deleted", 0, 0, "", "tick")
	return h
}

// trailOf holds the trail of h against its answers.
func trailOf(h *history.History) *trailChecker { return checkTrail(newIndex(h)) }

func TestTrail_passesAGoodTrail(t *testing.T) {
	t.Parallel()
	h := good()
	for kind, seen := range map[history.Kind]*history.Task{
		history.Release: {ID: 1, Status: "pending"}, history.ClaimTask: {ID: 1, Status: "claimed", Token: 2, Attempts: 1, Worker: "w"},
		history.Retry: {ID: 1, Status: "pending", Attempts: 2}, history.Complete: {ID: 1, Status: "completed", Token: 5, Attempts: 3},
	} {
		h.Ops[placeOf(h, kind)].Seen = seen
	}
	r := trailOf(h)
	if !r.OK() || r.answers != 13 || r.shown != 4 {
		t.Errorf("%+v", r.Part)
	}
	// Unanswered calls may be in the trail, or not.
	h = good()
	for i := range h.Ops {
		h.Ops[i].Outcome = history.Unknown
		if k := h.Ops[i].Kind; k == history.Claim || k == history.ClaimTask {
			h.Ops[i].TaskID, h.Ops[i].Token = 0, 0
		}
	}
	if r := trailOf(h); !r.OK() {
		t.Errorf("all outcomes unknown: %+v", r.Violations)
	}
}

// placeIn returns where the event of the kind about the task is.
func placeIn(h *history.History, kind string, task uint64) int {
	return slices.IndexFunc(h.Trail, func(e history.Told) bool { return e.Kind == kind && e.TaskID == task })
}

// placeOf returns where the first op of the kind is.
func placeOf(h *history.History, kind history.Kind) int {
	return slices.IndexFunc(h.Ops, func(op history.Op) bool { return op.Kind == kind })
}

// insert adds the event behind all others of the same entry or earlier ones.
func insert(h *history.History, e history.Told) {
	i := 0
	for i < len(h.Trail) && h.Trail[i].Index <= e.Index {
		i++
	}
	if e.Sub = 0; i > 0 && h.Trail[i-1].Index == e.Index {
		e.Sub = h.Trail[i-1].Sub + 1
	}
	if i > 0 {
		e.At = max(e.At, h.Trail[i-1].At)
	}
	h.Trail = slices.Insert(h.Trail, i, e)
}

// leaveOut takes the event out, and closes the gap in its entry.
func leaveOut(h *history.History, i int) {
	index := h.Trail[i].Index
	h.Trail = slices.Delete(h.Trail, i, i+1)
	for ; i < len(h.Trail) && h.Trail[i].Index == index; i++ {
		h.Trail[i].Sub--
	}
}

func TestTrail_notices(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name string
		rule Rule
		lie  func(h *history.History)
	}{
		{"a place twice", RuleTrailOrder, func(h *history.History) { h.Trail[3].Sub = 0 }},
		{"a place left out", RuleTrailOrder, func(h *history.History) { h.Trail[3].Sub = 2 }},
		{"an entry behind a later one", RuleTrailOrder, func(h *history.History) { h.Trail[4].Index = 2 }},
		{"the calendar goes back", RuleTrailOrder, func(h *history.History) { h.Trail[9].At = calendar }},
		{"a token is given out again", RuleTrailOrder, func(h *history.History) { h.Trail[placeIn(h, "claimed", 2)].Token = 2 }},
		{"ids that do not grow", RuleTrailOrder, func(h *history.History) {
			h.Trail[2].TaskID, h.Trail[3].TaskID = 2, 1
		}},
		{"a task without a beginning", RuleTrailLife, func(h *history.History) { leaveOut(h, placeIn(h, "submitted", 2)) }},
		{"submitted twice", RuleTrailLife, func(h *history.History) {
			insert(h, history.Told{Index: 8, Kind: "submitted", TaskID: 2})
		}},
		{"claimed twice without an end", RuleTrailLife, func(h *history.History) { leaveOut(h, placeIn(h, "released", 1)) }},
		{"completed twice", RuleTrailLife, func(h *history.History) {
			insert(h, history.Told{Index: 16, Kind: "completed", TaskID: 1, Token: 5, Worker: "v"})
		}},
		{"completed by an old token", RuleTrailLife, func(h *history.History) { h.Trail[placeIn(h, "completed", 1)].Token = 4 }},
		{"a claim fails after its lease, for no reason", RuleTrailLife, func(h *history.History) { h.Trail[placeIn(h, "failed", 2)].Token = 1 }},
		{"a claim of what has failed", RuleTrailLife, func(h *history.History) { leaveOut(h, placeIn(h, "retried", 1)) }},
		{"the state at the end lacks a task", RuleList, func(h *history.History) {
			h.Ops[1].TaskType, h.Final = "t", &history.Final{}
		}},
		{"the state at the end is another one", RuleShown, func(h *history.History) {
			h.Final = &history.Final{Tasks: []history.Task{{ID: 2, Status: "completed", Token: 3, Attempts: 1}}}
		}},
		{"a claim before the time that its submit said", RuleDelay, func(h *history.History) {
			h.Ops = append(h.Ops, but(submitted(0, 1, 0, "k", unknown), delayed(31)))
			h.Ops = append(h.Ops, but(get(0, 1, 2, "failed", 3, 1), func(o *history.Op) { o.Seen.Key = "k" }))
			h.Ops[1].Outcome, h.Ops[1].Created, h.Ops[1].TaskID = history.Failed, false, 0
		}},
		{"a claim before the time that a release of unknown outcome said", RuleDelay, func(h *history.History) {
			h.Ops[3].Outcome, h.Ops[3].DelayMS = history.Unknown, 11
		}},
		{"a token in two answers", RuleTrailAcked, func(h *history.History) {
			h.Ops = append(h.Ops, history.Op{Kind: history.ClaimTask, Outcome: history.OK, TaskID: 2, Token: 2, Worker: "w", Index: 7})
		}},
		{"a lease that ends early", RuleLeaseEarly, func(h *history.History) { h.Ops[5].LeaseMS = 1200 }},
		{"no slot any more", RuleSlots, func(h *history.History) {
			leaveOut(h, placeIn(h, "schedule_deleted", 0))
			idles(h)
		}},
		{"a completion is shown with another count", RuleShown, func(h *history.History) {
			h.Ops[placeOf(h, history.Complete)].Seen = &history.Task{ID: 1, Status: "completed", Token: 5, Attempts: 4}
		}},
		{"a completion is shown as another worker's", RuleShown, func(h *history.History) {
			h.Ops[placeOf(h, history.Complete)].Seen = &history.Task{ID: 1, Status: "completed", Token: 5, Attempts: 3, Worker: "w"}
		}},
		{"a completion is shown with an old token", RuleShown, func(h *history.History) {
			h.Ops[placeOf(h, history.Complete)].Seen = &history.Task{ID: 1, Status: "completed", Token: 4, Attempts: 3, Worker: "v"}
		}},
		{"a release is shown as a claim", RuleShown, func(h *history.History) {
			h.Ops[placeOf(h, history.Release)].Seen = &history.Task{ID: 1, Status: "claimed", Token: 1, Attempts: 1}
		}},
		{"a retry is shown as failed", RuleShown, func(h *history.History) {
			h.Ops[placeOf(h, history.Retry)].Seen = &history.Task{ID: 1, Status: "failed", Attempts: 2}
		}},
		{"a claim is shown as another worker's", RuleShown, func(h *history.History) {
			h.Ops[placeOf(h, history.ClaimTask)].Seen = &history.Task{ID: 1, Status: "claimed", Token: 2, Attempts: 1, Worker: "v"}
		}},
		{"a claim is shown as to be cancelled", RuleShown, func(h *history.History) {
			h.Ops[placeOf(h, history.ClaimTask)].Seen = &history.Task{ID: 1, Status: "claimed", Token: 2, Attempts: 1, Worker: "w", Cancelling: true}
		}},
		{"something after the completion", RuleTrailLife, func(h *history.History) {
			insert(h, history.Told{Index: 16, Kind: "requeued", TaskID: 1})
		}},
		{"something after the deletion", RuleTrailLife, func(h *history.History) {
			insert(h, history.Told{Index: 19, Kind: "retried", TaskID: 1})
		}},
		{"a submit left out", RuleTrailAcked, func(h *history.History) {
			h.Ops = append(h.Ops, history.Op{Kind: history.Submit, Outcome: history.OK, TaskID: 9, Created: true, Index: 20})
		}},
		{"a claim told of another worker", RuleTrailAcked, func(h *history.History) { h.Trail[placeIn(h, "claimed", 2)].Worker = "v" }},
		{"a completion left out", RuleTrailAcked, func(h *history.History) { leaveOut(h, placeIn(h, "completed", 1)) }},
		{"a release left out, its requeue not", RuleTrailAcked, func(h *history.History) { leaveOut(h, placeIn(h, "released", 1)) }},
		{"a deletion left out", RuleTrailAcked, func(h *history.History) { leaveOut(h, placeIn(h, "deleted", 1)) }},
		{"a retry left out", RuleTrailAcked, func(h *history.History) { leaveOut(h, placeIn(h, "retried", 1)) }},
		{"an answer of another entry", RuleTrailAcked, func(h *history.History) { h.Ops[len(h.Ops)-3].Index = 14 }},
		{"an answer before its event", RuleTrailAcked, func(h *history.History) { h.Ops[len(h.Ops)-2].Index = 14 }},
		{"a completion that was refused", RuleTrailUnasked, func(h *history.History) {
			for i := range h.Ops {
				if h.Ops[i].Kind == history.Complete {
					h.Ops[i].Outcome = history.Failed
				}
			}
		}},
		{"a submit that nobody made", RuleTrailUnasked, func(h *history.History) {
			insert(h, history.Told{Index: 16, Kind: "submitted", TaskID: 9})
		}},
		{"a release of a claim that was answered", RuleTrailUnasked, func(h *history.History) {
			insert(h, history.Told{Index: 16, Kind: "submitted", TaskID: 9, Message: "schedule tick"})
			h.Ops = slices.DeleteFunc(h.Ops, func(op history.Op) bool { return op.Kind == history.Release })
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			h := good()
			x.lie(h)
			r := trailOf(h)
			if !slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Rule == x.rule }) {
				t.Errorf("rule %s does not notice: %+v", x.rule, r.Part)
			}
		})
	}
}

// idles adds 12 s in which the log goes on, and the schedule does not.
func idles(h *history.History) {
	for at := int64(3900); at < 16_000; at += 100 {
		h.Trail = append(h.Trail, history.Told{Index: uint64(at), Kind: "node_set", At: calendar + at})
	}
}

// Of a schedule that was deleted nothing is missed.
func TestTrail_slotsEnd(t *testing.T) {
	t.Parallel()
	h := good()
	if idles(h); !trailOf(h).OK() {
		t.Errorf("%+v", trailOf(h).Violations)
	}
}

// A trail without an event is held against the answers as any other.
func TestParts_emptyTrail(t *testing.T) {
	t.Parallel()
	h := run(submitted(0, 1, 1, "a", func(o *history.Op) { o.Index = 1 }))
	for _, trail := range [][]history.Told{nil, {}} {
		h.Trail = trail
		if r := judged(h, false); r.OK() != (trail == nil) {
			t.Errorf("trail %v: got %v", trail, r)
		}
	}
}

// Each event that an answer names is missed, whichever it is.
func TestTrail_missesEach(t *testing.T) {
	t.Parallel()
	for i, e := range good().Trail {
		switch e.Kind {
		case "node_set", "requeued", "scheduled", "schedule_set", "schedule_deleted", "lease_expired", "failed":
			continue // of no answer's, or another rule's
		}
		if e.Message == "schedule tick" {
			continue
		}
		h := good()
		leaveOut(h, i)
		if trailOf(h).OK() {
			t.Errorf("nobody misses %s", tell(&e))
		}
	}
}

// A claim without a request id may be given back if it was not answered,
// otherwise not.
func TestCheck_givenBack(t *testing.T) {
	t.Parallel()
	made := func(answered bool) *history.History {
		lost := claimed(2, 3, 1, 1, "w", "")
		if !answered {
			unknown(&lost)
			lost.TaskID, lost.Token = 0, 0
		}
		h := run(submitted(0, 1, 1, "k"), lost, get(4, 5, 1, "claimed", 1, 1), claimed(6, 7, 1, 2, "v", "r"), settle(history.Complete, 8, 9, 1, 2, "v"))
		h.Trail = []history.Told{
			{Index: 1, Kind: "submitted", TaskID: 1},
			{Index: 2, Kind: "claimed", TaskID: 1, Token: 1, Worker: "w"},
			{Index: 4, Kind: "released", TaskID: 1, Token: 1, Worker: "w"},
			{Index: 4, Sub: 1, Kind: "requeued", TaskID: 1, Token: 1, Worker: "w"},
			{Index: 4, Sub: 2, Kind: "claimed", TaskID: 1, Token: 2, Worker: "v"},
			{Index: 5, Kind: "completed", TaskID: 1, Token: 2, Worker: "v"},
		}
		h.Final = &history.Final{Call: 10e6, Return: 11e6, Tasks: []history.Task{{ID: 1, Key: "k", Status: "completed", Token: 2, Attempts: 1, Worker: "v"}}}
		return h
	}
	for _, answered := range []bool{false, true} {
		if report := judged(made(answered), true); report.OK() == answered {
			t.Errorf("answered %v:\n%s", answered, report)
		}
	}
}
