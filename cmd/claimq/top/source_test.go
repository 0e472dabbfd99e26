package top

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/certs"
	"github.com/claimq/claimq/internal/testwait"
)

// nodes are fake nodes of one cluster.
type nodes struct {
	mu      sync.Mutex // guards all fields below
	leader  string     // "": no leader
	urls    map[string]string
	asked   []string // "n1 /api/types"
	refusal map[string]string
	padding int // extra bytes in an answer of types
	limit   string
	types   int
}

// newNodes starts n fake nodes, named n1 and so on. The first one leads.
func newNodes(t *testing.T, n int) (*nodes, map[string]*httptest.Server) {
	t.Helper()
	c := &nodes{leader: "n1", urls: map[string]string{}, refusal: map[string]string{}}
	servers := map[string]*httptest.Server{}
	for i := range n {
		id := fmt.Sprintf("n%d", i+1)
		servers[id] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.answer(w, r, id) }))
		t.Cleanup(servers[id].Close)
		c.set(func() { c.urls[id] = servers[id].URL })
	}
	return c, servers
}

func (c *nodes) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// calls returns the requests since the last call.
func (c *nodes) calls() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := strings.Join(c.asked, ", ")
	c.asked = nil
	return out
}

func (c *nodes) answer(w http.ResponseWriter, r *http.Request, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, id+" "+r.URL.RequestURI())
	if c.limit != "" {
		w.Header().Set("RateLimit-Limit", c.limit)
	}
	stale := r.URL.Query().Get("consistency") == "stale"
	if answer, ok := c.refusal[r.URL.Path]; ok {
		var status int
		fmt.Sscanf(answer, "%d", &status)
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"success":false,"error":"Refused","code":%q}`, answer[4:])
		return
	}
	if c.leader == "" && !stale && r.URL.Path != "/metrics" {
		w.WriteHeader(503)
		fmt.Fprint(w, `{"success":false,"error":"The cluster has no leader","code":"no_leader"}`)
		return
	}
	switch r.URL.Path {
	case "/api/cluster":
		answer := wire.Cluster{Success: true, Leader: c.leader, Term: 3}
		for i := range len(c.urls) {
			id := fmt.Sprintf("n%d", i+1)
			answer.Nodes = append(answer.Nodes, wire.Node{NodeID: id, HTTPAddr: c.urls[id], State: "follower", Suffrage: "voter", Healthy: true})
		}
		_ = json.NewEncoder(w).Encode(answer)
	case "/api/types":
		answer := wire.Types{Success: true, Types: []wire.Type{{TaskType: "mail" + strings.Repeat("x", c.padding), TypeTallies: wire.TypeTallies{Counts: map[string]int64{"pending": 3}}}}}
		c.types++
		_ = json.NewEncoder(w).Encode(answer)
	case "/api/workers":
		fmt.Fprint(w, `{"success":true,"workers":[{"worker_id":"w1","claimed":1,"task_ids":[7],"last_seen_at":null}]}`)
	case "/metrics":
		leads := 0
		if id == c.leader {
			leads = 1
		}
		fmt.Fprintf(w, "claimq_build_info{node_id=%q} 1\nclaimq_raft_leader %d\nclaimq_claims_total 5\nclaimq_tasks{status=\"pending\"} 3\n", id, leads)
	}
}

func newTestSource(t *testing.T, timeout time.Duration, endpoints ...string) *Source {
	t.Helper()
	s := NewSource(Config{TLS: &certs.Renewed{}, Endpoints: endpoints, APIKey: func() string { return "key" }, Timeout: timeout})
	t.Cleanup(s.Close)
	return s
}

// A look makes five requests, whichever node it begins with.
func TestSource_Look(t *testing.T) {
	t.Parallel()
	c, servers := newNodes(t, 3)
	s := newTestSource(t, time.Minute, servers["n2"].URL)
	l := s.Look(t.Context())
	if want := "n2 /api/cluster, n1 /metrics, n3 /metrics, n2 /api/types?order=pending, n2 /api/workers"; c.calls() != want && l.Err == nil {
		t.Errorf("asked something else than %s", want)
	}
	if l.Err != nil || l.NoLeader || len(l.Problems) > 0 || l.Cluster.Leader != "n1" || !l.Metrics["n1"].Leads || len(l.Types.Rows) != 1 || len(l.Workers.Rows) != 1 {
		t.Errorf("looked %+v", l)
	}
	// A look that comes at once may leave out metrics, because the last ones were just read.
	testwait.Until(t, "the metrics of the next node", func() bool {
		_, ok := s.Look(t.Context()).Metrics["n2"]
		return ok
	})
}

// If the leader and all endpoints are gone, the nodes known from before are asked.
func TestSource_goesOnElsewhere(t *testing.T) {
	t.Parallel()
	c, servers := newNodes(t, 3)
	s := newTestSource(t, time.Minute, servers["n1"].URL)
	s.Look(t.Context())
	servers["n1"].Close()
	c.set(func() { c.leader = "" })
	l := s.Look(t.Context())
	if l.Err != nil || !l.NoLeader || l.Cluster == nil {
		t.Errorf("without a leader: %+v", l)
	}
	if l.Types == nil || l.Workers == nil {
		t.Error("what was is forgotten")
	}
	c.set(func() { c.leader = "n3" })
	if l = s.Look(t.Context()); l.Err != nil || l.NoLeader || !l.Metrics["n3"].Leads {
		t.Errorf("after the election: %+v", l)
	}
	servers["n2"].Close()
	servers["n3"].Close()
	if l = s.Look(t.Context()); l.Err == nil || l.NoLeader || len(l.Problems) != 1 {
		t.Errorf("without any node: %+v", l)
	}
}

// The first look at a cluster without a leader shows the node's own view.
func TestSource_beginsWithoutLeader(t *testing.T) {
	t.Parallel()
	c, servers := newNodes(t, 3)
	c.set(func() { c.leader = "" })
	s := newTestSource(t, time.Minute, servers["n2"].URL)
	if l := s.Look(t.Context()); l.Err != nil || !l.NoLeader || l.Types == nil || l.Workers == nil || len(l.Metrics) != 1 || len(l.Problems) > 0 {
		t.Errorf("looked %+v", l)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A node that hangs delays a look by one timeout, or by three if there is no other node.
func TestSource_hangingNode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		endpoints []string
		took      time.Duration
	}{
		"and another":   {[]string{"http://hangs", "http://n1"}, time.Second},
		"alone":         {[]string{"http://hangs"}, 2 * time.Second}, // including the request with consistency=stale
		"all of many":   {[]string{"http://hangs", "http://hangs:1", "http://hangs:2", "http://hangs:3"}, 3 * time.Second},
		"not the first": {[]string{"http://n1", "http://hangs"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &nodes{leader: "n1", urls: map[string]string{"n1": "http://n1"}, refusal: map[string]string{}}
				s := NewSource(Config{TLS: &certs.Renewed{}, Endpoints: test.endpoints, Timeout: time.Second})
				s.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
					if r.URL.Hostname() == "hangs" {
						<-r.Context().Done()
						return nil, r.Context().Err()
					}
					w := httptest.NewRecorder()
					c.answer(w, r, "n1")
					return w.Result(), nil
				})
				begun := time.Now()
				l := s.Look(t.Context())
				if took := time.Since(begun); took != test.took {
					t.Errorf("it took %v, want %v", took, test.took)
				}
				if answers := strings.Contains(strings.Join(test.endpoints, " "), "n1"); (l.Err == nil) != answers || (l.Cluster != nil) != answers {
					t.Errorf("looked %+v", l)
				}
			})
		})
	}
}

// A large answer is requested rarely.
func TestSource_boundsWhatItTakes(t *testing.T) {
	t.Parallel()
	c, servers := newNodes(t, 1)
	c.set(func() { c.padding = 20 * bytesPerSecond })
	s := newTestSource(t, time.Minute, servers["n1"].URL)
	var l Look
	for range 3 {
		l = s.Look(t.Context())
	}
	if c.types != 1 || l.Types == nil {
		t.Errorf("asked for the types %d times", c.types)
	}
}

// A key with few rights sees what it may. A key that has made too many requests waits as long as the server says.
func TestSource_keys(t *testing.T) {
	t.Parallel()
	c, servers := newNodes(t, 1)
	c.set(func() {
		c.limit = "100"
		for _, path := range []string{"/api/cluster", "/metrics", "/api/workers"} {
			c.refusal[path] = "403 forbidden"
		}
	})
	s := newTestSource(t, time.Minute, servers["n1"].URL)
	if l := s.Look(t.Context()); l.Err != nil || l.Types == nil || len(l.Problems) != 3 {
		t.Errorf("looked %+v", l)
	}
	if got := s.Interval(time.Second); got != 3*time.Second {
		t.Errorf("a look each %v", got)
	}
	c.calls()
	c.set(func() {
		for _, path := range []string{"/api/cluster", "/metrics", "/api/workers", "/api/types"} {
			c.refusal[path] = "429 rate_limited"
		}
	})
	if l := s.Look(t.Context()); l.Err == nil {
		t.Errorf("looked %+v", l)
	}
	if n := strings.Count(c.calls(), "n1"); n != 1 {
		t.Errorf("%d requests past the limit", n)
	}
	if l := s.Look(t.Context()); len(l.Problems) != 1 || c.calls() != "" {
		t.Errorf("looked %+v", l)
	}
	c.set(func() { clear(c.refusal); c.refusal["/api/cluster"] = "401 unauthorized" })
	s = newTestSource(t, time.Minute, servers["n1"].URL)
	if l := s.Look(t.Context()); l.Err != nil { // the fake refuses only this call
		t.Errorf("looked %+v", l)
	}
}

// A key that was sent encrypted is never sent unencrypted to an address that a node reports.
func TestSource_keepsTheKeySecret(t *testing.T) {
	t.Parallel()
	s := newTestSource(t, time.Minute, "https://127.0.0.1:1")
	s.learn(&wire.Cluster{Nodes: []wire.Node{{HTTPAddr: "http://127.0.0.1:2"}, {HTTPAddr: "https://127.0.0.1:3/"}, {HTTPAddr: "ftp://x"}, {}}})
	if got := strings.Join(s.order(), " "); got != "https://127.0.0.1:1 https://127.0.0.1:3" {
		t.Errorf("it asks %s", got)
	}
}

func TestSource_endsWithItsContext(t *testing.T) {
	t.Parallel()
	_, servers := newNodes(t, 1)
	s := newTestSource(t, time.Minute, servers["n1"].URL)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if l := s.Look(ctx); l.Err == nil {
		t.Errorf("looked %+v", l)
	}
}
