package callbody

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// The suggestion is a valid field that looks like what was written.
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
		{"Params", task, ""}, // only the case is wrong, which the advice says anyway
		{"run_in", task, "run_at"},
		{"delay", task, "delay_ms"},
		{"max_retries", task, ""},
		{"x", task, ""},
		{"", task, ""},
		{"steps", task, ""}, // it is not valid here
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

// A suggested field is accepted at the place of the wrong one.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	var limits bound.Limits
	limits.SetDefaults()
	of := func(body Body) func(text []byte) *refuse.Refusal {
		return func(text []byte) *refuse.Refusal { return Decode(body, text, &limits) }
	}
	submit := func(text []byte) (bad *refuse.Refusal) { _, bad = DecodeSubmit(text, &limits); return bad }
	batch := func(text []byte) (bad *refuse.Refusal) { _, bad = DecodeBatch(text, &limits); return bad }
	action := func(text []byte) (bad *refuse.Refusal) { _, bad = DecodeAction(text, &limits); return bad }
	schedule := func(text []byte) (bad *refuse.Refusal) { _, bad = DecodeSchedule(text, &limits, nil); return bad }
	bodies := []reflect.Type{
		reflect.TypeFor[wire.NewStep](), reflect.TypeFor[wire.Claim](), reflect.TypeFor[wire.Settle](), reflect.TypeFor[wire.Retry](), reflect.TypeFor[wire.Finalize](),
		reflect.TypeFor[wire.FinalizationClaim](), reflect.TypeFor[wire.Action](), reflect.TypeFor[wire.Filter](), reflect.TypeFor[wire.NewSchedule](), reflect.TypeFor[wire.Backoff](),
	}
	suggested := make(map[string]bool)
	for _, c := range []struct {
		body string // with %q for a field's name
		read func(text []byte) *refuse.Refusal
	}{
		{`{%q:1}`, submit},
		{`{"steps":[{%q:1}]}`, submit},
		{`{"backoff":{%q:1}}`, submit},
		{`{%q:1}`, of(&Complete{})},
		{`{"claim":{%q:1}}`, of(&Complete{})},
		{`{"submit":[{%q:1}]}`, of(&Complete{})},
		{`{%q:1}`, of(&Fail{})},
		{`{%q:1}`, of(&Extend{})},
		{`{%q:1}`, of(&Release{})},
		{`{%q:1}`, of(&Retry{})},
		{`{%q:1}`, of(&Patch{})},
		{`{%q:1}`, of(new(newClaimRequest()))},
		{`{%q:1}`, of(&ClaimFinalization{})},
		{`{%q:1}`, of(&ExtendFinalization{})},
		{`{%q:1}`, of(&Finalize{})},
		{`{%q:1}`, action},
		{`{"filter":{%q:1}}`, action},
		{`{%q:1}`, schedule},
		{`{"task":{%q:1}}`, schedule},
		{`{%q:1}`, batch},
		{`{"ops":[{"op":"claim",%q:1}]}`, batch},
		{`{"ops":[{"op":"submit",%q:1}]}`, batch},
	} {
		for _, body := range bodies {
			for _, name := range namesOf(body) {
				bad := c.read(fmt.Appendf(nil, c.body, name[1:]))
				if bad == nil {
					continue
				}
				var meant string
				if _, err := fmt.Sscanf(bad.Advice, "Did you mean %s", &meant); err != nil {
					continue
				}
				meant = strings.TrimSuffix(meant, "?")
				suggested[meant] = true
				if bad := c.read(fmt.Appendf(nil, c.body, meant)); bad != nil && (strings.Contains(bad.Text, "Unknown field") || strings.Contains(bad.Text, "cannot have")) {
					t.Errorf("%s suggests %s for %s: %s", c.body, meant, name[1:], bad.Text)
				}
			}
		}
	}
	for _, name := range []string{"depends_on", "task_type", "wait_ms", "timeout_seconds"} {
		if !suggested[name] {
			t.Errorf("%s is suggested nowhere", name)
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
