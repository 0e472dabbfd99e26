package client

import (
	"errors"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/repeat"
)

func TestClient_followsTheLeader(t *testing.T) {
	t.Parallel()
	leader, leaderServer := node(t, says(200, pendingTask))
	follower, followerServer := node(t, redirects(leaderServer.URL))
	c := clientOf(t, followerServer.URL)
	for range 3 {
		if _, err := c.Get(t.Context(), "17"); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(follower.requests()); n != 1 {
		t.Errorf("the follower got %d requests, want 1", n)
	}
	got := leader.requests()
	if len(got) != 3 {
		t.Fatalf("the leader got %d requests, want 3", len(got))
	}
	if got[0].path != "/api/tasks/17" || got[0].key != "secret" || !got[0].redirect {
		t.Errorf("the leader got %+v", got[0])
	}
}

func TestClient_findsTheNextLeader(t *testing.T) {
	t.Parallel()
	t.Run("when the old one has died", func(t *testing.T) {
		t.Parallel()
		_, leader := node(t, says(201, pendingTask))
		follower, followerServer := node(t, redirects(leader.URL), says(201, pendingTask))
		c := clientOf(t, followerServer.URL)
		submit(t, c)
		leader.Close()
		submit(t, c)
		got := follower.requests()
		if len(got) != 2 || got[1].redirect {
			t.Errorf("the follower got %+v, want a second request to pass on", got)
		}
	})
	t.Run("when the old one follows", func(t *testing.T) {
		t.Parallel()
		next, nextServer := node(t, says(201, pendingTask))
		_, oldServer := node(t, says(201, pendingTask), redirects(nextServer.URL))
		c := clientOf(t, oldServer.URL)
		submit(t, c)
		submit(t, c)
		submit(t, c)
		if n := len(next.requests()); n != 2 {
			t.Errorf("the next leader got %d requests, want 2", n)
		}
	})
	t.Run("when it has none yet", func(t *testing.T) {
		t.Parallel()
		_, first := node(t, refuses(wire.CodeNoLeader))
		_, second := node(t, refuses(wire.CodeShuttingDown))
		third, thirdServer := node(t, refuses(wire.CodeNoLeader), says(201, pendingTask))
		c := clientOf(t, first.URL, second.URL, thirdServer.URL)
		submit(t, c)
		if n := len(third.requests()); n != 2 {
			t.Errorf("the third node got %d requests, want 2", n)
		}
	})
}

// A node without a leader, or one that is shutting down, asks for a wait. The client waits only after every node has
// done so.
func TestClient_asksTheOthersBeforeItWaits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		endpoints int
		refusals  []reply
		least     time.Duration
	}{
		{3, []reply{refuses(wire.CodeNoLeader), refuses(wire.CodeShuttingDown)}, 0},
		{3, []reply{refuses(wire.CodeNoLeader), refuses(wire.CodeNoLeader), refuses(wire.CodeNoLeader)}, time.Second},
		{1, []reply{refuses(wire.CodeNoLeader)}, time.Second},
		{3, []reply{refuses(wire.CodeOverloaded)}, time.Second}, // they forward to the same leader
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{replies: []reply{}}
			for _, r := range test.refusals {
				s.replies = append(s.replies, withRetryAfter("1", r))
			}
			s.replies = append(s.replies, says(201, pendingTask))
			c, err := newClient(Config{Endpoints: []string{"http://a", "http://b", "http://c"}[:test.endpoints]}, memoryTransport{s}, memoryTransport{s})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			start := time.Now()
			submit(t, c)
			if took := time.Since(start); took < test.least || took >= test.least+time.Second {
				t.Errorf("of %d nodes that refuse %d times: it took %v, want %v", test.endpoints, len(test.refusals), took, test.least)
			}
		})
	}
}

func submit(t *testing.T, c *Client) {
	t.Helper()
	if _, err := c.Submit(t.Context(), Task{Payload: []byte("1")}); err != nil {
		t.Fatal(err)
	}
}

func TestClient_doesNotChaseRedirectsForEver(t *testing.T) {
	t.Parallel()
	// Two nodes name each other as the leader, until they are asked to forward.
	var urls [2]string
	reply := func(other int) reply {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Claimq-Redirect") == "1" {
				redirects(urls[other])(w, r)
				return
			}
			says(200, pendingTask)(w, r)
		}
	}
	a, serverA := node(t, reply(1))
	b, serverB := node(t, reply(0))
	urls = [2]string{serverA.URL, serverB.URL}
	c := clientOf(t, serverA.URL)
	if _, err := c.Get(t.Context(), "17"); err != nil {
		t.Fatal(err)
	}
	if n := len(a.requests()) + len(b.requests()); n != repeat.RedirectsMax+2 {
		t.Errorf("got %d requests, want %d", n, repeat.RedirectsMax+2)
	}
}

// The error of a call that was given up tells what a node said, rather than that the last one was down.
func TestClient_tellsWhatANodeSaid(t *testing.T) {
	t.Parallel()
	for _, endpoints := range [][]string{
		{"http://up", "http://down1", "http://down2"},
		{"http://down1", "http://up", "http://down2"},
		{"http://down1", "http://down2", "http://up"},
	} {
		for _, timeout := range []time.Duration{1500 * time.Millisecond, 2 * time.Second, 5 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				transport := oneIsUp{memoryTransport{&script{replies: []reply{refuses(wire.CodeNoLeader)}}}}
				c, err := newClient(Config{Endpoints: endpoints, Timeout: timeout}, transport, transport)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if _, err = c.Get(t.Context(), "17"); !errors.Is(err, ErrNoLeader) {
					t.Errorf("%v in %v: %v", endpoints, timeout, err)
				}
			})
		}
	}
}

// oneIsUp reaches only one of several nodes.
type oneIsUp struct{ up http.RoundTripper }

func (o oneIsUp) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != "up" {
		return nil, syscall.ECONNREFUSED
	}
	return o.up.RoundTrip(r)
}
