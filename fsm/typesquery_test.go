package fsm

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// typesFor returns a state with types that need attention for each reason, and some that
// do not, at the time that they do.
func typesFor(t *testing.T) *harness {
	h := newLifeHarness(t)
	pending := func(name string, n int) {
		for range n {
			h.submit(1, record.NewTask{Type: name, Payload: []byte("p"), MaxAttempts: 1})
		}
	}
	pending("Asleep", 3) // no worker claims it
	h.stamp.T += attentionWaitMS - 1
	pending("busy", 2)
	h.claims("busy", 1, 1)
	pending("done", 1)
	h.do(command.Complete{Hold: command.Hold{ID: h.claims("done", 1, 1)[0].Task.ID, WorkerID: "w1"}})
	pending("failing", 2)
	h.do(command.Fail{Hold: command.Hold{ID: h.claims("failing", 1, 1)[0].Task.ID, WorkerID: "w1"}})
	pending("full", 2)
	h.set("full", record.TypeMaxClaimed, record.TypeSettings{MaxClaimed: 1})
	h.claims("full", 1, 1)
	h.set("halted", record.TypePaused, record.TypeSettings{Paused: true})
	pending("roomy", 1)
	h.set("roomy", record.TypeMaxClaimed, record.TypeSettings{MaxClaimed: 1})
	h.claims("roomy", 1, 1)
	h.stamp.T++
	if got := findTypes(h.m, TypesQuery{Attention: true}, h.stamp); strings.Contains(namesOf(got.Types), "Asleep") {
		t.Errorf("a type needs attention whose task has been pending for 60 s: %s", namesOf(got.Types))
	}
	h.stamp.T++
	return h
}

func namesOf(views []TypeView) string {
	var names []string
	for _, v := range views {
		names = append(names, v.Type)
	}
	return strings.Join(names, " ")
}

func TestFindTypes(t *testing.T) {
	t.Parallel()
	h := typesFor(t)
	for _, test := range []struct {
		q       TypesQuery
		want    string
		matched int
	}{
		{TypesQuery{}, "Asleep busy done failing full halted roomy", 7},
		{TypesQuery{Limit: 2}, "Asleep busy", 7},
		{TypesQuery{After: "failing", Limit: 2}, "full halted", 3},
		{TypesQuery{Order: "name", Name: "L"}, "Asleep failing full halted", 4},
		{TypesQuery{Name: "aSl"}, "Asleep", 1},
		{TypesQuery{Name: "none"}, "", 0},
		{TypesQuery{Order: "pending", Limit: 4}, "Asleep busy failing full", 7},
		{TypesQuery{Order: "claimed", Limit: 3}, "busy full roomy", 7},
		{TypesQuery{Order: "completed", Limit: 1}, "done", 7},
		{TypesQuery{Order: "completed"}, "done Asleep busy failing full halted roomy", 7},
		{TypesQuery{Order: "failed_per_s", Limit: 1}, "failing", 7},
		{TypesQuery{Order: "completed_per_s", Limit: 1}, "done", 7},
		{TypesQuery{Order: "submitted_per_s", Limit: 3}, "Asleep busy failing", 7},
		{TypesQuery{Order: "oldest", Limit: 5}, "Asleep busy failing full done", 7},
		{TypesQuery{Attention: true}, "Asleep failing full halted", 4},
		{TypesQuery{Attention: true, Order: "oldest", Limit: 1}, "Asleep", 4},
	} {
		if got := findTypes(h.m, test.q, h.stamp); namesOf(got.Types) != test.want || got.Matched != test.matched || got.Total != 7 {
			t.Errorf("%+v: %s, %d of %d match", test.q, namesOf(got.Types), got.Matched, got.Total)
		}
	}
	all := findTypes(h.m, TypesQuery{Limit: 1, Name: "none"}, h.stamp).All
	if all.Counts != h.m.Stats(h.stamp).Counts || all.OldestPendingAgeMS != attentionWaitMS+1 {
		t.Errorf("all types: %+v", all)
	}
	if all.SubmittedPerS != 183_323 || all.CompletedPerS != millionths/60 || all.FailedPerS != millionths/60 {
		t.Errorf("the rates of all, 8 of now and 3 of which almost all are in the last minute: %+v", all)
	}
	// As if there were no others.
	some := findTypes(h.m, TypesQuery{See: func(name string) bool { return name == "busy" || name == "done" }}, h.stamp)
	if namesOf(some.Types) != "busy done" || some.Total != 2 || some.All.OldestPendingAgeMS != 2 || some.All.SubmittedPerS != 33_333+16_666 {
		t.Errorf("of two types: %+v", some)
	}
	if got := some.All.Counts; got[record.StatusPending] != 1 || got[record.StatusClaimed] != 1 || got[record.StatusCompleted] != 1 || got[record.StatusFailed] != 0 {
		t.Errorf("of two types: %v", got)
	}
	// A worker that completes one task after the other may have none claimed.
	h.do(command.Complete{Hold: command.Hold{ID: h.claims("Asleep", 1, 1)[0].Task.ID, WorkerID: "w1"}})
	if got := findTypes(h.m, TypesQuery{Attention: true}, h.stamp); namesOf(got.Types) != "failing full halted" {
		t.Errorf("at work: %s", namesOf(got.Types))
	}
	// A minute later nothing has failed of late.
	h.stamp.T += rateWindowMS + rateSlotMS
	if got := findTypes(h.m, TypesQuery{Attention: true}, h.stamp); namesOf(got.Types) != "Asleep failing full halted" {
		t.Errorf("a minute later: %s", namesOf(got.Types))
	}
	h.claims("failing", 1, 1)
	if got := findTypes(h.m, TypesQuery{Attention: true}, h.stamp); namesOf(got.Types) != "Asleep full halted" {
		t.Errorf("a minute later, with a worker: %s", namesOf(got.Types))
	}
}

func TestTypeOrder_Valid(t *testing.T) {
	t.Parallel()
	for order, want := range map[TypeOrder]bool{"": true, "name": true, "oldest": true, "blocked": true, "cancelled": true, "paused": false, "Pending": false, "unknown": false} {
		if order.Valid() != want {
			t.Errorf("%q is valid: %v", order, !want)
		}
	}
}

// compareFound compares what is found with what there is.
func compareFound(t rapid.TB, g *generator, m *Machine, now record.Stamp) {
	types, t0 := m.Types("", 0, now), now.T
	orders := []TypeOrder{"name", "oldest", "submitted_per_s", "completed_per_s", "failed_per_s", "pending", "scheduled", "blocked", "claimed", "running", "completed", "failed", "cancelled"}
	q := TypesQuery{Order: pick(g, orders...), Limit: pick(g, 0, 1, 2, 3), Attention: pick(g, false, true)}
	if q.Attention {
		types = slices.DeleteFunc(types, func(v TypeView) bool {
			s, c := &v.Settings, &v.Counts
			return !s.Paused && (s.MaxClaimed == 0 || c[record.StatusClaimed] < int64(s.MaxClaimed) || c[record.StatusPending] == 0) && v.FailedPerS == 0 &&
				(c[record.StatusPending] == 0 || c[record.StatusClaimed] > 0 || v.CompletedPerS > 0 || v.OldestPendingAgeMS <= attentionWaitMS)
		})
	}
	key := func(v TypeView) int64 {
		switch q.Order {
		case "name":
			return 0
		case "oldest":
			if v.Counts[record.StatusPending] == 0 {
				return -1
			}
			return v.OldestPendingAgeMS
		case "submitted_per_s":
			return v.SubmittedPerS
		case "completed_per_s":
			return v.CompletedPerS
		case "failed_per_s":
			return v.FailedPerS
		}
		status, _ := record.ParseStatus(string(q.Order))
		return v.Counts[status]
	}
	slices.SortStableFunc(types, func(a, b TypeView) int { return cmp.Compare(key(b), key(a)) })
	found := findTypes(m, q, now)
	want := types
	if q.Limit > 0 {
		want = types[:min(len(types), q.Limit)]
	}
	if found.Matched != len(types) || len(found.Types) != len(want) {
		t.Fatalf("%+v at %d: %d of %d are found, want %d of %d", q, t0, len(found.Types), found.Matched, len(want), len(types))
	}
	for i, v := range found.Types {
		// Of tasks created at the same time the first one is older.
		if q.Order == "oldest" && key(v) == key(want[i]) {
			v = want[i]
		}
		if diff := diffOf(want[i], v); diff != "" {
			t.Fatalf("%+v at %d, place %d (-want +got):\n%s", q, t0, i, diff)
		}
	}
}

// findTypes finds in one look.
func findTypes(m *Machine, q TypesQuery, now record.Stamp) (f TypesFound) {
	m.FindTypes(&f, q, now)
	return f
}
