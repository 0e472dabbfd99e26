package api

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// own is the Origin of a page of the server under test.
const own = "Origin: http://127.0.0.1:7400"

// halves are the headers of a browser that has logged in.
type halves struct{ cookie, number string }

// headers returns the headers of a call of the page.
func (h halves) headers(more ...string) []string {
	return append([]string{"Cookie: a=b; " + h.cookie, "X-Claimq-Page: " + h.number}, more...)
}

// logIn logs in with a key and returns the two halves.
func logIn(t *testing.T, s *Server, name string) halves {
	t.Helper()
	got := s.call(t, "POST /ui/login", `{"key":"`+keyText(name)+`"}`, own)
	var told struct {
		N  string
		Me struct {
			Name      string
			Roles     []string
			TaskTypes []string `json:"task_types"`
			ExpiresAt string   `json:"expires_at"`
		}
	}
	if err := json.Unmarshal([]byte(got.body), &told); err != nil || got.status != 200 || told.Me.Name != name || told.Me.ExpiresAt == "" || got.header["Cache-Control"] != "no-store" {
		t.Fatalf("%d %s %v: %v", got.status, got.body, got.header, err)
	}
	set := got.header["Set-Cookie"]
	cookie, attributes, _ := strings.Cut(set, "; ")
	for _, want := range []string{"HttpOnly", "path=/", "SameSite=Strict"} {
		if !strings.Contains(attributes, want) || strings.Contains(strings.ToLower(attributes), "expires") || strings.Contains(attributes, "secure") {
			t.Errorf("the cookie is %s", set)
		}
	}
	if strings.Contains(set, told.N) || strings.Contains(got.body, strings.TrimPrefix(cookie, "claimq=")) || strings.Contains(set+got.body, keyText(name)) {
		t.Errorf("one half has the other one, or the key: %s, %s", set, got.body)
	}
	return halves{cookie, told.N}
}

// setupLogin returns a leader and a follower of one state, with keys of all roles.
func setupLogin(t *testing.T, keys ...door.Key) (leader, follower *Server, node *nodetest.Node) {
	t.Helper()
	if len(keys) == 0 {
		keys = allRoles()
	}
	leader, follower, node = setupKeys(t, keys...)
	follower.core.node.(*nodetest.Node).Machine = node.Machine
	return leader, follower, node
}

// A login at one node is valid at every node, with the role and name of its key. The first login, at any node, makes
// the leader create the secret.
func TestLogin(t *testing.T) {
	t.Parallel()
	leader, follower, node := setupLogin(t)
	for _, at := range []*Server{follower, leader} {
		in := logIn(t, at, "operator")
		for _, s := range []*Server{leader, follower} {
			s.call(t, "GET /api/types", "", in.headers()...).good(t, 200)
			s.call(t, "POST /api/tasks", `{"params":1}`, in.headers(own)...).good(t, 201)
			s.call(t, "PATCH /api/types/mail", `{"paused":true}`, in.headers(own)...).good(t, 200)
			if got := s.call(t, "GET /ui/session", "", in.headers()...); !strings.Contains(got.body, `"me":{"name":"operator","roles":["operator"],"task_types":null,"expires_at":"`) {
				t.Errorf("session: %s", got.body)
			}
			s.call(t, "PATCH /api/types/mail", `{"paused":false}`, logIn(t, s, "producer").headers(own)...).refused(t, wire.CodeForbidden)
		}
	}
	var made int
	var by []string
	for _, c := range node.Proposed {
		switch c := c.(type) {
		case command.SetPageSecret:
			made++
		case command.SetType:
			by = append(by, c.By)
		}
	}
	if made != 1 || fmt.Sprint(by) != "[operator operator operator operator]" {
		t.Errorf("the secret was made %d times, types were changed by %v", made, by)
	}
	// Actions that a node performs itself are recorded with the name, too, because the leader recognizes the
	// forwarded login.
	in := logIn(t, leader, "operator")
	if name, ok := leader.Operator(string(door.AppendLogin(nil, []byte(strings.TrimPrefix(in.cookie, "claimq=")), []byte(in.number)))); !ok || name != "operator" {
		t.Errorf("the leader takes it for %q, %v", name, ok)
	}
}

// One half alone is useless, as is one with another login's, or both if they are not sent the way the page does.
func TestLogin_Halves(t *testing.T) {
	t.Parallel()
	leader, follower, _ := setupLogin(t)
	in, other := logIn(t, leader, "operator"), logIn(t, leader, "operator")
	value := strings.TrimPrefix(in.cookie, "claimq=")
	for _, s := range []*Server{leader, follower} {
		for what, headers := range map[string][]string{
			"no number":            {"Cookie: " + in.cookie},
			"an empty number":      {"Cookie: " + in.cookie, "X-Claimq-Page: "},
			"no cookie":            {"X-Claimq-Page: " + in.number},
			"another's number":     halves{in.cookie, other.number}.headers(),
			"what open nodes get":  halves{in.cookie, "0"}.headers(),
			"another cookie":       {"Cookie: session=" + value, "X-Claimq-Page: " + in.number},
			"a cookie of no login": halves{"claimq=v1.operator.1.99999999999.AAAA", in.number}.headers(),
			"as a key":             {"X-API-Key: page " + value + " " + in.number},
			"as a token":           {"Authorization: Bearer page " + value + " " + in.number},
			"as what nodes pass":   {"X-Claimq-Key: page " + value + " " + in.number},
			"with a wrong key":     in.headers("X-API-Key: wrong"),
			"with a wrong token":   in.headers("Authorization: Basic x"),
		} {
			if got := s.call(t, "GET /api/types", "", headers...); got.status != 401 {
				t.Errorf("%s: %d %s", what, got.status, got.body)
			}
		}
		// A key takes precedence over a cookie.
		s.call(t, "POST /api/tasks", `{"params":1}`, in.headers(own, with("reader"))...).refused(t, wire.CodeForbidden)
	}
}

// Whatever a page of another origin can send, together with the cookie, reads and changes nothing.
func TestLogin_OtherOrigins(t *testing.T) {
	t.Parallel()
	leader, follower, node := setupLogin(t)
	shared := followerOf(t, leader, withKeys(allRoles()...), func(c *Config) { c.AllowedOrigins = []string{"https://board.example"} })
	shared.core.node.(*nodetest.Node).Machine = node.Machine
	in := logIn(t, leader, "operator")
	before := len(node.Proposed)
	for _, s := range []*Server{leader, follower, shared} {
		for what, headers := range map[string][]string{
			"a form of another port":      {"Cookie: " + in.cookie, "Origin: http://127.0.0.1:9999", "Content-Type: text/plain"},
			"the same on plain HTTP":      {"Cookie: " + in.cookie, "Origin: http://127.0.0.1:9999"},
			"a frame":                     {"Cookie: " + in.cookie},
			"a script, with a header":     in.headers("Origin: http://127.0.0.1:9999"),
			"an allowed origin":           in.headers("Origin: https://board.example"),
			"a page of no origin":         in.headers("Origin: null"),
			"a fetch that says same-site": in.headers("Sec-Fetch-Site: same-site"),
		} {
			for _, target := range []string{"GET /api/tasks", "POST /api/tasks", "DELETE /api/tasks/1"} {
				if got := s.call(t, target, goodBodies[target], headers...); got.status != 401 && got.status != 403 {
					t.Errorf("%s, %s: %d %s", what, target, got.status, got.body)
				}
			}
		}
		for _, target := range []string{"POST /ui/login", "POST /ui/logout"} {
			got := s.call(t, target, `{"key":"`+keyText("operator")+`"}`, "Origin: https://board.example")
			if got.refused(t, wire.CodeForbidden); got.header["Set-Cookie"] != "" {
				t.Errorf("%s of an allowed origin: %v", target, got.header)
			}
		}
		// A call of the page itself has its Origin.
		s.call(t, "POST /api/tasks", `{"params":1}`, in.headers()...).refused(t, wire.CodeForbidden)
		s.call(t, "POST /ui/login", `{"key":"`+keyText("operator")+`"}`, "Origin: http://127.0.0.1:9999").refused(t, wire.CodeForbidden)
		for _, preflight := range []string{"Origin: https://board.example", "Origin: http://127.0.0.1:9999"} {
			h := s.call(t, "OPTIONS /api/tasks", "", preflight, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: x-claimq-page").header
			if strings.Contains(strings.ToLower(h["Access-Control-Allow-Headers"]), "x-claimq-page") || h["Access-Control-Allow-Credentials"] != "" {
				t.Errorf("%s may send the header, or cookies: %v", preflight, h)
			}
		}
	}
	if len(node.Proposed) != before {
		t.Errorf("proposed all the same: %v", node.Proposed[before:])
	}
}

// A login ends at once with its key or with the cluster's secret. While a node cannot know whether it is valid, it
// says so.
func TestLogin_Ends(t *testing.T) {
	t.Parallel()
	keys := allRoles()
	s, node := setup(t, func(c *Config) { c.Keys = func() ([]door.Key, error) { return keys, nil } })
	in := logIn(t, s, "operator")
	see := func() answer { return s.call(t, "GET /api/types", "", in.headers()...) }
	reload := func(changed []door.Key) {
		t.Helper()
		keys = changed
		if _, _, err := s.readKeys(); err != nil {
			t.Fatal(err)
		}
	}
	see().good(t, 200)
	changed := allRoles()
	changed[3].SHA256 = keyHash("another")
	reload(changed)
	see().refused(t, wire.CodeUnauthorized)
	reload(allRoles())
	see().good(t, 200)
	reload(allRoles()[:3])
	see().refused(t, wire.CodeUnauthorized)
	expired := allRoles()
	expired[3].ExpiresAt = time.Unix(1, 0)
	reload(expired)
	see().refused(t, wire.CodeUnauthorized)
	s.call(t, "POST /ui/login", `{"key":"`+keyText("operator")+`"}`, own).refused(t, wire.CodeUnauthorized)
	if got := s.call(t, "GET /ui/session", "", in.headers()...); !strings.Contains(got.body, `"me":null`) {
		t.Errorf("the session of a key that has expired: %s", got.body)
	}
	lower := allRoles()
	lower[3].Role = "reader"
	reload(lower)
	s.call(t, "POST /api/tasks", `{"params":1}`, in.headers(own)...).refused(t, wire.CodeForbidden)
	reload(allRoles())

	sum, secret := sha256.Sum256([]byte(keyText("operator"))), node.Machine.PageSecret()
	before := door.NewLogin("operator", time.Now().Add(-secretWait))
	old := halves{"claimq=" + before.Cookie(secret, &sum), before.Number}
	s.call(t, "GET /api/types", "", old.headers()...).good(t, 200)
	node.Machine = fsm.New() // as after a restore, or before the secret has reached this node
	s.call(t, "GET /api/types", "", old.headers()...).refused(t, wire.CodeUnauthorized)
	see().refused(t, wire.CodeNoLeader)
	s.call(t, "GET /ui/session", "", in.headers()...).refused(t, wire.CodeNoLeader)
	if got := s.call(t, "GET /ui/session", "", old.headers()...); !strings.Contains(got.body, `"me":null`) {
		t.Errorf("the session of a login that is over: %s", got.body)
	}
	node.ReadyErr = nodes.ErrNoLeader // as while the log is read
	s.call(t, "GET /api/types", "", old.headers()...).refused(t, wire.CodeNoLeader)
	node.ReadyErr = nil
	if again := logIn(t, s, "operator"); s.call(t, "GET /api/types", "", again.headers()...).status != 200 {
		t.Error("a new login is none")
	}
	see().refused(t, wire.CodeUnauthorized)
	if got := s.call(t, "POST /ui/logout", "", in.headers(own)...); got.status != 200 || !strings.HasPrefix(got.header["Set-Cookie"], "claimq=; expires=") {
		t.Errorf("logout: %d %v", got.status, got.header)
	}
}

// A login in use is renewed with the same number; an expired one has ended.
func TestLogin_Time(t *testing.T) {
	t.Parallel()
	leader, follower, node := setupLogin(t)
	logIn(t, leader, "operator")
	sum := sha256.Sum256([]byte(keyText("operator")))
	for _, c := range []struct {
		begun, expires time.Duration
		status         int
		renewed        bool
	}{
		{0, 12 * time.Hour, 200, false},
		{-30 * time.Minute, 11*time.Hour + 30*time.Minute, 200, false},
		{-2 * time.Hour, 10 * time.Hour, 200, true},
		{-23 * time.Hour, time.Hour, 200, false},
		{-13 * time.Hour, -time.Second, 401, false},
	} {
		in := door.NewLogin("operator", time.Now().Add(c.begun))
		in.Expires = time.Now().Add(c.expires).Truncate(time.Second)
		h := halves{"claimq=" + in.Cookie(node.Machine.PageSecret(), &sum), in.Number}
		for _, s := range []*Server{leader, follower} {
			got := s.call(t, "GET /api/types", "", h.headers()...)
			set := got.header["Set-Cookie"]
			if got.status != c.status || (set != "") != c.renewed {
				t.Errorf("begun %s ago, good for %s: %d, cookie %q", -c.begun, c.expires, got.status, set)
			}
			if set != "" {
				cookie, _, _ := strings.Cut(set, ";")
				s.call(t, "GET /api/types", "", halves{cookie, in.Number}.headers()...).good(t, 200)
				// Behind a proxy with TLS a GET has no Origin.
				set = s.call(t, "GET /api/types", "", halves{"__Host-" + h.cookie, in.Number}.headers()...).header["Set-Cookie"]
				if !strings.HasPrefix(set, "__Host-claimq=v1.") || !strings.Contains(set, "; secure") {
					t.Errorf("a secure cookie is renewed by %q", set)
				}
			}
		}
	}
}

// A wrong key is answered late and counts; after ten of them no further one from that address is checked. A right key
// is still accepted.
func TestLogin_Wrong(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withKeys(allRoles()...))
	for body, field := range map[string]string{`{}`: "key", `{"key":1}`: "key", `{"kez":"x"}`: "kez", `[]`: "", `{"key":""}`: "key"} {
		if f := s.call(t, "POST /ui/login", body, own).refused(t, wire.CodeInvalidRequest); field != "" && f["field"] != field {
			t.Errorf("%s: %v", body, f)
		}
	}
	for range door.TriesPerMinute {
		logIn(t, s, "reader") // right ones do not count
		begun := time.Now()
		got := s.call(t, "POST /ui/login", `{"key":"claimq_wrong"}`, own)
		got.refused(t, wire.CodeUnauthorized)
		if took := time.Since(begun); took < wrongKeyWait || got.header["Set-Cookie"] != "" || got.header["Cache-Control"] != "no-store" {
			t.Errorf("answered after %s with %v", took, got.header)
		}
	}
	if got := s.call(t, "POST /ui/login", `{"key":"claimq_wrong"}`, own); got.status != 429 || got.header["Retry-After"] == "" || got.header["Cache-Control"] != "no-store" {
		t.Errorf("the eleventh: %d %v", got.status, got.header)
	}
	logIn(t, s, "operator")
	if n := scrape(t, s, `claimq_auth_failures_total{reason="unknown"}`); n != door.TriesPerMinute {
		t.Errorf("%v are counted", n)
	}
	open, _ := setup(t)
	open.call(t, "POST /ui/login", `{"key":"x"}`, own).refused(t, wire.CodeInvalidRequest)
}

// A read-only page restricts all its users to reading, whatever their keys permit; the keys themselves keep their
// rights.
func TestLogin_ReadOnly(t *testing.T) {
	t.Parallel()
	readOnly := func(c *Config) { c.Page.ReadOnly = true }
	keyed, _ := setup(t, withKeys(allRoles()...), readOnly)
	open, _ := setup(t, readOnly)
	in := logIn(t, keyed, "operator")
	for s, headers := range map[*Server][]string{keyed: in.headers(own), open: {"X-Claimq-Page: 0", own}} {
		if got := s.call(t, "GET /ui/session", "", headers...); !strings.Contains(got.body, `"read_only":true`) || !strings.Contains(got.body, `"roles":["reader"]`) {
			t.Errorf("session: %s", got.body)
		}
		s.call(t, "GET /api/types", "", headers...).good(t, 200)
		for _, target := range []string{"POST /api/tasks", "POST /api/batch", "PATCH /api/types/mail", "POST /api/tasks/claim", "DELETE /api/tasks/1", "GET /api/cluster"} {
			s.call(t, target, goodBodies[target], headers...).refused(t, wire.CodeForbidden)
		}
	}
	keyed.call(t, "POST /api/tasks", `{"params":1}`, with("operator")).good(t, 201)
	open.call(t, "POST /api/tasks", `{"params":1}`).good(t, 201)
}

// Whether the page is read-only is decided by the node that the browser reached.
func TestLogin_ReadOnlyLeader(t *testing.T) {
	t.Parallel()
	leader, follower, _ := setupLogin(t)
	leader.core.cfg.Page.ReadOnly = true
	in := logIn(t, follower, "operator")
	follower.call(t, "POST /api/tasks", `{"params":1}`, in.headers(own)...).good(t, 201)
	leader.call(t, "POST /api/tasks", `{"params":1}`, in.headers(own)...).refused(t, wire.CodeForbidden)
}

// Cookies of that name from another port of the host, wherever in the header, log no user out; among very many a
// valid one may be missed.
func TestLogin_Cookies(t *testing.T) {
	t.Parallel()
	leader, follower, _ := setupLogin(t)
	in, foreign := logIn(t, leader, "operator"), "claimq=v1.operator.1.99999999999.AAAA; "
	for _, s := range []*Server{leader, follower} {
		for _, cookies := range []string{foreign + in.cookie, in.cookie + "; " + foreign, "claimq=; " + in.cookie, foreign + foreign + foreign + in.cookie, "__Host-" + foreign + in.cookie, strings.Repeat(foreign, cookiesMax) + "__Host-" + in.cookie} {
			h := halves{cookies, in.number}
			s.call(t, "GET /api/types", "", h.headers()...).good(t, 200)
			s.call(t, "PATCH /api/types/mail", `{"paused":true}`, h.headers(own)...).good(t, 200)
		}
		h := halves{strings.Repeat(foreign, cookiesMax) + in.cookie, in.number}
		s.call(t, "GET /api/types", "", h.headers()...).refused(t, wire.CodeUnauthorized)
	}
}

// A login over TLS gets the secure cookie, even without an Origin.
func TestLogin_OverTLS(t *testing.T) {
	t.Parallel()
	_, _, addr, client := setupTLS(t, nil, withKeys(allRoles()...))
	conn := dialTLS(t, addr, client)
	defer conn.Close()
	body := `{"key":"` + keyText("reader") + `"}`
	if _, err := fmt.Fprintf(conn, "POST /ui/login HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", addr, len(body), body); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, bufio.NewReader(conn)); got.status != 200 || !strings.HasPrefix(got.header["Set-Cookie"], "__Host-claimq=v1.reader.") {
		t.Errorf("%d %v", got.status, got.header)
	}
}

// A login has the key's rate and task types.
func TestLogin_KeysBounds(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withKeys(ofTypes(limited(testKey("producer"), 3), "mail")))
	in := logIn(t, s, "producer")
	s.call(t, "GET /api/workers", "", in.headers()...).refused(t, wire.CodeForbidden)
	s.call(t, "POST /api/tasks", `{"task_type":"scan","params":1}`, in.headers(own)...).refused(t, wire.CodeForbidden)
	s.call(t, "POST /api/tasks", `{"task_type":"mail","params":1}`, in.headers(own)...)
	s.call(t, "GET /api/types", "", with("producer"))
	if got := s.call(t, "GET /api/types", "", in.headers()...); got.status != 429 {
		t.Errorf("over the key's rate: %d %v", got.status, got.header)
	}
}

// If the browser uses TLS, the cookie is sent only over TLS.
func TestLogin_Secure(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withKeys(allRoles()...))
	got := s.call(t, "POST /ui/login", `{"key":"`+keyText("reader")+`"}`, "Origin: https://127.0.0.1:7400")
	set := got.header["Set-Cookie"]
	if !strings.HasPrefix(set, "__Host-claimq=v1.reader.") || !strings.Contains(set, "; secure") || strings.Contains(set, "domain") {
		t.Fatalf("the cookie is %s", set)
	}
	var told struct{ N string }
	if err := json.Unmarshal([]byte(got.body), &told); err != nil {
		t.Fatal(err)
	}
	cookie, _, _ := strings.Cut(set, ";")
	s.call(t, "GET /api/types", "", halves{cookie, told.N}.headers()...).good(t, 200)
}
