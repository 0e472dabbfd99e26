package api

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

var errNotCaughtUp = errors.New("12 entries behind")

func TestServer_Metrics(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	for i := range 103 {
		submitOne(t, s, fmt.Sprintf(`{"params":0,"task_type":"t%03d"}`, i))
	}
	submitOne(t, s, `{"params":0,"task_type":"a-new-one"}`)
	claimOne(t, s, "w")
	s.call(t, "POST /api/tasks/claim", `{}`)
	s.call(t, "GET /nothing", "")
	s.call(t, "PATCH /api/types/t002", `{"paused":true}`)
	s.call(t, "PUT /api/schedules/often", `{"task":{"params":0},"every_ms":1000}`)
	node.Advance(3000)
	scrape := func() string {
		got := s.call(t, "GET /metrics", "")
		if got.status != 200 || !strings.HasPrefix(got.header["Content-Type"], "text/plain") {
			t.Fatalf("%d %s", got.status, got.header["Content-Type"])
		}
		return got.body
	}
	body := scrape()
	for _, line := range []string{
		`claimq_http_requests_total{call="submit_tasks",code="ok"} 104`,
		`claimq_http_requests_total{call="claim_tasks",code="ok"} 1`,
		`claimq_http_requests_total{call="claim_tasks",code="invalid_request"} 1`,
		`claimq_http_requests_total{call="none",code="not_found"} 1`,
		`claimq_http_request_duration_seconds_count{call="submit_tasks"} 104`,
		`claimq_http_request_duration_seconds_count{call="claim_tasks"} 1`,
		`claimq_http_in_flight 1`,
		`claimq_http_connections 0`,
		`claimq_http_panics_total 0`,
		`claimq_tasks{status="pending"} 103`,
		`claimq_tasks{status="claimed"} 1`,
		`claimq_tasks{status="cancelled"} 0`,
		`claimq_tasks_by_type{status="pending",task_type="t001"} 1`,
		`claimq_tasks_by_type{status="pending",task_type="other"} 4`,
		`claimq_oldest_pending_age_seconds 3`,
		`claimq_type_oldest_wait_seconds{task_type="t001"} 3`,
		`claimq_type_oldest_wait_seconds{task_type="other"} 3`,
		`claimq_type_paused{task_type="t001"} 0`,
		`claimq_type_paused{task_type="t002"} 1`,
		`claimq_type_per_second{event="submitted",task_type="other"} 0.066664`,
		`claimq_type_per_second{event="failed",task_type="t001"} 0`,
		`claimq_schedules 1`,
		`claimq_schedule_late_seconds 2`,
		`claimq_trail_limit_bytes 6.7108864e+07`,
		`claimq_trail_oldest_age_seconds 3`,
		`claimq_build_info{go_version="` + runtime.Version() + `",node_id="n1",version="v0.0.1"} 1`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if types := len(regexp.MustCompile(`claimq_tasks_by_type\{status="pending",`).FindAllString(body, -1)); types != 101 {
		t.Errorf("%d types have metrics, want 100 and other", types)
	}
	// A later type that sorts first does not displace others.
	submitOne(t, s, `{"params":0,"task_type":"a-newer-one"}`)
	if body := scrape(); !strings.Contains(body, `claimq_tasks_by_type{status="pending",task_type="other"} 5`) {
		t.Error("a new type took the place of an old one")
	}
	// A node that cannot be read reports no counts, but still its other metrics.
	node.OnRead = func(context.Context, uint64) error { return nodes.ErrShuttingDown }
	if body := scrape(); strings.Contains(body, "claimq_tasks{") || !strings.Contains(body, "claimq_http_requests_total{") {
		t.Error("a node that cannot be read has task counts, or nothing at all")
	}
}

// Of many types each counts once, and only a bounded number is read under one lock.
func TestServer_MetricsOfManyTypes(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	const types = 450
	tasks := make([]fsm.NewTask, types)
	for i := range tasks {
		tasks[i] = fsm.NewTask{Type: fmt.Sprintf("t%03d", i), Params: []byte("1")}
	}
	apply(t, node, command.Submit{Tasks: tasks})
	node.Advance(2000)
	apply(t, node, command.Submit{Tasks: tasks[types-1:]})
	node.Advance(2000)
	reads := 0
	node.OnRead = func(context.Context, uint64) error {
		reads++
		return nil
	}
	body := s.call(t, "GET /metrics", "").body
	for _, line := range []string{
		`claimq_tasks{status="pending"} 451`,
		`claimq_tasks_by_type{status="pending",task_type="t099"} 1`,
		`claimq_tasks_by_type{status="pending",task_type="other"} 351`,
		`claimq_oldest_pending_age_seconds 4`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if reads != 4 {
		t.Errorf("it was read %d times, want 1 and 3 of types", reads)
	}
	node.OnRead = func(context.Context, uint64) error {
		if reads--; reads == 0 {
			return nodes.ErrShuttingDown
		}
		return nil
	}
	if body := s.call(t, "GET /metrics", "").body; strings.Contains(body, "claimq_tasks") {
		t.Error("a node that could not be read to the end has task counts")
	}
}

// Types with settings have their own series, however many types there are, before and after a restart.
func TestServer_MetricsOfTypesWithSettings(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	own := func(name string) bool {
		return strings.Contains(s.call(t, "GET /metrics", "").body, `claimq_tasks_by_type{status="pending",task_type="`+name+`"} 1`)
	}
	tasks := make([]fsm.NewTask, 130)
	for i := range tasks {
		tasks[i] = fsm.NewTask{Type: fmt.Sprintf("t%03d", i), Params: []byte("1")}
	}
	apply(t, node, command.Submit{Tasks: tasks})
	if !own("t099") || own("t129") {
		t.Fatal("the first 100 types have no series of their own, or more have")
	}
	apply(t, node, command.SetType{Type: "t129", Set: 127, Settings: fsm.TypeSettings{MaxClaimed: 5}})
	if !own("t129") || own("t099") || !own("t098") {
		t.Error("a type that got settings has no series, or the one before the last lost its own")
	}
}

// A type with share keys counts those that wait by state, and its oldest wait without those that are closed. No share
// key is a label, however many there are, and types without share keys have none of it.
func TestServer_MetricsOfShares(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	s.call(t, "PATCH /api/types/mail", `{"fair":true}`)
	task := func(name, key string) {
		apply(t, node, command.Submit{Tasks: []fsm.NewTask{{Type: name, Params: []byte("1"), ShareKey: key}}})
	}
	task("mail", "paused")
	apply(t, node, command.SetShare{Type: "mail", ShareKey: "paused", Settings: fsm.ShareSettings{Paused: true}})
	node.Advance(2000)
	task("mail", "limited")
	apply(t, node, command.SetShare{Type: "mail", ShareKey: "limited", Settings: fsm.ShareSettings{MaxClaimed: 1}})
	claimOne(t, s, "w")
	task("mail", "limited")
	for i := range 300 {
		task("mail", fmt.Sprint("open-", i))
	}
	task("plain", "")
	node.Advance(1000)
	body := s.call(t, "GET /metrics", "").body
	for _, line := range []string{
		`claimq_type_shares{state="open",task_type="mail"} 300`,
		`claimq_type_shares{state="paused",task_type="mail"} 1`,
		`claimq_type_shares{state="limited",task_type="mail"} 1`,
		`claimq_type_shares{state="rate_limited",task_type="mail"} 0`,
		`claimq_type_oldest_wait_seconds{task_type="mail"} 3`,
		`claimq_type_share_oldest_wait_seconds{task_type="mail"} 1`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if n := strings.Count(body, "\nclaimq_type_share"); n != 5 {
		t.Errorf("%d series of shares, want 5, of one type", n)
	}
	for i := range 150 {
		task(fmt.Sprint("u", i), "a")
		task(fmt.Sprint("u", i), "b")
	}
	body = s.call(t, "GET /metrics", "").body
	for _, line := range []string{`claimq_type_shares{state="open",task_type="u0"} 2`, `claimq_type_shares{state="open",task_type="other"} 104`} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
}

// Clients that ask for OpenMetrics get it.
func TestServer_MetricsOpen(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for accept, want := range map[string]string{
		"":           "text/plain",
		"text/plain": "text/plain",
		"application/openmetrics-text;version=1.0.0,text/plain;q=0.5": "application/openmetrics-text",
	} {
		got := s.call(t, "GET /metrics", "", "Accept: "+accept)
		if !strings.HasPrefix(got.header["Content-Type"], want) || strings.HasSuffix(got.body, "# EOF\n") != (want != "text/plain") {
			t.Errorf("Accept %q: %s, %q", accept, got.header["Content-Type"], got.body[max(0, len(got.body)-20):])
		}
	}
}

func TestNew_Refuses(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	if _, err := New(Config{Node: nodetest.New(), Registry: registry}); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]Config{
		"no node":            {},
		"metrics twice":      {Node: nodetest.New(), Registry: registry},
		"limits":             {Node: nodetest.New(), Limits: codec.Limits{Items: 1001}},
		"a negative wait":    {Node: nodetest.New(), Wait: -1},
		"no connections":     {Node: nodetest.New(), Connections: -1},
		"a depth of nothing": {Node: nodetest.New(), Limits: codec.Limits{Depth: 1}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestServer_Overloads checks that a refusal says what is full, and is counted.
func TestServer_Overloads(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	var err error
	node.OnPropose = func(context.Context, command.Command) (nodes.Proposed, error) { return nodes.Proposed{}, err }
	bounds := []nodes.Bound{nodes.BoundMemory, nodes.BoundDisk, nodes.BoundInFlight, nodes.BoundWaitingClaims, nodes.BoundWaitingReads}
	for _, bound := range bounds {
		err = fmt.Errorf("propose: %w", &nodes.Overload{Bound: bound, Text: "x"})
		got := s.call(t, "POST /api/tasks", `{"params":1}`)
		if f := got.refused(t, wire.CodeOverloaded); f["reason"] != string(bound) || got.header["Retry-After"] != "1" || f["error"] != "The server is overloaded" {
			t.Errorf("%s: %v", bound, f)
		}
	}
	err = nodes.ErrOverloaded
	if f := s.call(t, "POST /api/tasks", `{"params":1}`).refused(t, wire.CodeOverloaded); f["reason"] != nil {
		t.Errorf("no bound: %v", f)
	}
	err = errors.Join(nodes.ErrOutcomeUnknown, &nodes.Overload{Bound: nodes.BoundMemory})
	if f := s.call(t, "POST /api/tasks", `{"params":1}`).refused(t, wire.CodeOutcomeUnknown); f["reason"] != nil {
		t.Errorf("unknown: %v", f)
	}
	metrics := s.call(t, "GET /metrics", "").body
	for _, bound := range append(bounds, "other") {
		if line := fmt.Sprintf("claimq_overloads_total{bound=%q} 1\n", bound); !strings.Contains(metrics, line) {
			t.Errorf("metrics have no %s", line)
		}
	}
	if line := `claimq_overloads_total{bound="connections"} 0`; !strings.Contains(metrics, line) {
		t.Errorf("metrics have no %s", line)
	}
}

// The leader counts its answers, including those to forwarded requests; a follower and a refusal count nothing.
func TestServer_FinalizationMetrics(t *testing.T) {
	t.Parallel()
	follower, leader, followerNode, _ := setupPair(t)
	const path = "POST /api/tasks/1/finalization/"
	follower.call(t, path+"claim", `{"processor_id":"p"}`)
	leader.call(t, path+"claim", `{"processor_id":"p"}`)
	follower.call(t, path+"release", `{"processor_id":"p"}`)
	follower.call(t, path+"extend", `{"processor_id":"p"}`)
	follower.call(t, path+"claim", `{"processor_id":"p","timeout_seconds":0}`)
	follower.call(t, "POST /api/tasks/1/finalize", `{"processor_id":"p","outcome":"failed"}`)
	followerNode.OnForward = nil
	follower.call(t, path+"claim", `{"processor_id":"p"}`)
	body := leader.call(t, "GET /metrics", "").body
	for _, line := range []string{
		`finalization_claim_attempts_total{processor_id="p"} 2`,
		`finalization_claim_contention_by_reason_total{processor_id="p",reason="other"} 2`,
		`finalization_claim_duration_seconds_count{processor_id="p"} 2`,
		`finalization_claim_release_not_owned_total{processor_id="p"} 1`,
		`finalization_claim_extend_failed_total{processor_id="p"} 1`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if strings.Contains(follower.call(t, "GET /metrics", "").body, `processor_id="p"`) {
		t.Error("a follower counts what it passed on, or what found no leader")
	}
}
