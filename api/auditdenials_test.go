package api

import (
	"bufio"
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

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// deniedLine is a line of an audit file about a request that was denied.
type deniedLine struct {
	wire.Event
	Key       string `json:"key"`
	Address   string `json:"address"`
	Call      string `json:"call"`
	Status    int    `json:"status"`
	Code      string `json:"code"`
	RequestID string `json:"request_id"`
}

// deniedLines returns the lines about denials of the file at path.
func deniedLines(t *testing.T, path string) (lines []deniedLine) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !isDenial([]byte(line)) {
			continue
		}
		var l deniedLine
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		lines = append(lines, l)
	}
	return lines
}

// Every denial of a known key is in the audit file of the node that the client is
// connected to; of others nothing is.
func TestAudit_denials(t *testing.T) {
	t.Parallel()
	keys := append(allRoles(), expiring(testKey("operator", "over"), time.Now().Add(-time.Hour)), fromAddresses(testKey("operator", "far"), "10.0.0.0/8"),
		ofTypes(testKey("worker", "mail"), "mail"))
	leader, follower, node := setupKeys(t, keys...)
	paths := map[*Server]string{}
	for name, s := range map[string]*Server{"leader": leader, "follower": follower} {
		paths[s] = filepath.Join(t.TempDir(), name)
		s.cfg.Audit = openAudit(t, paths[s], node)
	}
	follower.callFrom(t, "192.0.2.1", "POST /api/tasks", `{"params":1}`, with("worker"), "X-Request-ID: r1").refused(t, wire.CodeForbidden)
	follower.callFrom(t, "192.0.2.2", "GET /api/stats", "", with("over"), "X-Request-ID: r2").refused(t, wire.CodeUnauthorized)
	follower.callFrom(t, "192.0.2.3", "GET /api/cluster", "", with("far"), "X-Request-ID: r3").refused(t, wire.CodeForbidden)
	follower.callFrom(t, "192.0.2.4", "POST /api/tasks/claim", `{"worker_id":"w","task_types":["bill"]}`, with("mail"), "X-Request-ID: r4").refused(t, wire.CodeForbidden)
	follower.callFrom(t, "192.0.2.5", "GET /api/stats", "", with("nobody")).refused(t, wire.CodeUnauthorized)
	follower.callFrom(t, "192.0.2.5", "GET /api/stats", "").refused(t, wire.CodeUnauthorized)
	follower.callFrom(t, "192.0.2.6", "GET /api/tasks/7", "", with("reader")).refused(t, wire.CodeTaskNotFound)
	large := dial(t, listen(t, follower), "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: r5\r\nContent-Length: 100000\r\n"+with("over")+"\r\n\r\n")
	receive(t, bufio.NewReader(large)).refused(t, wire.CodeUnauthorized)

	want := []string{
		"r1 worker 192.0.2.1 submit 403 forbidden: The call submit needs the role producer, and this key has the role worker",
		"r2 over 192.0.2.2 stats 401 unauthorized: The API key expired at",
		"r3 far 192.0.2.3 cluster 403 forbidden: This API key may not be used from 192.0.2.3",
		"r4 mail 192.0.2.4 claim 403 forbidden: ",
		"r5 over 127.0.0.1 none 401 unauthorized: The API key expired at",
	}
	waitFor(t, func() bool { return len(deniedLines(t, paths[follower])) >= len(want) })
	lines := deniedLines(t, paths[follower])
	if len(lines) != len(want) {
		t.Fatalf("%+v", lines)
	}
	for i, l := range lines {
		got := fmt.Sprintf("%s %s %s %s %d %s: %s", l.RequestID, l.Key, l.Address, l.Call, l.Status, l.Code, l.Message)
		if !strings.HasPrefix(got, want[i]) || l.Event.Event != "denied" || time.Since(l.Time) > time.Minute {
			t.Errorf("line %d is %s at %v, want %s", i, got, l.Time, want[i])
		}
	}
	if lines := deniedLines(t, paths[leader]); lines != nil {
		t.Errorf("the leader, whom no client asked, has %+v", lines)
	}
	if text, _ := os.ReadFile(paths[follower]); strings.Contains(string(text), "secret-of") {
		t.Errorf("the file has a key:\n%s", text)
	}
}

// More than 100 in a second are counted.
func TestAudit_denialsBound(t *testing.T) {
	t.Parallel()
	_, node := setup(t)
	path := filepath.Join(t.TempDir(), "audit")
	a := openAudit(t, path, node)
	now := time.Unix(1_800_000_000, 0)
	deny := func(now time.Time, key string, times int) {
		for range times {
			a.denied(now, func() denial { return denial{at: now, key: key, from: netip.MustParseAddr("192.0.2.1")} })
			if key == "slow" {
				waitFor(t, func() bool { a.denials.mu.Lock(); defer a.denials.mu.Unlock(); return len(a.denials.waiting) == 0 })
			}
		}
	}
	deny(now, "slow", denialsPerSecond)
	deny(now, "left out", 37)
	deny(now.Add(time.Second), "next", 1)
	// How many are left out may come in several lines: the second of the test is none that
	// the writer waits for.
	want := map[string]int{"slow denied": denialsPerSecond, " denials_left_out": 37, "next denied": 1}
	var got map[string]int
	waitFor(t, func() bool {
		got = map[string]int{}
		for _, l := range deniedLines(t, path) {
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

// What cannot be written waits, within the same bound.
func TestDenials_putBack(t *testing.T) {
	t.Parallel()
	var d denials
	of := func(n int, key string) (all []denial) {
		for range n {
			all = append(all, denial{key: key})
		}
		return all
	}
	d.waiting, d.leftOut = of(60, "later"), 2
	d.putBack(of(80, "first"), 5)
	waiting, leftOut, more := d.take(time.Unix(1, 0), false)
	if len(waiting) != denialsPerSecond || waiting[79].key != "first" || waiting[80].key != "later" || leftOut != 2+5+40 || more {
		t.Errorf("%d wait, %d are left out, more %v", len(waiting), leftOut, more)
	}
}

// A file whose last lines are about denials goes on behind its last event.
func TestAudit_denialsAndEvents(t *testing.T) {
	t.Parallel()
	_, node := setup(t)
	path := filepath.Join(t.TempDir(), "audit")
	var want []string
	for round := range 3 {
		a := openAudit(t, path, node)
		for i := range 3 {
			key := fmt.Sprintf("key-%d-%d", round, i)
			a.denied(time.Now(), func() denial { return denial{at: time.Now(), key: key} })
			waitFor(t, func() bool { lines := deniedLines(t, path); return len(lines) > 0 && lines[len(lines)-1].Key == key })
			want = append(want, key)
			if i < 2 {
				submitTo(t, node, 1)
				audited(t, path, node)
			}
		}
		a.denied(time.Now(), func() denial { return denial{at: time.Now(), key: "last"} })
		a.Close()
		want = append(want, "last")
	}
	var got, events []string
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range deniedLines(t, path) {
		got = append(got, l.Key)
	}
	var at fsm.EventPos
	for line := range strings.Lines(string(text)) {
		if isDenial([]byte(line)) {
			continue
		}
		next, _ := linePlace([]byte(strings.TrimSuffix(line, "\n")))
		if len(events) > 0 && !behind(next, at) {
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
	d := denial{answer: fmt.Appendf(nil, `{"code":"forbidden","error":%q}`, text+"é and more")}
	var line deniedLine
	if err := json.Unmarshal(d.append(nil, fsm.EventPos{}), &line); err != nil {
		t.Fatal(err)
	}
	if line.Message != text {
		t.Errorf("the message is %q, want %d times x", line.Message, len(text))
	}
}
