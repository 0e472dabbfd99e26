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
		if got := n.Follow(test.from, test.location); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestNodes_shunsALeaderForAWhile(t *testing.T) {
	t.Parallel()
	now := time.Now()
	n := New([]string{"http://a:1", "http://b:1"})
	n.Follow("http://a:1", "http://b:1/")
	n.Failed("http://b:1", now)
	if base, redirect := n.Pick(now.Add(leaderShunned - 1)); base != "http://a:1" || redirect {
		t.Errorf("got %s, %v: want the endpoint, passing on", base, redirect)
	}
	if _, redirect := n.Pick(now.Add(leaderShunned)); !redirect {
		t.Error("redirects are not asked for again")
	}
}

func TestNodes_moveOnByOneWhenManyCallsFail(t *testing.T) {
	t.Parallel()
	n := New([]string{"http://a:1", "http://b:1", "http://c:1"})
	for range 5 {
		n.Failed("http://a:1", time.Now())
	}
	if base, _ := n.Pick(time.Now()); base != "http://b:1" {
		t.Errorf("got %s", base)
	}
}
