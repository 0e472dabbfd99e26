package client

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// Every field of a Task is sent: each field of the API's body comes from one.
func TestTask_sendsEachField(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_772_366_400_000)
	full := Task{
		IdempotencyKey: "k", TaskType: "mail", Payload: []byte(`{"a":1}`), Priority: 1, MaxAttempts: 2, RunAt: at, Delay: time.Second, ExpiresAt: at.Add(time.Hour), ExpiresAgain: true,
		Lease: time.Second, Retention: time.Minute, Backoff: &Backoff{Initial: time.Second}, Labels: map[string]string{"a": "b"},
		Group: "g", ShareKey: "k", WaitForSignal: time.Minute, Unique: UniqueWindow, UniqueFor: time.Minute, Attributes: []byte(`{"a":1}`), Steps: []Step{{Name: "s", Task: Task{Payload: []byte("1")}}}, Finalize: FinalizeClaim, OnStepFailure: ContinueOnStepFailure,
	}
	text, err := full.encode("")
	if err != nil {
		t.Fatal(err)
	}
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(text, &sent); err != nil {
		t.Fatal(err)
	}
	otherwise := []string{"payload", "traceparent"} // in place of params; the context
	for field := range reflect.TypeFor[wire.NewTask]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if _, has := sent[name]; !has && !slices.Contains(otherwise, name) {
			t.Errorf("no field of Task is sent as %s", name)
		}
	}
}

// Each field of a task in an answer reaches the program.
func TestTask_hasEachFieldOfAnswers(t *testing.T) {
	t.Parallel()
	// A lease is in Job, a claim's token and state too; when a task changed last is not told.
	otherwise := []string{"claim_token", "lease_expires_at", "lease_remaining_ms", "updated_at", "claim_state"}
	zero := fromWire(&wire.Task{})
	for field := range reflect.TypeFor[wire.Task]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		var w wire.Task
		fillWith(t, reflect.ValueOf(&w).Elem().FieldByIndex(field.Index))
		if reaches := !reflect.DeepEqual(fromWire(&w), zero); reaches == slices.Contains(otherwise, name) {
			t.Errorf("%s reaches a Task: %v", name, reaches)
		}
	}
}

// Each field that the task of a schedule can have reaches the program.
func TestTask_hasEachFieldOfSchedules(t *testing.T) {
	t.Parallel()
	otherwise := []string{"idempotency_key", "run_at", "expires_at", "expires_again", "attributes", "traceparent"} // only one task can have them
	zero := submittedOf(&wire.NewTask{})
	for field := range reflect.TypeFor[wire.NewTask]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		var w wire.NewTask
		fillWith(t, reflect.ValueOf(&w).Elem().FieldByIndex(field.Index))
		if reaches := !reflect.DeepEqual(submittedOf(&w), zero); reaches == slices.Contains(otherwise, name) {
			t.Errorf("%s reaches a Task: %v", name, reaches)
		}
	}
}

// fillWith sets v to a value that is not zero.
func fillWith(t *testing.T, v reflect.Value) {
	t.Helper()
	switch to := v.Addr().Interface().(type) {
	case *string:
		*to = UniqueActive
	case *json.RawMessage:
		*to = json.RawMessage(`{"a":1}`)
	case *[]byte:
		*to = []byte("a")
	case *time.Time:
		*to = time.UnixMilli(1)
	case *wire.Labels:
		*to = wire.Labels{"a": "b"}
	case *map[string]wire.StepResult:
		*to = map[string]wire.StepResult{"a": {Result: json.RawMessage("1")}}
	case *[]string:
		*to = []string{"a"}
	default:
		switch v.Kind() {
		case reflect.Int32, reflect.Int64:
			v.SetInt(7)
		case reflect.Uint64:
			v.SetUint(7)
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			if inner := v.Elem(); inner.Kind() != reflect.Struct || inner.Type() == reflect.TypeFor[time.Time]() {
				fillWith(t, inner)
			}
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		default:
			t.Fatalf("no value of %v: add one here", v.Type())
		}
	}
}
