package api

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// TestServer_LifeCommands checks the commands for all fields and calls of a task's life.
func TestServer_LifeCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		target, body string
		want         command.Command
	}{
		{"POST /api/tasks/7/cancel", ``, command.Cancel{ID: 7}},
		{"POST /api/tasks/7/cancel", ` {} `, command.Cancel{ID: 7}},
		{"POST /api/tasks/7/release", `{"worker_id":"w","delay_ms":31536000000}`, command.Release{Hold: command.Hold{ID: 7, WorkerID: "w"}, DelayMS: 31_536_000_000}},
		{"POST /api/tasks/7/release", `{"worker_id":"w","delay_ms":null}`, command.Release{Hold: command.Hold{ID: 7, WorkerID: "w"}}},
		{"POST /api/tasks/7/extend", `{"worker_id":"w","progress": {"a": 1} }`, command.Extend{Hold: command.Hold{ID: 7, WorkerID: "w"}, Progress: []byte(`{"a": 1}`)}},
		{"POST /api/tasks/7/extend", `{"worker_id":"w","progress":null}`, command.Extend{Hold: command.Hold{ID: 7, WorkerID: "w"}}},
		{"POST /api/tasks/7/extend", `{"worker_id":"w","progress":"` + strings.Repeat("x", 4094) + `"}`, command.Extend{Hold: command.Hold{ID: 7, WorkerID: "w"}, Progress: []byte(`"` + strings.Repeat("x", 4094) + `"`)}},
		{"POST /api/tasks/7/fail", `{"worker_id":"w","error":"e","retry_in_ms":0}`, command.Fail{Hold: command.Hold{ID: 7, WorkerID: "w"}, Error: "e", RetryIn: true}},
		{"POST /api/tasks/7/fail", `{"worker_id":"w","error":"e","retry_in_ms":31536000000,"permanent":false}`, command.Fail{Hold: command.Hold{ID: 7, WorkerID: "w"}, Error: "e", RetryIn: true, RetryInMS: 31_536_000_000}},
		{"POST /api/tasks/7/fail", `{"worker_id":"w","error":"e","retry_in_ms":null,"permanent":true}`, command.Fail{Hold: command.Hold{ID: 7, WorkerID: "w"}, Error: "e", Permanent: true}},
		{"POST /api/tasks/7/fail", `{"worker_id":"w","error":"e","permanent":null}`, command.Fail{Hold: command.Hold{ID: 7, WorkerID: "w"}, Error: "e"}},
		{
			"POST /api/tasks/claim", `{"worker_id":"w","task_types":["a"],"sort_by":"random","sort_order":"asc","max_attempts_remaining":1000,"wait_ms":0}`,
			command.ClaimNext{WorkerID: "w", Types: []string{"a"}, SortBy: command.SortRandom, MoreAttempts: 1000, Limit: 1},
		},
		{"PATCH /api/tasks/7", `{"priority":-5}`, command.Patch{ID: 7, SetPriority: true, Priority: -5}},
		{
			"PATCH /api/tasks/7", `{"priority":null,"run_at":null,"labels":null}`,
			command.Patch{ID: 7, SetPriority: true, SetRunAt: true, SetLabels: true},
		},
		{
			"PATCH /api/tasks/7", `{"run_at":"2026-03-01T12:00:00Z","labels":{"b":"2","a":""}}`,
			command.Patch{ID: 7, SetRunAt: true, RunAt: nodetest.Start, SetLabels: true, Labels: []fsm.Label{{Name: "a"}, {Name: "b", Value: "2"}}},
		},
		{"PATCH /api/tasks/7", `{"labels":{}}`, command.Patch{ID: 7, SetLabels: true}},
		{"PATCH /api/tasks/7", `{"share_key":"ann"}`, command.Patch{ID: 7, SetShareKey: true, ShareKey: "ann"}},
		{"PATCH /api/tasks/7", `{"share_key":null}`, command.Patch{ID: 7, SetShareKey: true}},
		{
			"PATCH /api/types/A.b%3Ac_d-0", `{"paused":true,"max_claimed":1,"max_claimed_per_key":2147483647,"rate_limit_per_key":1000000,"fair":true,"rate_limit":0.000001,"delay_ms":31536000000,"dead_letter":{"task_type":"b","max_attempts":2147483647},"lease_ms":100,"max_attempts":0,"backoff":{"initial_ms":1},"retention_ms":-1}`,
			command.SetType{Type: "A.b:c_d-0", Set: 127 | fsm.TypeDelay | fsm.TypeDeadLetter | fsm.TypeMaxClaimedPerKey | fsm.TypeFair | fsm.TypeRateLimitPerKey, Settings: fsm.TypeSettings{
				MaxClaimedPerKey: 2147483647, RateLimitPerKey: 1_000_000_000_000, Fair: true, Paused: true, DeadLetter: "b", DeadLetterAfter: 2147483647, MaxClaimed: 1, RateLimit: 1, DelayMS: 31_536_000_000, LeaseMS: 100, LimitSet: true,
				Backoff: &fsm.Backoff{InitialMS: 1, MaxMS: 3_600_000, Factor: 2_000_000, Jitter: 200_000}, RetentionMS: fsm.KeepForever,
			}},
		},
		{
			"PATCH /api/types/a", `{"max_claimed":2147483647,"rate_limit":1000000,"retention_ms":0}`,
			command.SetType{
				Type: "a", Set: fsm.TypeMaxClaimed | fsm.TypeRateLimit | fsm.TypeRetention,
				Settings: fsm.TypeSettings{MaxClaimed: 2147483647, RateLimit: 1_000_000_000_000, RetentionMS: fsm.KeepNone},
			},
		},
		{
			"PATCH /api/defaults", `{"lease_ms":60000,"max_attempts":10,"backoff":{"initial_ms":0},"retention_ms":null}`,
			command.SetDefaults{Set: command.DefaultFields, Defaults: fsm.Defaults{LeaseMS: 60_000, LimitSet: true, MaxAttempts: 10, Backoff: &fsm.Backoff{MaxMS: 3_600_000, Factor: 2_000_000, Jitter: 200_000}}},
		},
		{"PATCH /api/types/a", `{"paused":null,"max_claimed":null,"max_claimed_per_key":null,"rate_limit_per_key":null,"fair":null,"rate_limit":null,"delay_ms":null,"dead_letter":null,"lease_ms":null,"max_attempts":null,"backoff":null,"retention_ms":null}`, command.SetType{Type: "a", Set: 127 | fsm.TypeDelay | fsm.TypeDeadLetter | fsm.TypeMaxClaimedPerKey | fsm.TypeFair | fsm.TypeRateLimitPerKey}},
		{
			"PUT /api/types/A.b%3Ac_d-0/shares/a%2Fb%20%C3%A9", `{"paused":true,"max_claimed":2147483647,"weight":10000,"rate_limit":0.000001}`,
			command.SetShare{Type: "A.b:c_d-0", ShareKey: "a/b é", Settings: fsm.ShareSettings{Paused: true, MaxClaimed: 2147483647, Weight: 10_000, RateLimit: 1}},
		},
		{"PUT /api/types/a/shares/ann/shares", `{"weight":1}`, command.SetShare{Type: "a", ShareKey: "ann/shares", Settings: fsm.ShareSettings{Weight: 1}}},
		{"PUT /api/types/a/shares/ann", `{"paused":null,"max_claimed":null,"weight":100,"rate_limit":null}`, command.SetShare{Type: "a", ShareKey: "ann"}},
		{"PUT /api/types/a/shares/ann", `{"weight":null}`, command.SetShare{Type: "a", ShareKey: "ann"}},
		{"DELETE /api/types/a/shares/ann", ``, command.SetShare{Type: "a", ShareKey: "ann"}},
		{
			"POST /api/tasks/7/complete", `{"claim":{"limit":2,"claim_request_id":"r","task_types":["a"]},"submit":[{"params":1},{"payload":"AA==","delay_ms":5}],"worker_id":"w","claim_token":3}`,
			command.Complete{
				Hold: command.Hold{ID: 7, WorkerID: "w", Token: 3},
				Submit: []fsm.NewTask{
					{Type: "default", Params: []byte("1"), MaxAttempts: fsm.DefaultAttempts},
					{Type: "default", Payload: []byte{0}, MaxAttempts: fsm.DefaultAttempts, DelayMS: 5},
				},
				Claim: &command.ClaimNext{WorkerID: "w", Types: []string{"a"}, Limit: 2, RequestID: "r"},
			},
		},
		{
			"POST /api/tasks/7/complete", `{"worker_id":"w","claim":{"worker_id":"v"},"submit":null}`,
			command.Complete{Hold: command.Hold{ID: 7, WorkerID: "w"}, Claim: &command.ClaimNext{WorkerID: "v", Limit: 1}},
		},
		{"POST /api/tasks/7/complete", `{"worker_id":"w","claim":{}}`, command.Complete{Hold: command.Hold{ID: 7, WorkerID: "w"}, Claim: &command.ClaimNext{WorkerID: "w", Limit: 1}}},
		{"POST /api/tasks/7/complete", `{"worker_id":"w","claim":null}`, command.Complete{Hold: command.Hold{ID: 7, WorkerID: "w"}}},
		{
			"POST /api/batch", `{"ops":[
				{"op":"submit","params":1,"group":"g"},
				{"worker_id":"w","task_types":["a"],"op":"claim","limit":3},
				{"id":1,"worker_id":"w","op":"complete","result":2,"claim":{}},
				{"op":"fail","id":2,"worker_id":"w","error":"e","permanent":true},
				{"op":"extend","id":3,"worker_id":"w","lease_ms":100},
				{"op":"release","id":9007199254740991,"worker_id":"w","claim_token":4},
				{"op":"retry","id":5,"add_attempts":1},
				{"\u006fp":"c\u0061ncel","id":6},
				{"id":7,"op":"delete"}],"atomic":true}`,
			command.Batch{Atomic: true, Ops: []command.Command{
				command.Submit{Tasks: []fsm.NewTask{{Type: "default", Params: []byte("1"), MaxAttempts: fsm.DefaultAttempts, Group: "g"}}},
				command.ClaimNext{WorkerID: "w", Types: []string{"a"}, Limit: 3},
				command.Complete{Hold: command.Hold{ID: 1, WorkerID: "w"}, Result: []byte("2"), Claim: &command.ClaimNext{WorkerID: "w", Limit: 1}},
				command.Fail{Hold: command.Hold{ID: 2, WorkerID: "w"}, Error: "e", Permanent: true},
				command.Extend{Hold: command.Hold{ID: 3, WorkerID: "w"}, LeaseMS: 100},
				command.Release{Hold: command.Hold{ID: 1<<53 - 1, WorkerID: "w", Token: 4}},
				command.Retry{ID: 5, AddAttempts: 1},
				command.Cancel{ID: 6},
				command.Delete{ID: 7},
			}},
		},
		{"POST /api/batch", `{"ops":[{"op":"cancel","id":1}],"atomic":null}`, command.Batch{Ops: []command.Command{command.Cancel{ID: 1}}}},
		{
			"POST /api/batch", `{"claim_request_id":"b","ops":[{"op":"claim","worker_id":"w"},{"op":"claim","worker_id":"w","claim_request_id":"r","claim_request_place":999}]}`,
			command.Batch{RequestID: "b", Ops: []command.Command{
				command.ClaimNext{WorkerID: "w", Limit: 1}, command.ClaimNext{WorkerID: "w", Limit: 1, RequestID: "r", RequestPlace: 999},
			}},
		},
	} {
		if diff := cmp.Diff(c.want, proposedBy(t, c.target, c.body)); diff != "" {
			t.Errorf("%s %.100s: command (-want +got):\n%s", c.target, c.body, diff)
		}
	}
}

// proposedBy returns the command that a request makes, or nil.
func proposedBy(t *testing.T, target, body string) command.Command {
	t.Helper()
	s, node := setup(t)
	var got command.Command
	node.ProposeTo(func(cmd command.Command) { got = cmd })
	if a := s.call(t, target, body); got == nil {
		t.Errorf("%s %.100s: nothing proposed: %s", target, body, a.body)
	}
	return got
}

// TestServer_SubmitFields checks each field of a submitted task at its bounds.
func TestServer_SubmitFields(t *testing.T) {
	t.Parallel()
	full := &fsm.Backoff{InitialMS: 1000, MaxMS: 3_600_000, Factor: 2_000_000, Jitter: 200_000}
	for body, set := range map[string]func(n *fsm.NewTask){
		`"run_at":"2026-03-01T12:00:00Z"`:                 func(n *fsm.NewTask) { n.RunAt = nodetest.Start },
		`"run_at":"2026-03-01T13:30:00.001+01:30"`:        func(n *fsm.NewTask) { n.RunAt = nodetest.Start + 1 },
		`"run_at":"2026-03-01T12:00:00.0000001Z"`:         func(n *fsm.NewTask) { n.RunAt = nodetest.Start + 1 },
		`"run_at":"1970-01-01T00:00:00Z"`:                 func(n *fsm.NewTask) { n.RunAt = 1 },
		`"run_at":"9999-12-31T23:59:59.999Z"`:             func(n *fsm.NewTask) { n.RunAt = 253_402_300_799_999 },
		`"run_at":null,"delay_ms":5`:                      func(n *fsm.NewTask) { n.DelayMS = 5 },
		`"run_at":"2026-03-01T12:00:00Z","delay_ms":null`: func(n *fsm.NewTask) { n.RunAt = nodetest.Start },
		`"delay_ms":0`:                                              func(n *fsm.NewTask) { n.AtOnce = true },
		`"delay_ms":31536000000`:                                    func(n *fsm.NewTask) { n.DelayMS = 31_536_000_000 },
		`"expires_at":"2026-03-01T12:00:00Z"`:                       func(n *fsm.NewTask) { n.ExpiresAt = nodetest.Start },
		`"expires_at":"1970-01-01T01:00:00+01:00"`:                  func(n *fsm.NewTask) { n.ExpiresAt = 1 },
		`"expires_at":null`:                                         func(*fsm.NewTask) {},
		`"expires_at":"2026-03-01T12:00:00Z","expires_again":true`:  func(n *fsm.NewTask) { n.ExpiresAt, n.ExpiresAgain = nodetest.Start, true },
		`"expires_at":"2026-03-01T12:00:00Z","expires_again":false`: func(n *fsm.NewTask) { n.ExpiresAt = nodetest.Start },
		`"retention_ms":-1`:                                         func(n *fsm.NewTask) { n.RetentionMS = fsm.KeepForever },
		`"retention_ms":0`:                                          func(n *fsm.NewTask) { n.RetentionMS = fsm.KeepNone },
		`"retention_ms":1`:                                          func(n *fsm.NewTask) { n.RetentionMS = 1 },
		`"retention_ms":3153600000000`:                              func(n *fsm.NewTask) { n.RetentionMS = 3_153_600_000_000 },
		`"retention_ms":null`:                                       func(*fsm.NewTask) {},
		`"group":"` + strings.Repeat("g", 128) + `"`:                func(n *fsm.NewTask) { n.Group = strings.Repeat("g", 128) },
		`"group":"é /"`:                                             func(n *fsm.NewTask) { n.Group = "é /" },
		`"unique":"active","idempotency_key":"k"`:                   func(n *fsm.NewTask) { n.UniqueActive, n.Key = true, "k" },
		`"unique":"exists"`:                                         func(*fsm.NewTask) {},
		`"unique":null`:                                             func(*fsm.NewTask) {},
		`"labels":{}`:                                               func(*fsm.NewTask) {},
		`"labels":null`:                                             func(*fsm.NewTask) {},
		`"labels":{"z":"1","a":"x:y","é":"","` + strings.Repeat("n", 64) + `":"` + strings.Repeat("v", 64) + `"}`: func(n *fsm.NewTask) {
			n.Labels = []fsm.Label{{Name: "a", Value: "x:y"}, {Name: strings.Repeat("n", 64), Value: strings.Repeat("v", 64)}, {Name: "z", Value: "1"}, {Name: "é"}}
		},
		`"backoff":null`:                func(*fsm.NewTask) {},
		`"backoff":{"initial_ms":1000}`: func(n *fsm.NewTask) { n.Backoff = full },
		`"backoff":{"jitter":null,"factor":null,"max_ms":null,"initial_ms":1000}`: func(n *fsm.NewTask) { n.Backoff = full },
		`"backoff":{"max_ms":1,"initial_ms":1,"factor":1,"jitter":1}`: func(n *fsm.NewTask) {
			n.Backoff = &fsm.Backoff{InitialMS: 1, MaxMS: 1, Factor: 1_000_000, Jitter: 1_000_000}
		},
		`"backoff":{"initial_ms":31536000000,"factor":1000,"jitter":0}`: func(n *fsm.NewTask) {
			n.Backoff = &fsm.Backoff{InitialMS: 31_536_000_000, MaxMS: 31_536_000_000, Factor: 1_000_000_000}
		},
		`"backoff":{"initial_ms":5,"factor":1.0000005,"jitter":1e-6}`: func(n *fsm.NewTask) {
			n.Backoff = &fsm.Backoff{InitialMS: 5, MaxMS: 3_600_000, Factor: 1_000_001, Jitter: 1}
		},
	} {
		want := fsm.NewTask{Type: "default", Params: []byte("0"), MaxAttempts: fsm.DefaultAttempts}
		set(&want)
		got := proposedBy(t, "POST /api/tasks", `{`+body+`,"params":0}`)
		if diff := cmp.Diff(command.Command(command.Submit{Tasks: []fsm.NewTask{want}}), got); diff != "" {
			t.Errorf("%s: command (-want +got):\n%s", body, diff)
		}
	}
}
