package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/api/trail"
	"github.com/claimq/claimq/api/wire"
)

// Every denial of a known key is in the audit file of the node that the client is connected to, and no other denial
// is.
func TestServer_auditsDenials(t *testing.T) {
	t.Parallel()
	keys := append(allRoles(), expiring(testKey("operator", "over"), time.Now().Add(-time.Hour)), fromAddresses(testKey("operator", "far"), "10.0.0.0/8"),
		ofTypes(testKey("worker", "mail"), "mail"))
	leader, follower, node := setupKeys(t, keys...)
	paths := map[*Server]string{}
	for name, s := range map[string]*Server{"leader": leader, "follower": follower} {
		paths[s] = filepath.Join(t.TempDir(), name)
		s.core.cfg.Audit = openAudit(t, paths[s], node)
	}
	follower.callFrom(t, "192.0.2.1", "POST /api/tasks", `{"params":1}`, with("worker"), "X-Request-ID: r1").refused(t, wire.CodeForbidden)
	follower.callFrom(t, "192.0.2.2", "GET /api/stats", "", with("over"), "X-Request-ID: r2").refused(t, wire.CodeUnauthorized)
	follower.callFrom(t, "192.0.2.3", "GET /api/cluster", "", with("far"), "X-Request-ID: r3").refused(t, wire.CodeForbidden)
	follower.callFrom(t, "192.0.2.4", "POST /api/tasks/claim", `{"worker_id":"w","task_types":["bill"]}`, with("mail"), "X-Request-ID: r4").refused(t, wire.CodeForbidden)
	follower.callFrom(t, "192.0.2.5", "GET /api/stats", "", with("nobody")).refused(t, wire.CodeUnauthorized)
	follower.callFrom(t, "192.0.2.5", "GET /api/stats", "").refused(t, wire.CodeUnauthorized)
	follower.callFrom(t, "192.0.2.6", "GET /api/tasks/7", "", with("reader")).refused(t, wire.CodeTaskNotFound)
	follower.callFrom(t, "192.0.2.7", "POST /ui/login", `{"key":"`+keyText("over")+`"}`, "X-Request-ID: r7").refused(t, wire.CodeUnauthorized)
	follower.callFrom(t, "192.0.2.7", "POST /ui/login", `{"key":"nobody"}`).refused(t, wire.CodeUnauthorized)
	large := dial(t, listen(t, follower), "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: r5\r\nContent-Length: 100000\r\n"+with("over")+"\r\n\r\n")
	receive(t, bufio.NewReader(large)).refused(t, wire.CodeUnauthorized)

	want := []string{
		"r1 worker 192.0.2.1 submit_tasks 403 forbidden: The call submit_tasks needs the role producer, and this key has the role worker",
		"r2 over 192.0.2.2 get_stats 401 unauthorized: The API key expired at",
		"r3 far 192.0.2.3 get_cluster 403 forbidden: This API key may not be used from 192.0.2.3",
		"r4 mail 192.0.2.4 claim_tasks 403 forbidden: ",
		"r7 over 192.0.2.7 log_in 401 unauthorized: The API key expired at",
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

// openAudit opens an audit file until the test ends.
func openAudit(t testing.TB, path string, node Node) *trail.Audit {
	t.Helper()
	a, err := trail.OpenAudit(trail.AuditConfig{Path: path, Node: node})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// An audit file has the events in the form of the API.
func TestServer_auditsEvents(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	path := filepath.Join(t.TempDir(), "audit")
	openAudit(t, path, node)
	s.call(t, "POST /api/tasks", `{"tasks":[{"params":1},{"params":2}]}`).good(t, 200)
	page := s.call(t, "GET /api/events", "").body
	waitFor(t, func() bool {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.ReplaceAll(strings.TrimSuffix(string(text), "\n"), "\n", ",")
		return strings.HasPrefix(page, `{"success":true,"events":[`+lines+`],`)
	})
}

// deniedLine is a line of an audit file about a denied request.
type deniedLine struct {
	wire.Event
	Key       string `json:"key"`
	Address   string `json:"address"`
	Call      string `json:"call"`
	Status    int    `json:"status"`
	Code      string `json:"code"`
	RequestID string `json:"request_id"`
}

// deniedLines returns the lines of the file at path that name a key.
func deniedLines(t *testing.T, path string) (lines []deniedLine) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var l deniedLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if l.Key != "" {
			lines = append(lines, l)
		}
	}
	return lines
}
