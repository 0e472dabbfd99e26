package fsm

import (
	"reflect"
	"slices"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// A dead letter takes some optional fields from its task, and a task that is replaced takes some
// from the submit. For each field it is decided here.
func TestOptions_takenOver(t *testing.T) {
	t.Parallel()
	byDeadLetter := []string{"Labels", "Group", "Traceparent", "ShareKey", "Attributes", "SignalMS"}
	byReplaced := []string{"Attributes", "ExpiresAt", "ExpiresAgain"}
	byNeither := []string{"Backoff", "RetentionMS", "UniqueMS", "UniqueActive", "KeyOfType"}
	full := reflect.ValueOf(*fullTask.Options)
	for field := range full.Type().Fields() {
		n := record.NewTask{Type: "mail", Payload: []byte("p"), Key: "k"}
		to := reflect.ValueOf(&n).Elem().FieldByName(field.Name)
		if !to.IsValid() || field.Name == "Parent" { // no field of a submit, or of parents
			continue
		}
		to.Set(full.FieldByName(field.Name))
		if !slices.Contains(slices.Concat(byDeadLetter, byReplaced, byNeither), field.Name) {
			t.Errorf("%s: decide whether a dead letter takes it, and a task that is replaced, and name it here", field.Name)
			continue
		}
		has := func(task *record.Task) bool {
			return reflect.DeepEqual(reflect.ValueOf(*task.Opts()).FieldByName(field.Name).Interface(), to.Interface())
		}

		h := newLifeHarness(t)
		h.set("mail", record.TypeDeadLetter, record.TypeSettings{DeadLetter: "dead", DeadLetterAfter: 1})
		h.submit(1, n)
		h.do(command.Signal{ID: 1}) // of one that waits for it
		h.claims("mail", 1, 1)
		h.do(command.Fail{Hold: command.Hold{ID: 1, WorkerID: "w1"}})
		if taken := has(h.m.Get(2)); taken != slices.Contains(byDeadLetter, field.Name) {
			t.Errorf("%s: a dead letter takes it: %v", field.Name, taken)
		}

		h = newLifeHarness(t)
		h.submit(1, record.NewTask{Type: "mail", Payload: []byte("p"), Key: "k"})
		n.Replace, n.Payload = true, []byte("q")
		h.submit(1, n)
		if taken := has(h.m.Get(1)); taken != slices.Contains(byReplaced, field.Name) || string(h.m.Get(1).Payload) != "q" {
			t.Errorf("%s: a task that is replaced takes it: %v, and the payload %q", field.Name, taken, h.m.Get(1).Payload)
		}
	}
}
