package api

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// contractUnlimited are the calls that the contract never limits.
const contractUnlimited = "complete_task fail_task extend_task release_task claim_finalization extend_finalization release_finalization finalize_task get_finalization"

// Settling calls are never refused because of a rate; all others are, wherever they arrive.
func TestRate_Calls(t *testing.T) {
	t.Parallel()
	for _, c := range allCalls(t) {
		target := targetOf(c)
		if c.roles.Has(door.RoleNone) {
			continue
		}
		leader, follower, _ := setupKeys(t, limited(testKey("operator"), 1))
		for _, s := range []*Server{leader, follower} {
			s.call(t, "GET /api/stats", "", with("operator")).good(t, 200)
			for range 3 {
				got := s.call(t, target, goodBodies[target], with("operator"))
				if unlimited := strings.Contains(" "+contractUnlimited+" ", " "+c.String()+" "); (got.status == 429) == unlimited {
					t.Errorf("%s: %d %s", target, got.status, got.body)
				}
			}
		}
	}
}

// A batch counts once; it does not count if it only settles and nothing of it is refused.
func TestRate_Batch(t *testing.T) {
	t.Parallel()
	leader, follower, node := setupKeys(t, limited(testKey("operator"), 3))
	holdTask(t, node)
	settle := `{"ops":[{"op":"extend","id":1,"worker_id":"w"},{"op":"extend","id":1,"worker_id":"w"}]}`
	for _, s := range []*Server{leader, follower} {
		batch := func(body string) answer { return s.call(t, "POST /api/batch", body, with("operator")) }
		batch(settle).good(t, 200)
		for i, body := range []string{
			`{"ops":[{"op":"submit","params":1},{"op":"submit","params":1},{"op":"submit","params":1}]}`,
			strings.Replace(settle, `]}`, `,{"op":"claim","worker_id":"w"}]}`, 1), `{"ops":[`,
		} {
			if got := batch(body); got.header["Ratelimit-Remaining"] != strconv.Itoa(2-i) {
				t.Errorf("%s: %+v", body, got)
			}
		}
		before := len(node.Proposed)
		batch(`{"ops":[{"op":"submit","params":1}]}`).refused(t, wire.CodeRateLimited)
		batch(`{"ops":[{}]}`).refused(t, wire.CodeRateLimited)
		if len(node.Proposed) != before {
			t.Error("a batch over the rate was proposed")
		}
		got := batch(settle)
		got.good(t, 200)
		if got.header["Ratelimit-Limit"] != "" {
			t.Errorf("a batch that settles was counted: %v", got.header)
		}
	}
}

// holdTask makes worker w claim a task, with id 1.
func holdTask(t *testing.T, n *nodetest.Node) {
	t.Helper()
	for _, cmd := range []command.Command{
		command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte(`1`), MaxAttempts: 3, LeaseMS: 30_000}}},
		command.ClaimTask{ID: 1, WorkerID: "w"},
	} {
		if p, err := n.Apply(cmd); err != nil || p.Result.Code != "" {
			t.Fatalf("%T: %+v, %v", cmd, p.Result, err)
		}
	}
}

// A refused settling call counts, wherever it arrives, but is never refused because of the rate.
func TestRate_RefusedSettles(t *testing.T) {
	t.Parallel()
	settles := []struct {
		target, good, bad string
		status            int
	}{
		{"POST /api/tasks/1/extend", `{"worker_id":"w"}`, `{"worker_id":"x"}`, 409},
		{"POST /api/tasks/1/fail", "", `{"worker_id":"w","claim_token":9,"error":"e"}`, 409},
		{"POST /api/tasks/1/release", "", `{"worker_id":"x"}`, 409},
		{"POST /api/tasks/9/complete", "", `{"worker_id":"w"}`, 404},
		{"POST /api/tasks/1/complete", "", `{"worker_id":`, 400},
		{"POST /api/tasks/1/finalize", "", `{"processor_id":"p","outcome":"completed"}`, 409},
		{"POST /api/batch", `{"ops":[{"op":"extend","id":1,"worker_id":"w"}]}`, `{"ops":[{"op":"extend","id":1,"worker_id":"w"},{"op":"extend","id":1,"worker_id":"x"}]}`, 200},
		{"POST /api/batch", "", `{"atomic":true,"ops":[{"op":"extend","id":1,"worker_id":"w"},{"op":"extend","id":1,"worker_id":"x"}]}`, 409},
		{"POST /api/tasks/1/complete", `{"worker_id":"w"}`, "", 0}, // and its repeat
		{"POST /api/tasks/1/complete", `{"worker_id":"w"}`, `{"worker_id":"x"}`, 409},
	}
	for _, of := range []string{"leader", "follower"} {
		leader, follower, node := setupKeys(t, limited(testKey("worker"), 100))
		holdTask(t, node)
		s := map[string]*Server{"leader": leader, "follower": follower}[of]
		left := 100
		for _, c := range settles {
			if c.good != "" {
				if got := s.call(t, c.target, c.good, with("worker")); got.status != 200 || got.header["Ratelimit-Limit"] != "" {
					t.Errorf("%s %s of the %s: %+v", c.target, c.good, of, got)
				}
			}
			if c.bad == "" {
				continue
			}
			left--
			got := s.call(t, c.target, c.bad, with("worker"))
			if got.status != c.status || got.header["Ratelimit-Remaining"] != strconv.Itoa(left) {
				t.Errorf("%s %s of the %s: %+v, want %d, and %d left", c.target, c.bad, of, got, c.status, left)
			}
		}
		for range left + 5 {
			got := s.call(t, "POST /api/tasks/1/extend", `{"worker_id":"x"}`, with("worker"))
			if got.status != 409 || got.header["Retry-After"] != "" {
				t.Fatalf("a settle past the rate: %+v", got)
			}
		}
		s.call(t, "POST /api/tasks/claim", `{"worker_id":"w"}`, with("worker")).refused(t, wire.CodeRateLimited)
	}
}

// A reload does not refill the bucket, but a new rate starts afresh.
func TestRate_Reload(t *testing.T) {
	t.Parallel()
	keys := []door.Key{limited(testKey("operator"), 2), limited(testKey("reader"), 2)}
	s, _ := setup(t, func(c *Config) { c.Keys = func() ([]door.Key, error) { return keys, nil } })
	get := func() answer { return s.call(t, "GET /api/stats", "", with("reader")) }
	get().good(t, 200)
	get().good(t, 200)
	get().refused(t, wire.CodeRateLimited)
	s.HangUp()
	get().refused(t, wire.CodeRateLimited)
	keys = []door.Key{keys[0], limited(testKey("reader"), 3)}
	s.HangUp()
	get().good(t, 200)
	if text := s.call(t, "GET /metrics", "", with("reader")).body; !strings.Contains(text, `claimq_rate_limited_total{key="reader"} 2`) {
		t.Error("a reload forgot what was counted")
	}
}

// Refusals are counted by reason.
func TestMetrics_AuthFailures(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withKeys(append(allRoles(), ofTypes(testKey("producer", "typed"), "a"),
		expiring(testKey("reader", "over"), time.Now().Add(-time.Second)), fromAddresses(testKey("reader", "far"), "192.0.2.0/24"))...))
	s.call(t, "GET /api/stats", "")
	s.call(t, "GET /api/stats", "", with("over"))
	s.call(t, "GET /api/stats", "", with("far"))
	s.call(t, "GET /api/stats", "", with("nobody"))
	s.call(t, "GET /api/stats", "", "Authorization: Digest x")
	s.call(t, "POST /api/tasks", `{"params":1}`, with("reader"))
	s.call(t, "POST /api/tasks", `{"params":1}`, with("typed"))
	s.call(t, "GET /api/stats", "", with("reader"), "Origin: http://evil.example")
	text := s.call(t, "GET /metrics", "", with("reader")).body
	for why, reason := range door.FailureNames {
		count := 1
		// These need a forwarding node, or tokens, which TestTokens_Refused covers.
		if f := door.Failure(why); f == door.FailDiffer || f >= door.FailIssuer {
			count = 0
		}
		if want := fmt.Sprintf("claimq_auth_failures_total{reason=%q} %d\n", reason, count); !strings.Contains(text, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

// A key may make the requests of a minute at once, and one more after each interval.
func TestRate_Bucket(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		standard := testKey("reader", "standard")
		standard.RateLimitPerMinute = nil
		s, _ := setup(t, withKeys(standard, limited(testKey("reader", "slow"), 6), testKey("reader", "free")))
		get := func(name string) answer { return s.call(t, "GET /api/stats", "", with(name)) }
		check := func(got answer, status int, limit, remaining, reset, retry string) {
			t.Helper()
			h := got.header
			if got.status != status || h["Ratelimit-Limit"] != limit || h["Ratelimit-Remaining"] != remaining || h["Ratelimit-Reset"] != reset || h["Retry-After"] != retry {
				t.Fatalf("%+v, want %d %s %s %s %q", got, status, limit, remaining, reset, retry)
			}
		}
		for i := range 100 {
			check(get("standard"), 200, "100", strconv.Itoa(99-i), strconv.Itoa((6*(i+1)+9)/10), "")
		}
		check(get("standard"), 429, "100", "0", "60", "1")
		f := get("standard").refused(t, wire.CodeRateLimited)
		if f["error"] != "The key standard has made its 100 requests a minute" {
			t.Errorf("%v", f)
		}
		<-time.After(599 * time.Millisecond)
		check(get("standard"), 429, "100", "0", "60", "1")
		<-time.After(time.Millisecond)
		check(get("standard"), 200, "100", "0", "60", "")
		check(get("standard"), 429, "100", "0", "60", "1")
		<-time.After(time.Hour) // the bucket holds only a minute's requests
		for range 100 {
			get("standard").good(t, 200)
		}
		get("standard").refused(t, wire.CodeRateLimited)

		for i := range 6 { // another key has its own bucket
			check(get("slow"), 200, "6", strconv.Itoa(5-i), strconv.Itoa(10*(i+1)), "")
		}
		check(get("slow"), 429, "6", "0", "60", "10")
		for range 300 {
			check(get("free"), 200, "", "", "", "")
		}
		// Calls that need no key do not count.
		for range 10 {
			if got := s.call(t, "GET /healthz", "", with("slow")); got.status != 200 {
				t.Errorf("healthz: %+v", got)
			}
		}
		text := s.call(t, "GET /metrics", "", with("free")).body
		for _, want := range []string{`claimq_rate_limited_total{key="slow"} 1`, `claimq_rate_limited_total{key="standard"} 5`, "claimq_api_keys 3"} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("metrics lack %s", want)
			}
		}
		if strings.Contains(text, `key="free"`) {
			t.Error("a key that was never over is in the metrics")
		}
	})
}
