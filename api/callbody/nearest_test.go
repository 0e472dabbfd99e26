package callbody

import (
	"reflect"
	"testing"

	"github.com/claimq/claimq/api/wire"
)

// What is suggested is a field that the body may have, and looks like what was written.
func TestNearest(t *testing.T) {
	t.Parallel()
	task, claim := namesOf(reflect.TypeFor[wire.NewTask]()), namesOf(reflect.TypeFor[wire.Claim]())
	for _, c := range []struct {
		text  string
		names []string
		want  string
	}{
		{"type", task, "task_type"},
		{"Type", task, "task_type"},
		{"taskType", task, "task_type"},
		{"task-type", task, "task_type"},
		{"key", task, "idempotency_key"},
		{"prio", task, "priority"},
		{"param", task, "params"},
		{"Params", task, ""}, // its case is what is wrong, and the advice says so
		{"run_in", task, "run_at"},
		{"delay", task, "delay_ms"},
		{"max_retries", task, ""},
		{"x", task, ""},
		{"", task, ""},
		{"steps", task, ""}, // it is none here
		{"type", claim, ""},
		{"types", claim, "task_types"},
		{"worker", claim, "worker_id"},
		{"wait", claim, "wait_ms"},
		{"step", namesOf(reflect.TypeFor[wire.NewStep]()), ""},
		{"depends", namesOf(reflect.TypeFor[wire.NewStep]()), "depends_on"},
	} {
		if got := nearest(c.text, c.names); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"ab", "", 2}, {"abc", "abc", 0}, {"abc", "adc", 1}, {"abc", "bc", 1}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
