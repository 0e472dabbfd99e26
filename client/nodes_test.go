package client

import (
	"net/http"
	"testing"
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

func submit(t *testing.T, c *Client) {
	t.Helper()
	if _, err := c.Submit(t.Context(), Task{Payload: []byte("1")}); err != nil {
		t.Fatal(err)
	}
}

func TestClient_doesNotChaseRedirectsForEver(t *testing.T) {
	t.Parallel()
	// Two nodes take each other for the leader, until asked to pass it on.
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

func TestNodes_follow(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		from, location string
		want           bool
	}{
		"another node":            {"http://a:1", "http://b:1/api/tasks/17", true},
		"itself":                  {"http://a:1", "http://a:1/api/tasks/17", false},
		"a path":                  {"http://a:1", "/login", false},
		"nothing":                 {"http://a:1", "", false},
		"another scheme":          {"http://a:1", "ftp://b:1/", false},
		"from the clear to TLS":   {"http://a:1", "https://b:1/", true},
		"from TLS into the clear": {"https://a:1", "http://b:1/", false},
	}
	for name, test := range tests {
		n := nodes{endpoints: []string{test.from}}
		if got := n.follow(test.from, test.location); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestNodes_shunsALeaderForAWhile(t *testing.T) {
	t.Parallel()
	now := time.Now()
	n := nodes{endpoints: []string{"http://a:1", "http://b:1"}}
	n.follow("http://a:1", "http://b:1/")
	n.failed("http://b:1", now)
	if base, redirect := n.pick(now.Add(leaderShunned - 1)); base != "http://a:1" || redirect {
		t.Errorf("got %s, %v: want the endpoint, passing on", base, redirect)
	}
	if _, redirect := n.pick(now.Add(leaderShunned)); !redirect {
		t.Error("redirects are not asked for again")
	}
}

func TestNodes_moveOnByOneWhenManyCallsFail(t *testing.T) {
	t.Parallel()
	n := nodes{endpoints: []string{"http://a:1", "http://b:1", "http://c:1"}}
	for range 5 {
		n.failed("http://a:1", time.Now())
	}
	if base, _ := n.pick(time.Now()); base != "http://b:1" {
		t.Errorf("got %s", base)
	}
}
