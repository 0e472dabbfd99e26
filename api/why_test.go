package api

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// TestWhyAnswer_append checks each reason's code, words and details.
func TestWhyAnswer_append(t *testing.T) {
	t.Parallel()
	const noonMS = nodetest.Start
	for _, c := range []struct {
		name string
		why  whyAnswer
		want string
	}{
		{"a claimed task", whyAnswer{Why: fsm.Why{Status: fsm.StatusClaimed, Ahead: -1}}, `"reasons":[],"ahead":null`},
		{
			"paused",
			whyAnswer{Why: fsm.Why{Reasons: []fsm.WhyReason{{Code: fsm.WhyTypePaused}}, Ahead: 2}},
			`"reasons":[{"code":"type_paused","message":"The type mail is paused"}],"ahead":2`,
		},
		{
			"the limit reached",
			whyAnswer{Why: fsm.Why{Reasons: []fsm.WhyReason{{Code: fsm.WhyLimitReached, Holders: []fsm.Holder{{TaskID: 1, WorkerID: "a"}, {TaskID: 7, WorkerID: "b"}}}}}},
			`"reasons":[{"code":"limit_reached","message":"As many tasks of the type mail are claimed as its max_claimed allows",` +
				`"holders":[{"task_id":1,"worker_id":"a"},{"task_id":7,"worker_id":"b"}]}],"ahead":0`,
		},
		{
			"rate and scheduled",
			whyAnswer{Why: fsm.Why{Reasons: []fsm.WhyReason{{Code: fsm.WhyScheduled, At: noonMS}, {Code: fsm.WhyRateLimited, At: noonMS}, {Code: fsm.WhyGroupBehind, TaskID: 7}}, Ahead: -1}},
			`"reasons":[{"code":"scheduled","message":"It waits until 2026-03-01T12:00:00.000Z","run_at":` + noon + `},` +
				`{"code":"rate_limited","message":"The type mail has used its rate_limit up until 2026-03-01T12:00:00.000Z","at":` + noon + `},` +
				`{"code":"group_behind","message":"Task 7 of its group comes first","id":7}],"ahead":null`,
		},
		{
			"queued",
			whyAnswer{Why: fsm.Why{Reasons: []fsm.WhyReason{{Code: fsm.WhyQueued}}, Ahead: 3}},
			`"reasons":[{"code":"queued","message":"3 tasks of its type are claimed before it","ahead":3}],"ahead":3`,
		},
		{
			"the next",
			whyAnswer{Why: fsm.Why{Reasons: []fsm.WhyReason{{Code: fsm.WhyQueued}}}},
			`"reasons":[{"code":"queued","message":"It is the next of its type","ahead":0}],"ahead":0`,
		},
		{
			"never asked for",
			whyAnswer{noWorker: true, Why: fsm.Why{Reasons: []fsm.WhyReason{{Code: fsm.WhyQueued}}, Ahead: 1}},
			`"reasons":[{"code":"no_worker","message":"No worker has asked for tasks of the type mail since this leader leads","last_asked_at":null},` +
				`{"code":"queued","message":"One task of its type is claimed before it","ahead":1}],"ahead":1`,
		},
		{
			"paused and asked for no more",
			whyAnswer{noWorker: true, lastAskedAt: noonMS, Why: fsm.Why{Reasons: []fsm.WhyReason{{Code: fsm.WhyTypePaused}}}},
			`"reasons":[{"code":"type_paused","message":"The type mail is paused"},` +
				`{"code":"no_worker","message":"No worker asks for tasks of the type mail any more","last_asked_at":` + noon + `}],"ahead":0`,
		},
	} {
		c.why.taskType = "mail"
		got := string(c.why.append(nil))
		if want := `{"success":true,` + c.want + `}`; got != want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, want)
		}
		var w wire.Why
		d := json.NewDecoder(strings.NewReader(got))
		d.DisallowUnknownFields()
		if err := d.Decode(&w); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// whyCodes asks why the task waits and returns the codes of the answer.
func (s *Server) whyCodes(t *testing.T, target string) string {
	t.Helper()
	var w wire.Why
	got := s.call(t, "GET "+target, "")
	if err := json.Unmarshal([]byte(got.body), &w); err != nil || got.status != 200 {
		t.Fatalf("%d %s: %v", got.status, got.body, err)
	}
	var codes []string
	for _, r := range w.Reasons {
		codes = append(codes, r.Code)
	}
	return strings.Join(codes, " ")
}

func TestServer_Why(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	s.call(t, "GET /api/tasks/1/why", "").refused(t, wire.CodeTaskNotFound)
	submitOne(t, s, `{"params":1,"task_type":"a"}`)
	submitOne(t, s, `{"params":2,"task_type":"a"}`)
	submitOne(t, s, `{"params":3,"task_type":"a","delay_ms":1000}`)
	s.call(t, "PATCH /api/types/a", `{"max_claimed":1}`)
	claimOne(t, s, "w")
	follow(t, s, node, []step{
		{target: "GET /api/tasks/1/why", status: 200, want: `{"success":true,"reasons":[],"ahead":null}`},
		{
			target: "GET /api/tasks/2/why", status: 200,
			want: `{"success":true,"reasons":[{"code":"limit_reached","message":"As many tasks of the type a are claimed as its max_claimed allows","holders":[{"task_id":1,"worker_id":"w"}]}],"ahead":0}`,
		},
		{
			target: "GET /api/tasks/3/why", status: 200,
			want: `{"success":true,"reasons":[{"code":"scheduled","message":"It waits until 2026-03-01T12:00:01.000Z","run_at":"2026-03-01T12:00:01.000Z"},` +
				`{"code":"limit_reached","message":"As many tasks of the type a are claimed as its max_claimed allows","holders":[{"task_id":1,"worker_id":"w"}]}],"ahead":null}`,
		},
	})
}

// TestServer_WhyNoWorker checks which claims count as asking for a type, and for
// how long.
func TestServer_WhyNoWorker(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		target, body string
		asks         bool
	}{
		{"POST /api/tasks/claim", `{"worker_id":"w","task_types":["a","A"],"max_attempts_remaining":900}`, true},
		{"POST /api/tasks/claim", `{"worker_id":"w","task_types":["b"]}`, false},
		{"POST /api/tasks/claim", `{"worker_id":"w","task_types":["b"],"wait_ms":100}`, false},
		{"POST /api/tasks/claim", `{"worker_id":"w","task_types":["a"],"max_attempts_remaining":900,"wait_ms":100}`, true},
		{"POST /api/tasks/2/complete", `{"worker_id":"v","claim":{"task_types":["a"],"max_attempts_remaining":900}}`, true},
		{"POST /api/batch", `{"ops":[{"op":"claim","worker_id":"w","task_types":["a"],"max_attempts_remaining":900}]}`, true},
		{"POST /api/tasks/1/extend", `{"worker_id":"w"}`, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, node := setup(t)
			submitOne(t, s, `{"params":1,"task_type":"a"}`)
			if got := s.whyCodes(t, "/api/tasks/1/why"); got != "no_worker queued" {
				t.Errorf("at first: %s", got)
			}
			s.call(t, c.target, c.body)
			wait := func(d time.Duration) {
				<-time.After(d)
				node.Advance(d.Milliseconds())
			}
			wait(time.Minute)
			want := "no_worker queued"
			if c.asks {
				want = "queued"
			}
			if got := s.whyCodes(t, "/api/tasks/1/why"); got != want {
				t.Errorf("%s %s, a minute later: %s, want %s", c.target, c.body, got, want)
			}
			wait(time.Second)
			if got := s.whyCodes(t, "/api/tasks/1/why"); got != "no_worker queued" {
				t.Errorf("%s %s, later: %s", c.target, c.body, got)
			}
			body := s.call(t, "GET /api/tasks/1/why", "").body
			if last := `"last_asked_at":` + noon; c.asks != strings.Contains(body, last) || c.asks == strings.Contains(body, `"last_asked_at":null`) {
				t.Errorf("%s %s: %s", c.target, c.body, body)
			}
		})
	}
}

// TestServer_WhyAnyType checks that a claim of any type asks for each, that one
// that waits has asked until its end, and that only the leader says who asks.
func TestServer_WhyAnyType(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, node := setup(t)
		s.call(t, "POST /api/tasks/claim", `{"worker_id":"w"}`).refused(t, wire.CodeNoPendingTasks)
		submitOne(t, s, `{"params":1,"task_type":"a"}`)
		if got := s.whyCodes(t, "/api/tasks/1/why"); got != "queued" {
			t.Errorf("asked for any: %s", got)
		}
		<-time.After(2 * time.Minute)
		if got := s.whyCodes(t, "/api/tasks/1/why"); got != "no_worker queued" {
			t.Errorf("later: %s", got)
		}
		node.OnClaim = func(_ context.Context, _ command.ClaimNext, wait time.Duration) (nodes.Proposed, error) {
			<-time.After(wait)
			return nodes.Proposed{}, nil
		}
		s.call(t, "POST /api/tasks/claim", `{"worker_id":"w","task_types":["a"],"wait_ms":60000}`).refused(t, wire.CodeNoPendingTasks)
		<-time.After(time.Minute)
		if got := s.whyCodes(t, "/api/tasks/1/why"); got != "queued" {
			t.Errorf("a minute after the end of a claim that waited: %s", got)
		}
		<-time.After(time.Second)
		node.Follower = true
		if got := s.whyCodes(t, "/api/tasks/1/why?consistency=stale"); got != "queued" {
			t.Errorf("a follower says %s", got)
		}
		s.call(t, "POST /api/tasks/claim", `{"worker_id":"w"}`).refused(t, wire.CodeNoLeader)
		node.Follower = false // again
		if got := s.call(t, "GET /api/tasks/1/why", "").body; !strings.Contains(got, `since this leader leads","last_asked_at":null}`) {
			t.Errorf("who was asked meanwhile is not known: %s", got)
		}
	})
}

// TestServer_Workers checks who is shown: those who hold claims and those who
// were heard from, with the later of what state and server know.
func TestServer_Workers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, node := setup(t)
		workers := func() []wire.Worker {
			t.Helper()
			var w wire.Workers
			got := s.call(t, "GET /api/workers", "")
			d := json.NewDecoder(strings.NewReader(got.body))
			d.DisallowUnknownFields()
			if err := d.Decode(&w); err != nil || got.status != 200 || !w.Success {
				t.Fatalf("%d %s: %v", got.status, got.body, err)
			}
			return w.Workers
		}
		at := func(ms int64) *time.Time {
			v := time.UnixMilli(nodetest.Start + ms).UTC()
			return &v
		}
		wait := func(d time.Duration) {
			<-time.After(d)
			node.Advance(d.Milliseconds())
		}
		check := func(want ...wire.Worker) {
			t.Helper()
			if diff := cmp.Diff(want, workers()); diff != "" {
				t.Errorf("workers (-want +got):\n%s", diff)
			}
		}
		if got := s.call(t, "GET /api/workers", "").body; got != `{"success":true,"workers":[]}` {
			t.Errorf("nobody: %s", got)
		}
		for range 3 {
			submitOne(t, s, `{"params":1}`)
		}
		none := []uint64{}
		s.call(t, "POST /api/tasks/claim", `{"worker_id":"b","limit":2,"lease_ms":86400000}`).good(t, 200)
		wait(time.Second)
		s.call(t, "POST /api/tasks/1/complete", `{"worker_id":"c"}`).refused(t, wire.CodeWrongWorker)
		s.call(t, "POST /api/tasks/3/claim", `{"worker_id":"a"}`).good(t, 200)
		s.call(t, "POST /api/tasks/3/complete", `{"worker_id":"a"}`).good(t, 200)
		check(wire.Worker{WorkerID: "a", TaskIDs: none, LastSeenAt: at(1000)},
			wire.Worker{WorkerID: "b", Claimed: 2, TaskIDs: []uint64{1, 2}, LastSeenAt: at(0)},
			wire.Worker{WorkerID: "c", TaskIDs: none, LastSeenAt: at(1000)})
		wait(time.Minute)
		for _, c := range []string{
			`extend {"worker_id":"g"}`, `fail {"worker_id":"d","error":"e"}`, `release {"worker_id":"e"}`,
		} {
			verb, body, _ := strings.Cut(c, " ")
			s.call(t, "POST /api/tasks/1/"+verb, body)
		}
		s.call(t, "POST /api/batch", `{"ops":[{"op":"release","id":1,"worker_id":"f"}]}`)
		s.call(t, "POST /api/tasks/claim", `{"worker_id":"b","task_types":["none"]}`)
		wait(9 * time.Minute)
		seen := at(61_000)
		check(wire.Worker{WorkerID: "a", TaskIDs: none, LastSeenAt: at(1000)},
			wire.Worker{WorkerID: "b", Claimed: 2, TaskIDs: []uint64{1, 2}, LastSeenAt: seen},
			wire.Worker{WorkerID: "c", TaskIDs: none, LastSeenAt: at(1000)},
			wire.Worker{WorkerID: "d", TaskIDs: none, LastSeenAt: seen},
			wire.Worker{WorkerID: "e", TaskIDs: none, LastSeenAt: seen},
			wire.Worker{WorkerID: "f", TaskIDs: none, LastSeenAt: seen},
			wire.Worker{WorkerID: "g", TaskIDs: none, LastSeenAt: seen})
		wait(2 * time.Minute)
		check(wire.Worker{WorkerID: "b", Claimed: 2, TaskIDs: []uint64{1, 2}, LastSeenAt: seen})
	})
}
