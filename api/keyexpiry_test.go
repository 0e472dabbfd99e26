package api

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/wire"
)

func expiring(k door.Key, at time.Time) door.Key {
	k.ExpiresAt = at
	return k
}

// A key works until it expires, by the node that it reaches and by the leader.
func TestKeys_Expired(t *testing.T) {
	t.Parallel()
	now := time.Now()
	over, later := expiring(testKey("operator"), now.Add(-time.Second)), expiring(testKey("operator"), now.Add(time.Hour))
	refused := func(s *Server, from string) {
		t.Helper()
		for _, target := range []string{"GET /api/stats", "POST /api/tasks", "GET /metrics"} {
			got := s.call(t, target, goodBodies[target], with("operator"))
			f := got.refused(t, wire.CodeUnauthorized)
			want := "The API key expired at " + over.ExpiresAt.UTC().Format(time.RFC3339)
			if f["error"] != want || got.header["Www-Authenticate"] == "" {
				t.Errorf("%s, %s: %v", from, target, f)
			}
		}
	}
	leader, follower := setupBoth(t, []door.Key{over}, []door.Key{over})
	refused(leader, "the leader")
	refused(follower, "a follower")
	if f := leader.call(t, "GET /api/stats", "", with("nobody")).refused(t, wire.CodeUnauthorized); f["error"] != "Unknown API key" {
		t.Errorf("to a stranger: %v", f)
	}
	if name, ok := leader.Operator(keyText("operator")); ok {
		t.Errorf("an act of %s is told as an operator's", name)
	}
	// The leader uses its own keys and clock, whatever the follower says.
	_, follower = setupBoth(t, []door.Key{over}, []door.Key{later})
	got := follower.call(t, "POST /api/tasks", `{"params":1}`, with("operator")).refused(t, wire.CodeUnauthorized)
	if !strings.Contains(got["error"].(string), "expired at") {
		t.Errorf("a key that has expired for the leader alone: %v", got)
	}
	leader, follower = setupBoth(t, []door.Key{later}, []door.Key{later})
	for _, s := range []*Server{leader, follower} {
		s.call(t, "POST /api/tasks", `{"params":1}`, with("operator")).good(t, 201)
	}
}

// A client with an expired key may hold no more than one without a key.
func TestServer_ExpiredBody(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withKeys(testKey("operator"), expiring(testKey("producer"), time.Now().Add(-time.Second))))
	addr := listen(t, s)
	const large = "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
	dial(t, addr, large+with("operator")+"\r\n\r\n")
	waitFor(t, func() bool { return s.core.port.Open() == 1 && s.core.port.Strangers() == 0 })
	expired := dial(t, addr, large+with("producer")+"\r\n\r\n")
	if f := receive(t, bufio.NewReader(expired)).refused(t, wire.CodeUnauthorized); !strings.Contains(f["error"].(string), "expired at") {
		t.Errorf("%v", f)
	}
}

// A stream ends when its key expires, even if nothing happens.
func TestStream_KeyExpires(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withKeys(testKey("operator"), expiring(testKey("reader"), time.Now().Add(300*time.Millisecond))))
	st := openStream(t, listen(t, s), "/api/events", with("reader"))
	st.begin()
	for {
		b, err := st.next()
		if err != nil {
			t.Fatal(err)
		}
		if b.event == "error" {
			if !strings.Contains(b.data, `"unauthorized"`) || !strings.Contains(b.data, "expired at") {
				t.Errorf("it ends with %s", b.data)
			}
			break
		}
	}
}

// Waiting requests end with 401 when their key expires: at once if reloaded keys say that it has expired, otherwise
// at the new time.
func TestServer_WaitKeyExpires(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ first, then time.Duration }{
		"as it was":       {300 * time.Millisecond, 0},
		"from now on":     {time.Hour, -time.Second},
		"sooner":          {time.Hour, 300 * time.Millisecond},
		"a bit later":     {300 * time.Millisecond, 600 * time.Millisecond},
		"after a recheck": {2 * door.KeyRecheckInterval, 300 * time.Millisecond},
	} {
		var keys changingKeys
		start := time.Now()
		keys.set(testKey("operator"), expiring(testKey("worker"), start.Add(c.first)))
		s, node := setup(t, keys.use)
		waiting := waitsForEver(node)
		answers := make(chan answer, 1)
		go func() {
			answers <- s.call(t, "POST /api/tasks/claim", `{"worker_id":"w","wait_ms":60000}`, with("worker"))
		}()
		<-waiting
		until := c.first
		if c.then != 0 {
			until = c.then
			keys.set(testKey("operator"), expiring(testKey("worker"), start.Add(c.then)))
			reread(t, s)
		}
		f := arrived(t, answers).refused(t, wire.CodeUnauthorized)
		if !strings.Contains(f["error"].(string), "expired at") {
			t.Errorf("%s: %v", name, f)
		}
		if after := time.Since(start); after < until {
			t.Errorf("%s: it ended after %s", name, after)
		}
	}
}
