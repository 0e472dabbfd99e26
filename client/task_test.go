package client

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/wire"
)

func TestTask_encode(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		task Task
		want string
	}{
		"JSON as it is":  {Task{Payload: []byte(`{ "a" :"<é" }`)}, `{"params":{ "a" :"<é" },"idempotency_key":"k"}`},
		"bytes":          {Task{Payload: []byte{0, 255}}, `{"payload":"AP8=","idempotency_key":"k"}`},
		"no limit":       {Task{Payload: []byte("1"), MaxAttempts: UnlimitedAttempts}, `{"params":1,"max_attempts":0,"idempotency_key":"k"}`},
		"default limit":  {Task{Payload: []byte("1")}, `{"params":1,"idempotency_key":"k"}`},
		"its own key":    {Task{Payload: []byte("1"), MaxAttempts: 2, IdempotencyKey: "mine"}, `{"params":1,"max_attempts":2,"idempotency_key":"mine"}`},
		"all that there": {Task{Payload: []byte("1"), TaskType: "mail", Priority: -3, MaxAttempts: 9, Lease: time.Minute, ID: "7", Status: StatusFailed}, `{"params":1,"task_type":"mail","priority":-3,"max_attempts":9,"idempotency_key":"k","lease_ms":60000}`},
		"its times":      {Task{Payload: []byte("1"), RunAt: time.Date(2026, 1, 2, 3, 4, 5, 1, time.FixedZone("", 3600)), ExpiresAt: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)}, `{"params":1,"idempotency_key":"k","run_at":"2026-01-02T02:04:05.001Z","expires_at":"2026-01-03T00:00:00Z"}`},
		"its backoff":    {Task{Payload: []byte("1"), Backoff: &Backoff{Initial: time.Second, Factor: 1.00000049, Jitter: 0.1 + 0.2}}, `{"params":1,"idempotency_key":"k","backoff":{"initial_ms":1000,"factor":1,"jitter":0.3}}`},
		"no jitter":      {Task{Payload: []byte("1"), Backoff: &Backoff{Initial: time.Second, Jitter: NoJitter}}, `{"params":1,"idempotency_key":"k","backoff":{"initial_ms":1000,"jitter":0}}`},
		"small shares":   {Task{Payload: []byte("1"), Backoff: &Backoff{Initial: 1, Max: time.Hour, Factor: 1.000001, Jitter: 0.000001}}, `{"params":1,"idempotency_key":"k","backoff":{"initial_ms":1,"max_ms":3600000,"factor":1.000001,"jitter":0.000001}}`},
		"kept for ever":  {Task{Payload: []byte("1"), Retention: KeepForever}, `{"params":1,"idempotency_key":"k","retention_ms":-1}`},
		"not kept":       {Task{Payload: []byte("1"), Retention: KeepNone}, `{"params":1,"idempotency_key":"k","retention_ms":0}`},
		"kept a while":   {Task{Payload: []byte("1"), Retention: time.Nanosecond}, `{"params":1,"idempotency_key":"k","retention_ms":1}`},
		"a delay":        {Task{Payload: []byte("1"), Delay: time.Nanosecond}, `{"params":1,"idempotency_key":"k","delay_ms":1}`},
		"no delay":       {Task{Payload: []byte("1"), Delay: NoDelay}, `{"params":1,"idempotency_key":"k","delay_ms":0}`},
		"who it is":      {Task{Payload: []byte("1"), Labels: map[string]string{"b": "", "a": "1"}, Group: "g", Unique: UniqueActive}, `{"params":1,"idempotency_key":"k","unique":"active","labels":{"a":"1","b":""},"group":"g"}`},
		"a short lease":  {Task{Payload: []byte("1"), Lease: time.Nanosecond}, `{"params":1,"idempotency_key":"k","lease_ms":1}`},
	}
	for name, test := range tests {
		got, err := test.task.encode("k")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if string(got) != test.want {
			t.Errorf("%s: got %s\nwant %s", name, got, test.want)
		}
	}
}

func TestTask_encode_refusals(t *testing.T) {
	t.Parallel()
	ok := []byte("1")
	for name, task := range map[string]Task{
		"empty payload":  {},
		"priority":       {Payload: ok, Priority: math.MaxInt32 + 1},
		"attempts":       {Payload: ok, MaxAttempts: -2},
		"many attempts":  {Payload: ok, MaxAttempts: math.MaxInt32 + 1},
		"negative delay": {Payload: ok, Delay: -2},
		"negative lease": {Payload: ok, Lease: -1},
		"retention":      {Payload: ok, Retention: -3},
		"label":          {Payload: ok, Labels: map[string]string{"a": "\xff"}},
		"no backoff":     {Payload: ok, Backoff: &Backoff{}},
		"backoff factor": {Payload: ok, Backoff: &Backoff{Initial: 1, Factor: math.NaN()}},
		"backoff jitter": {Payload: ok, Backoff: &Backoff{Initial: 1, Jitter: math.Inf(1)}},
		"less than none": {Payload: ok, Backoff: &Backoff{Initial: 1, Jitter: -0.5}},
	} {
		if _, err := task.encode("k"); !errors.Is(err, ErrInvalidTask) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A payload that is JSON travels as bytes where it is to, and is known as such when it is read.
func TestTask_Binary(t *testing.T) {
	t.Parallel()
	for _, binary := range []bool{true, false} {
		task := Task{TaskType: "mail", Payload: []byte("7"), Binary: binary}
		body, err := task.encode("k")
		if err != nil {
			t.Fatal(err)
		}
		var w wire.Task
		if err := json.Unmarshal(body, &w); err != nil {
			t.Fatal(err)
		}
		if (w.Payload != nil) != binary || (w.Params != nil) == binary {
			t.Errorf("binary %v: it is sent as %s", binary, body)
		}
		if got := fromWire(&w); got.Binary != binary || string(got.Payload) != "7" {
			t.Errorf("binary %v: it is read as %+v", binary, got)
		}
	}
}

func TestFromWire(t *testing.T) {
	t.Parallel()
	body := `{"id":17,"task_type":"mail","params":{ "to" : "ada" },"priority":-2,"max_attempts":3,"attempts":1,
		"idempotency_key":"k","lease_ms":2000,"status":"completed","worker_id":"w1","claim_token":5,
		"claimed_at":"2026-01-02T03:04:05.678Z","lease_expires_at":null,"lease_remaining_ms":null,
		"created_at":"2026-01-02T03:04:00.000Z","updated_at":"2026-01-02T03:04:06.000Z","completed_at":"2026-01-02T03:04:06.000Z",
		"result_payload":"AP8=","error":"once","cancel_requested":true,"later_field":{"not":"known yet"},
		"unique":"active","run_at":"2026-01-02T03:04:01.000Z","expires_at":"2026-01-02T03:04:02.000Z","expires_again":true,"labels":{"a":"b"},"group":"g",
		"backoff":{"initial_ms":1000,"max_ms":2000,"factor":1.5,"jitter":0.2},"retention_ms":-1,"progress":{ "done": 3 },
		"in_force":{"lease_ms":2000,"backoff":{"initial_ms":1000,"max_ms":2000,"factor":1.5,"jitter":0.2},"retention_ms":0},
		"attempts_log":[{"worker_id":"w0","claim_token":4,"claimed_at":"2026-01-02T03:04:01.000Z","ended_at":"2026-01-02T03:04:02.000Z","outcome":"failed","error":"once"},
			{"worker_id":"w1","claim_token":5,"claimed_at":"2026-01-02T03:04:05.678Z","ended_at":null,"outcome":null}]}`
	var w wire.Task
	if err := json.Unmarshal([]byte(body), &w); err != nil {
		t.Fatal(err)
	}
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, "2026-01-02T03:04:"+s+"Z")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	claimed, ended, failed := at("05.678"), at("06"), at("02")
	want := &Task{
		ID: "17", IdempotencyKey: "k", TaskType: "mail", Payload: []byte(`{ "to" : "ada" }`), Priority: -2, MaxAttempts: 3,
		Lease: 2 * time.Second, Status: StatusCompleted, Attempts: 1, ClaimedBy: "w1", Error: "once", Result: []byte{0, 255}, ResultBinary: true,
		CreatedAt: at("00"), ClaimedAt: &claimed, CompletedAt: &ended,
		Unique: UniqueActive, RunAt: at("01"), ExpiresAt: at("02"), ExpiresAgain: true, Labels: map[string]string{"a": "b"}, Group: "g",
		Backoff:   &Backoff{Initial: time.Second, Max: 2 * time.Second, Factor: 1.5, Jitter: 0.2},
		Retention: KeepForever, Progress: []byte(`{ "done": 3 }`), CancelRequested: true,
		InForce: &InForce{2 * time.Second, &Backoff{Initial: time.Second, Max: 2 * time.Second, Factor: 1.5, Jitter: 0.2}, KeepNone},
		AttemptsLog: []Attempt{
			{WorkerID: "w0", Token: 4, ClaimedAt: at("01"), EndedAt: &failed, Outcome: "failed", Error: "once"},
			{WorkerID: "w1", Token: 5, ClaimedAt: claimed},
		},
	}
	if diff := cmp.Diff(want, fromWire(&w)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	// A task that is read and submitted again keeps its limit.
	if w.MaxAttempts = 0; fromWire(&w).MaxAttempts != UnlimitedAttempts {
		t.Errorf("no limit is read as %d", fromWire(&w).MaxAttempts)
	}
}

func TestNewTask(t *testing.T) {
	t.Parallel()
	task, err := NewTask("mail", struct {
		To string `json:"to"`
	}{"<ada>"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Task{TaskType: "mail", Payload: []byte(`{"to":"<ada>"}`)}, task); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if _, err := NewTask("mail", func() {}); err == nil {
		t.Error("a function was encoded")
	}
}

// Handle passes the same bytes that were given to NewTask.
func TestNewTask_bytesAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, given := range []string{`{"to": "ada"}`, "\x00\xff"} {
		asBytes, err := NewTask("mail", []byte(given))
		asRaw, rawErr := NewTask("mail", json.RawMessage(given))
		if err != nil || rawErr != nil || string(asBytes.Payload) != given || string(asRaw.Payload) != given {
			t.Errorf("%q became %q, %v and %q, %v", given, asBytes.Payload, err, asRaw.Payload, rawErr)
		}
		var params []byte
		if err := decodeParams(asBytes.Payload, &params); err != nil || string(params) != given {
			t.Errorf("%q is handled as %q, %v", given, params, err)
		}
	}
}

func TestParseID(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]uint64{
		"1": 1, "9007199254740991": 1<<53 - 1,
		"": 0, "0": 0, "01": 0, "+1": 0, "-1": 0, "1/../2": 0, "9007199254740992": 0, "99999999999999999999": 0,
	} {
		got, err := parseID(s)
		if got != want || (err != nil) != (want == 0) || err != nil && !errors.Is(err, ErrTaskNotFound) {
			t.Errorf("%q: got %d, %v", s, got, err)
		}
	}
}
