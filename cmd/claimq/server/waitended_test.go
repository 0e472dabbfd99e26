package server

import (
	"fmt"
	"strings"
	"testing"
)

// sendGet sends a GET and reads no answer.
func (c *apiConn) sendGet(t *testing.T, target string) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", target); err != nil {
		t.Fatal(err)
	}
}

// waitingEnds waits until that many requests to the nodes wait for the end of a task.
func waitingEnds(t *testing.T, want int, nodes ...*servedNode) {
	t.Helper()
	within(t, fmt.Sprintf("%d requests to wait", want), func() bool {
		sum := 0
		for _, n := range nodes {
			sum += n.metric(t, "claimq_waiting_ends")
		}
		return sum == want
	})
}

// ended receives the answer to a GET. It sends the GET again if the leader is gone.
func (c *apiConn) ended(t *testing.T, target string) (a apiAnswer) {
	t.Helper()
	within(t, "an answer of a leader", func() bool {
		var err error
		if a, err = c.receive(); err != nil {
			t.Fatal(err)
		}
		if a.Code == "no_leader" {
			c.sendGet(t, target)
			return false
		}
		return true
	})
	return a
}

// A GET with wait_ms is answered when the task ends: at the leader, through a follower, and from a follower's own
// state.
func TestWaitEnded_nodes(t *testing.T) {
	t.Parallel()
	leader, follower, other := serveThree(t)
	for _, c := range []struct {
		at    *servedNode
		stale bool
	}{{leader, false}, {follower, false}, {follower, true}} {
		id := leader.post(t, "/api/tasks", `{"params":1}`).Task.ID
		target := fmt.Sprintf("/api/tasks/%d?wait_ms=60000", id)
		if c.stale {
			within(t, "the task at the follower", func() bool {
				return strings.Contains(follower.get(t, target[:strings.IndexByte(target, '?')]+"?consistency=stale"), `"pending"`)
			})
			target += "&consistency=stale"
		}
		conn := c.at.dial(t)
		conn.sendGet(t, target)
		waitingEnds(t, 1, leader, follower, other)
		leader.post(t, fmt.Sprintf("/api/tasks/%d/cancel", id), "")
		if got := conn.ended(t, target); got.status != 200 || got.Task.ID != id || got.Task.Status != "cancelled" {
			t.Errorf("stale %v: %+v", c.stale, got)
		}
		waitingEnds(t, 0, leader, follower, other)
	}
}

// The wait ends when its client disconnects, and when the leader is lost.
func TestWaitEnded_over(t *testing.T) {
	t.Parallel()
	leader, follower, other := serveThree(t)
	id := leader.post(t, "/api/tasks", `{"params":1}`).Task.ID
	target := fmt.Sprintf("/api/tasks/%d?wait_ms=60000", id)
	for _, n := range []*servedNode{leader, follower} {
		conn := n.dial(t)
		conn.sendGet(t, target)
		waitingEnds(t, 1, leader, follower, other)
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		waitingEnds(t, 0, leader, follower, other)
	}
	var conn *apiConn
	for conn == nil {
		c := follower.dial(t)
		c.sendGet(t, target)
		waitingEnds(t, 1, leader, follower, other)
		if leader.metric(t, "claimq_waiting_ends") == 1 {
			conn = c
			continue
		}
		// On a busy machine another node may lead by now.
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		waitingEnds(t, 0, leader, follower, other)
		leader, follower, other = follower, other, leader
	}
	leader.stop()
	if got, err := conn.receive(); err != nil || got.status != 503 {
		t.Errorf("the leader stops: %+v, %v", got, err)
	}
	if got := other.post(t, fmt.Sprintf("/api/tasks/%d/cancel", id), ""); got.Task.Status != "cancelled" {
		t.Errorf("the next leader: %+v", got)
	}
	conn.sendGet(t, target)
	if got := conn.ended(t, target); got.Task.Status != "cancelled" {
		t.Errorf("the wait at the next leader: %+v", got)
	}
}
