package nodes

import (
	"testing"
	"time"
)

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
		n := New([]string{test.from})
		if _, got := n.Follow(test.from, test.location, time.Now()); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// followed returns Nodes of one endpoint whose leader has answered.
func followed(now time.Time) *Nodes {
	n := New([]string{"http://a:1"})
	n.Follow("http://a:1", "http://b:1/", now)
	n.Answered("http://b:1", true)
	return n
}

func TestNodes_shunsALeaderForAWhile(t *testing.T) {
	t.Parallel()
	now := time.Now()
	n := followed(now)
	if base, _ := n.Pick(now); base != "http://b:1" {
		t.Fatalf("a leader that has answered is not asked, but %s", base)
	}
	n.Silent("http://b:1", now)
	if base, redirect := n.Pick(now.Add(shunMin - 1)); base != "http://a:1" || redirect {
		t.Errorf("got %s, %v: want the endpoint, passing on", base, redirect)
	}
	if _, redirect := n.Pick(now.Add(shunMin)); !redirect {
		t.Error("redirects are not asked for again")
	}
}

// An address that was never reached is tried by one call at a time, and avoided longer after each failure; once it
// has answered it is like any other.
func TestNodes_probesByOneCall(t *testing.T) {
	t.Parallel()
	now := time.Now()
	n := New([]string{"http://a:1"})
	follow := func(want string) {
		t.Helper()
		if to, ok := n.Follow("http://a:1", "http://b:1/", now); !ok || to != want {
			t.Errorf("follow %q, %v, want %q", to, ok, want)
		}
	}
	for _, shunned := range []time.Duration{3, 6, 12, 24, 48, 96, 120, 120} {
		if _, redirect := n.Pick(now); !redirect {
			t.Fatalf("before a shun of %d s: no redirect is asked for", shunned)
		}
		follow("http://b:1")
		follow("") // the first one tries it
		n.Silent("http://b:1", now)
		n.Silent("http://b:1", now) // a concurrent call
		follow("")
		now = now.Add(shunned*time.Second - 1)
		if base, redirect := n.Pick(now); base != "http://a:1" || redirect {
			t.Errorf("within a shun of %d s: %s, %v", shunned, base, redirect)
		}
		now = now.Add(1)
	}
	follow("http://b:1")
	n.Answered("http://b:1", true)
	if base, _ := n.Pick(now); base != "http://b:1" {
		t.Errorf("got %s", base)
	}
	n.Silent("http://b:1", now)
	if _, redirect := n.Pick(now.Add(shunMin)); !redirect {
		t.Error("after an answer it is shunned for longer than at first")
	}
}

// If a call that tries an address never reports its outcome, the others avoid the address only for a while.
func TestNodes_probeThatIsNotHeardOf(t *testing.T) {
	t.Parallel()
	now := time.Now()
	n := New([]string{"http://a:1"})
	n.Follow("http://a:1", "http://b:1/", now)
	if to, _ := n.Follow("http://a:1", "http://b:1/", now.Add(probeMax)); to != "http://b:1" {
		t.Errorf("follow %q", to)
	}
}

// A wait that a node asks for affects only that node, and a call only when all nodes have asked.
func TestNodes_hold(t *testing.T) {
	t.Parallel()
	now := time.Now()
	n := New([]string{"http://a:1", "http://b:1"})
	n.Hold("http://a:1", time.Minute, now)
	if base, _ := n.Pick(now); base != "http://b:1" || n.Wait(now) != 0 {
		t.Errorf("got %s, wait %v", base, n.Wait(now))
	}
	n.Hold("http://b:1", time.Hour, now)
	if base, _ := n.Pick(now); base != "http://a:1" || n.Wait(now) != time.Minute {
		t.Errorf("got %s, wait %v: want the one that is free first", base, n.Wait(now))
	}
	n = followed(now)
	n.Hold("http://b:1", time.Minute, now)
	if base, redirect := n.Pick(now); base != "http://a:1" || redirect {
		t.Errorf("a leader that asked to be left alone: %s, %v", base, redirect)
	}
	if base, _ := n.Pick(now.Add(time.Minute)); base != "http://b:1" {
		t.Errorf("and a minute later: %s", base)
	}
}

func TestNodes_moveOnByOneWhenManyCallsFail(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, fail := range []func(n *Nodes){func(n *Nodes) { n.Failed("http://a:1", now) }, func(n *Nodes) { n.Silent("http://a:1", now) }} {
		n := New([]string{"http://a:1", "http://b:1", "http://c:1"})
		for range 5 {
			fail(n)
		}
		if base, _ := n.Pick(now); base != "http://b:1" {
			t.Errorf("got %s", base)
		}
	}
}

// An endpoint that gave no answer is skipped while there is another.
func TestNodes_passesOverWhatIsSilent(t *testing.T) {
	t.Parallel()
	now := time.Now()
	n := New([]string{"http://a:1", "http://b:1"})
	n.Silent("http://a:1", now)
	n.Failed("http://b:1", now)
	if base, _ := n.Pick(now); base != "http://b:1" {
		t.Errorf("got %s", base)
	}
	n.Silent("http://b:1", now.Add(1))
	if base, _ := n.Pick(now.Add(1)); base != "http://a:1" {
		t.Errorf("of two that are silent: %s", base)
	}
}

// The number of known addresses is bounded.
func TestNodes_addressesMax(t *testing.T) {
	t.Parallel()
	n := New([]string{"http://a:1"})
	for i := range 3 * addressesMax {
		n.Silent("http://b:"+string(rune('a'+i)), time.Now())
	}
	if len(n.known) > addressesMax {
		t.Errorf("%d addresses are known", len(n.known))
	}
}
