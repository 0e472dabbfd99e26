package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/wire"
)

// Each field of the API's body comes from a field of a Task, and a Task comes from each, as the task of a schedule does.
func TestTask_sendsEachField(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_772_366_400_000).UTC()
	full := Task{
		IdempotencyKey: "k", TaskType: "mail", Payload: []byte(`{"a":1}`), Priority: 1, MaxAttempts: 2, RunAt: at, Delay: time.Second, ExpiresAt: at.Add(time.Hour), ExpiresAgain: true,
		Lease: time.Second, Retention: time.Minute, Backoff: &Backoff{Initial: time.Second}, Labels: map[string]string{"a": "b"},
		Group: "g", ShareKey: "s", WaitForSignal: time.Hour, Unique: UniqueWindow, UniqueFor: 2 * time.Minute, Attributes: []byte(`{"a":1}`), Steps: []Step{{Name: "s", Task: Task{TaskType: "mail", Payload: []byte("1")}}}, Finalize: FinalizeClaim, OnStepFailure: ContinueOnStepFailure,
	}
	text, err := full.encode("")
	if err != nil {
		t.Fatal(err)
	}
	var sent wire.NewTask
	if err := json.Unmarshal(text, &sent); err != nil {
		t.Fatal(err)
	}
	for field, value := range reflect.ValueOf(sent).Fields() {
		if value.IsZero() && field.Name != "Payload" && field.Name != "Traceparent" { // in place of params; the context's
			t.Errorf("no field of Task is sent as %s", field.Tag.Get("json"))
		}
	}
	if diff := cmp.Diff(full, submittedOf(&sent)); diff != "" {
		t.Errorf("what is sent is another task (-task +sent):\n%s", diff)
	}
}

// A text that is not UTF-8 is refused: the server would get another one.
func TestTask_refusesTextsNotUTF8(t *testing.T) {
	t.Parallel()
	plain := Task{Payload: []byte("1")}
	without, err := plain.encode("k")
	if err != nil {
		t.Fatal(err)
	}
	texts := 0
	for field := range reflect.TypeFor[Task]().Fields() {
		if field.Type.Kind() != reflect.String {
			continue
		}
		bad := plain
		reflect.ValueOf(&bad).Elem().FieldByIndex(field.Index).SetString("\xff")
		body, err := bad.encode("k")
		if string(body) == string(without) {
			continue // it is not sent
		}
		texts++
		words := strings.ToLower(strings.ReplaceAll(fmt.Sprint(err), "_", ""))
		if !errors.Is(err, ErrInvalidTask) || !strings.Contains(words, strings.ToLower(field.Name)+" is not utf-8") {
			t.Errorf("%s: sent as %s, %v", field.Name, body, err)
		}
	}
	if texts == 0 {
		t.Error("no text is sent")
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
