package codec

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/proof"
)

// manyNames is a body of about size bytes that are all names of one object.
func manyNames(before, after string, size int) []byte {
	var b strings.Builder
	b.WriteString(before + "{")
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `"%x":1,`, i)
	}
	return []byte(b.String() + `"last":1}` + after)
}

// A body costs a small multiple of its size, whatever names it contains.
func TestNames_Memory(t *testing.T) { // not parallel, because it measures all allocations
	limits := Limits{}
	limits.SetDefaults()
	const most = 5
	for name, c := range map[string]struct {
		body []byte
		read func(body []byte) *refuse.Refusal
	}{
		"params": {manyNames(`{"params":`, `}`, 1<<20-100), func(b []byte) *refuse.Refusal {
			_, bad := DecodeSubmit(b, &limits)
			return bad
		}},
		"labels": {manyNames(`{"params":1,"labels":`, `}`, 4<<20), func(b []byte) *refuse.Refusal {
			_, bad := DecodeSubmit(b, &limits)
			return bad
		}},
		"an unknown field": {manyNames(`{"x":`, `}`, 4<<20), func(b []byte) *refuse.Refusal {
			_, bad := DecodeSubmit(b, &limits)
			return bad
		}},
		"a result": {manyNames(`{"worker_id":"w","result":`, `}`, 4<<20), func(b []byte) *refuse.Refusal {
			_, bad := DecodeComplete(1, b, &limits)
			return bad
		}},
		"an op": {manyNames(`{"ops":[`, `]}`, 4<<20), func(b []byte) *refuse.Refusal {
			_, bad := DecodeBatch(b, &limits)
			return bad
		}},
		"a name twice": {manyNames(`{"params":`, `,"params":1}`, 4<<20), func(b []byte) *refuse.Refusal {
			_, bad := DecodeSubmit(b, &limits)
			return bad
		}},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		bad := c.read(c.body)
		runtime.ReadMemStats(&after)
		if times := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(c.body)); times > most {
			t.Errorf("%s: %.1f times the bytes of the body, at most %d are allowed", name, times, most)
		}
		if (bad == nil) != (name == "params") {
			t.Errorf("%s: %+v", name, bad)
		}
	}
}

// A duplicate name is found among many as among few.
func TestNames_Duplicate(t *testing.T) {
	t.Parallel()
	limits := Limits{}
	limits.SetDefaults()
	many := string(manyNames("", "", 64<<10))
	large := `{"pad":` + many + `,"a":[{"b":1,"b2":{"b":1}},`
	for body, field := range map[string]string{
		`{"params":` + large + `1]}}`:                               "",
		`{"params":` + large + `1]},"params":1}`:                    "params",
		`{"params":` + large + `1]},"par\u0061ms":1}`:               "params",
		`{"params":` + large + `{"c":1,"d":{"e":[]},"c":2}]}}`:      "params.a[1].c",
		`{"tasks":[{"params":` + large + `1]},"params":1}]}`:        "tasks[0].params",
		`{"params":` + large + `{"c\"\\":1,"d":1,"c\u0022\\":2}]}}`: `params.a[1].c"\`,
		`{"params":` + large + `{"c":1,"d":1}],"a":1,"z":{"a":1}}}`: "params.a",
	} {
		_, bad := DecodeSubmit([]byte(body), &limits)
		if field == "" {
			if bad != nil {
				t.Errorf("%s: %+v", body[len(large):], bad)
			}
			continue
		}
		if bad == nil || bad.Code != wire.CodeInvalidRequest || bad.Field != field || bad.Text != "Duplicate field: "+field {
			t.Errorf("%s: %+v, want %s", body[len(large):], bad, field)
		}
	}
}

// findDuplicate agrees with the JSON decoder.
func TestNames_AsTheDecoder(t *testing.T) {
	t.Parallel()
	limits := Limits{}
	limits.SetDefaults()
	proof.Check(t, func(rt *rapid.T) {
		body := drawJSON(rt, 3)
		d := NewDecoder([]byte(body), &limits)
		defer d.Free()
		_, bad := d.value()
		at, found := findDuplicate([]byte(body))
		if found != (bad != nil) || found && !strings.HasPrefix(bad.Text, "Duplicate field: ") {
			rt.Fatalf("%s: %q %v; the decoder: %+v", body, at, found, bad)
		}
	})
}

// Two names with the same hash need not be equal.
func TestNames_SameHash(t *testing.T) {
	t.Parallel()
	body := []byte(`{"a":1,"b":2,"\u0061":3}`)
	names := []nameAt{{hash: 7, at: 1}, {hash: 7, at: 7}, {hash: 7, at: 13}}
	if name, twice := sameName(body, names[:2]); twice {
		t.Errorf("%q is there once", name)
	}
	if name, twice := sameName(body, names); !twice || name != "a" {
		t.Errorf("twice is %q, %v", name, twice)
	}
}

// Only names in objects that are open at the same time add up.
func TestNames_Many(t *testing.T) {
	t.Parallel()
	pad := `"pad":"` + strings.Repeat(`\\\"{:`, namesFreeBytes/6) + `",`
	few := strings.TrimSuffix(strings.Repeat(`{"a":1,"b":{"c":2}},`, namesFree), ",")
	half := func(inner string) string {
		var b strings.Builder
		for i := range namesFree / 2 {
			fmt.Fprintf(&b, `"%d":1,`, i)
		}
		return `{` + b.String() + `"x":` + inner + `}`
	}
	for body, want := range map[string]bool{
		`{` + pad + `"a":1}`:                         false,
		`{` + pad + `"a":[` + few + `]}`:             false,
		`{` + pad + `"a":` + half("1") + `}`:         false,
		`{` + pad + `"a":` + half(half("1")) + `}`:   true,
		`{` + pad + `"a":[` + half(half("{")):        true,
		`{` + pad + `"a":"` + half(half("1")) + `}`:  false,
		`}` + pad + half(half("1")):                  false,
		pad + half(half("1")):                        false,
		strings.Repeat("{", 2*namesFreeBytes):        false,
		string(manyNames("", "", namesFreeBytes-40)): false,
	} {
		if got := hasManyNames([]byte(body)); got != want {
			t.Errorf("%.40q... %.40q: %v, want %v", body, body[len(body)-40:], got, want)
		}
	}
}

// drawJSON draws a value with few names.
func drawJSON(t *rapid.T, depth int) string {
	switch kind := rapid.IntRange(0, 2).Draw(t, "kind"); {
	case kind == 0 || depth == 0:
		return rapid.SampledFrom([]string{`1`, `"a"`, `null`, `"\""`}).Draw(t, "leaf")
	case kind == 1:
		var items []string
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			items = append(items, drawJSON(t, depth-1))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	var members []string
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		name := rapid.SampledFrom([]string{`"a"`, `"\u0061"`, `"b"`, `"c\""`, `""`, `"d\\"`}).Draw(t, "name")
		members = append(members, name+":"+drawJSON(t, depth-1))
	}
	return "{" + strings.Join(members, ",") + "}"
}

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
	var limits Limits
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
