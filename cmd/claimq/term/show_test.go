package term

import (
	"encoding/json"
	"testing"
	"time"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain é":       "plain é",
		"a\x1b[2Jb\n\"": `a\x1b[2Jb\n"`,
		"\u202eabc":     `\u202eabc`,
		"bad \xff":      `bad \xff`,
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// For a program the JSON stays the same, and it does nothing to a terminal.
func TestSafeJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a":"plain é 大"}`:              `{"a":"plain é 大"}`,
		"{\"a\u009b\":\"\u007f\u0085\"}": `{"a\u009b":"\u007f\u0085"}`,
		"\"\u202e\u2066\u061c é\"":       `"\u202e\u2066\u061c é"`,
		"\"bad \x9b\"":                   "\"bad \ufffd\"",
	} {
		if got := string(SafeJSON([]byte(in))); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := ShowValue(json.RawMessage("\"\u009b\""), nil); got != `"\u009b"` {
		t.Errorf("a value: %q", got)
	}
}

func TestShowDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 1500 * time.Microsecond: "1ms", 59*time.Second + 999*time.Millisecond: "59.999s",
		time.Minute: "1m00s", 61 * time.Minute: "1h01m", 49 * time.Hour: "2d01h",
	} {
		if got := ShowDuration(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 tasks", 1: "1 task", 2: "2 tasks", 999: "999 tasks", 3201: "3,201 tasks", 1_234_567: "1,234,567 tasks", -123: "-123 tasks"} {
		if got := Count(n, "task"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
