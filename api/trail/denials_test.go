package trail

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/internal/testwait"
)

// denialLine is a line of an audit file about a denied request.
type denialLine struct {
	wire.Event
	Key       string `json:"key"`
	Address   string `json:"address"`
	Call      string `json:"call"`
	Status    int    `json:"status"`
	Code      string `json:"code"`
	RequestID string `json:"request_id"`
}

// denialLines returns the lines about denials of the file at path.
func denialLines(t *testing.T, path string) (lines []denialLine) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !isDenial([]byte(line)) {
			continue
		}
		var l denialLine
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		lines = append(lines, l)
	}
	return lines
}

// More than 100 denials in a second are only counted.
func TestAudit_denialsBound(t *testing.T) {
	t.Parallel()
	node := nodetest.New()
	path := filepath.Join(t.TempDir(), "audit")
	a := openFor(t, path, node)
	now := time.Unix(1_800_000_000, 0)
	deny := func(now time.Time, key string, times int) {
		for range times {
			a.Denied(now, func() Denial { return Denial{At: now, Key: key, From: netip.MustParseAddr("192.0.2.1")} })
			if key == "slow" {
				testwait.Until(t, "what is to be in the file", func() bool { a.denials.mu.Lock(); defer a.denials.mu.Unlock(); return len(a.denials.waiting) == 0 })
			}
		}
	}
	deny(now, "slow", denialsPerSecond)
	deny(now, "left out", 37)
	deny(now.Add(time.Second), "next", 1)
	// The number left out may be in several lines, because the test's second is not the writer's.
	want := map[string]int{"slow denied": denialsPerSecond, " denials_left_out": 37, "next denied": 1}
	var got map[string]int
	testwait.Until(t, "what is to be in the file", func() bool {
		got = map[string]int{}
		for _, l := range denialLines(t, path) {
			n := 1
			if l.Key == "" {
				if _, err := fmt.Sscanf(l.Message, "%d more requests with known keys were denied", &n); err != nil {
					t.Fatalf("%q: %v", l.Message, err)
				}
			}
			got[l.Key+" "+l.Event.Event] += n
		}
		return maps.Equal(got, want) || got[" denials_left_out"] > 37
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Denials that cannot be written wait, within the same bound.
func TestDenials_putBack(t *testing.T) {
	t.Parallel()
	var d denials
	of := func(n int, key string) (all []Denial) {
		for range n {
			all = append(all, Denial{Key: key})
		}
		return all
	}
	d.waiting, d.leftOut = of(60, "later"), 2
	d.putBack(of(80, "first"), 5)
	waiting, leftOut, more := d.take(time.Unix(1, 0), false)
	if len(waiting) != denialsPerSecond || waiting[79].Key != "first" || waiting[80].Key != "later" || leftOut != 2+5+40 || more {
		t.Errorf("%d wait, %d are left out, more %v", len(waiting), leftOut, more)
	}
}

// A file that ends with denials continues after its last event.
func TestAudit_denialsAndEvents(t *testing.T) {
	t.Parallel()
	node := nodetest.New()
	path := filepath.Join(t.TempDir(), "audit")
	var want []string
	for round := range 3 {
		a := openFor(t, path, node)
		for i := range 3 {
			key := fmt.Sprintf("key-%d-%d", round, i)
			a.Denied(time.Now(), func() Denial { return Denial{At: time.Now(), Key: key} })
			testwait.Until(t, "what is to be in the file", func() bool { lines := denialLines(t, path); return len(lines) > 0 && lines[len(lines)-1].Key == key })
			want = append(want, key)
			if i < 2 {
				nodetest.SubmitTo(t, node, 1)
				audited(t, path, node)
			}
		}
		a.Denied(time.Now(), func() Denial { return Denial{At: time.Now(), Key: "last"} })
		a.Close()
		want = append(want, "last")
	}
	var got, events []string
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range denialLines(t, path) {
		got = append(got, l.Key)
	}
	var at event.Pos
	for line := range strings.Lines(string(text)) {
		if isDenial([]byte(line)) {
			continue
		}
		next, _ := linePlace([]byte(strings.TrimSuffix(line, "\n")))
		if len(events) > 0 && !After(next, at) {
			t.Errorf("an event twice: %s", line)
		}
		at = next
		events = append(events, line)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("denials (-want +got):\n%s", diff)
	}
	if len(events) != 7 { // a raised level, and six submits
		t.Errorf("%d events", len(events))
	}
}

// A long text is cut between two characters.
func TestDenial_cutsWholeCharacters(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", denialErrorBytes-1)
	d := Denial{Answer: fmt.Appendf(nil, `{"code":"forbidden","error":%q}`, text+"é and more")}
	var line denialLine
	if err := json.Unmarshal(d.append(nil, event.Pos{}), &line); err != nil {
		t.Fatal(err)
	}
	if line.Message != text {
		t.Errorf("the message is %q, want %d times x", line.Message, len(text))
	}
}
