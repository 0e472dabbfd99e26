package codec

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/claimq/claimq/api/wire"
)

// optionsFile is read by the tests of the clients in other languages.
const optionsFile = "../../clients/options.json"

var update = flag.Bool("update", false, "write "+optionsFile)

// optionVector is a task, and the field for which the server refuses it, "" if it takes it. The clients refuse the
// same tasks, naming the same field, before they send anything.
type optionVector struct {
	Task  json.RawMessage `json:"task"`
	Field string          `json:"field"`
}

// given are values of each option at its bounds and beyond, as JSON. Others of the task stand behind a comma.
var given = map[string][]string{
	"task_type":    {`"mail.v1:a-b_c"`, `""`, `"."`, `".."`, `"a b"`, `"é"`, `"a/b"`, `7`, text("t", wire.NameMax), text("t", wire.NameMax+1)},
	"priority":     {`0`, `-2147483648`, `2147483647`, `-2147483649`, `2147483648`, `0.5`, `"1"`, `true`},
	"max_attempts": {`0`, `1`, `2147483647`, `2147483648`, `-1`, `1.5`, `"3"`, `true`},
	"idempotency_key": {
		`"k"`, `"é\"\\/"`, `""`, `"."`, `".."`, `"a\nb"`, `"\u007f"`, `"\u0080"`, `7`, text("k", wire.KeyMax), text("k", wire.KeyMax+1),
		text("é", wire.KeyMax/2), text("é", wire.KeyMax/2+1),
	},
	"unique":             {`"exists"`, `"replace"`, `"replace","idempotency_key":"k"`, `"active"`, `"exists","idempotency_key":"k"`, `"active","idempotency_key":"k"`, `"always","idempotency_key":"k"`, `true`, `"window","idempotency_key":"k"`, `"window"`},
	"wait_for_signal_ms": {`1`, `0`, number(wire.DelayMSMax), number(wire.DelayMSMax + 1), `1.5`, `"1"`, `1,"steps":[{"step":"a","params":1}]`},
	"unique_ms": {
		`1,"unique":"window","idempotency_key":"k"`, `1,"unique":"window"`, `1,"unique":"active","idempotency_key":"k"`, `1,"idempotency_key":"k"`, `0,"unique":"window","idempotency_key":"k"`,
		number(wire.UniqueMSMax) + `,"unique":"window","idempotency_key":"k"`, number(wire.UniqueMSMax+1) + `,"unique":"window","idempotency_key":"k"`, `1.5`, `"1"`,
	},
	"delay_ms": {`0`, number(wire.DelayMSMax), number(wire.DelayMSMax + 1), `-1`, `0.5`, `"1"`, `5,"run_at":"2026-01-01T00:00:00Z"`},
	"run_at":   {`"1970-01-01T00:00:00Z"`, `"1969-12-31T23:59:59Z"`, `"9999-12-31T23:59:59.999Z"`, `7`},
	"expires_at": {
		`"2026-01-01T00:00:00Z"`, `"1969-12-31T23:59:59Z"`, `7`, `"2026-01-02T00:00:00Z","run_at":"2026-01-01T23:59:59.999Z"`,
		`"2026-01-02T00:00:00Z","run_at":"2026-01-02T00:00:00.000Z"`,
	},
	"expires_again": {`true,"expires_at":"2026-01-01T00:00:00Z"`, `false`, `false,"expires_at":"2026-01-01T00:00:00Z"`, `true`, `1,"expires_at":"2026-01-01T00:00:00Z"`, `"true"`},
	"lease_ms":      {number(wire.LeaseMSMin), number(wire.LeaseMSMin - 1), number(wire.LeaseMSMax), number(wire.LeaseMSMax + 1), `100.5`, `"1000"`, `true`},
	"backoff": {
		`{"initial_ms":0}`, `{}`, `7`, `{"initial_ms":-1}`, `{"initial_ms":0.5}`, `{"initial_ms":` + number(wire.DelayMSMax) + `}`,
		`{"initial_ms":` + number(wire.DelayMSMax+1) + `}`, `{"initial_ms":5,"max_ms":5}`, `{"initial_ms":5,"max_ms":4}`, `{"initial_ms":0,"max_ms":0}`,
		`{"initial_ms":1,"max_ms":` + number(wire.DelayMSMax+1) + `}`, `{"initial_ms":1,"factor":1}`, `{"initial_ms":1,"factor":1000}`,
		`{"initial_ms":1,"factor":0.9}`, `{"initial_ms":1,"factor":1001}`, `{"initial_ms":1,"factor":"2"}`, `{"initial_ms":1,"jitter":0}`,
		`{"initial_ms":1,"jitter":1}`, `{"initial_ms":1,"jitter":-0.1}`, `{"initial_ms":1,"jitter":1.1}`, `{"initial_ms":1,"jitter":true}`,
	},
	"retention_ms": {`0`, `-1`, `-2`, number(wire.RetentionMSMax), number(wire.RetentionMSMax + 1), `0.5`, `"0"`},
	"labels": {
		`{}`, `{"a":"b"}`, `{"a":""}`, `{"":"b"}`, `{"a:b":"c"}`, `{"a\tb":"c"}`, `{"a":"b\tc"}`, `{"a":7}`, `7`, labels(wire.LabelsMax), labels(wire.LabelsMax + 1),
		`{` + text("n", wire.LabelBytes) + `:` + text("v", wire.LabelBytes) + `}`, `{` + text("n", wire.LabelBytes+1) + `:"v"}`, `{"n":` + text("v", wire.LabelBytes+1) + `}`,
		`{` + text("é", wire.LabelBytes/2) + `:""}`, `{` + text("é", wire.LabelBytes/2+1) + `:""}`,
	},
	"attributes": {`{}`, `{"a":1,"b":{"type":"String","value":"x"}}`, `7`, `[]`, `"x"`},
	"group":      {`"g"`, `"."`, `""`, `"a\nb"`, `7`, text("g", wire.GroupMax), text("g", wire.GroupMax+1)},
	"share_key":  {`"ann"`, `"."`, `""`, `"a\nb"`, `7`, text("k", wire.ShareKeyMax), text("k", wire.ShareKeyMax+1)},
	"traceparent": {
		`"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`, `"00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`, `"00-00000000000000000000000000000000-b7ad6b7169203331-01"`,
		`"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"`, `"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`, `""`, `7`,
	},
	"finalize":        {`"auto"`, `"claim"`, `"claim","steps":[{"step":"a","params":1}]`, `"never","steps":[{"step":"a","params":1}]`},
	"on_step_failure": {`"fail"`, `"continue"`, `"continue","steps":[{"step":"a","params":1}]`, `"stop","steps":[{"step":"a","params":1}]`},
	"steps": {
		`[]`, `7`, `[{"step":"a","params":1}]`, `[{"step":"a","params":1}],"run_at":"2026-01-01T00:00:00Z"`, `[{"step":"a","params":1}],"delay_ms":1`,
		`[{"step":"a","params":1}],"expires_at":"2026-01-01T00:00:00Z"`, `[{"step":"a","params":1}],"group":"g"`, `[{"step":"a","params":1}],"share_key":"k"`,
	},
}

func text(of string, times int) string { return `"` + strings.Repeat(of, times) + `"` }

func number(n int64) string { return fmt.Sprint(n) }

func labels(count int) string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf(`"n%d":"v"`, i))
	}
	return "{" + strings.Join(all, ",") + "}"
}

// The clients in other languages are held to what the server takes of each option.
func TestOptions_vectors(t *testing.T) {
	t.Parallel()
	names := []string{"task_type", "priority", "max_attempts"}
	for _, o := range options {
		names = append(names, o.name)
	}
	names = append(append(names, "lease_ms"), ofParents...)
	var limits Limits
	limits.SetDefaults()
	var lines []string
	for _, name := range names {
		if len(given[name]) == 0 {
			t.Errorf("no values of %s are given", name)
		}
		for _, value := range given[name] {
			task := fmt.Sprintf(`{"params":{},%q:%s}`, name, value)
			v := optionVector{Task: json.RawMessage(task)}
			if _, bad := DecodeSubmit([]byte(task), &limits); bad != nil {
				if v.Field = bad.Field; v.Field == "" {
					t.Errorf("%s: no field is refused: %s", task, bad.Text)
				}
			}
			line, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(line))
		}
	}
	if len(given) != len(names) {
		t.Errorf("values of %d options are given, there are %d", len(given), len(names))
	}
	want := "[\n" + strings.Join(lines, ",\n") + "\n]\n"
	if *update {
		if err := os.WriteFile(optionsFile, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(optionsFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the server takes: run go test ./api/codec -run Options_vectors -update", optionsFile)
	}
}
