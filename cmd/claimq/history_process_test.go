package main

import (
	"fmt"
	"testing"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/procs"
)

// sums are the totals of a history, and the tasks that are pending now.
type sums struct{ submitted, completed, failed, pending int64 }

// sumsAt returns those that the node has itself, in a state as new as index.
func (c *processCluster) sumsAt(n *procs.Node, taskType string) (s sums, err error) {
	var h wire.History
	if err := n.Ask(c.t.Context(), "GET", "/api/history?consistency=stale&task_type="+taskType, nil, &h); err != nil {
		return s, err
	}
	if !h.Even() {
		return s, fmt.Errorf("the arrays of %+v are not equally long", h)
	}
	for i := range h.Submitted {
		s = sums{s.submitted + *h.Submitted[i], s.completed + *h.Completed[i], s.failed + *h.Failed[i], *h.Pending[i]}
	}
	return s, nil
}

// Every node has the same history, also after the leader was killed, the next one too, and nodes started from a snapshot.
func TestCluster_history(t *testing.T) {
	t.Parallel()
	c := newProcesses(t, 3, 0)
	c.start(c.Nodes...)
	have := func(when string, want sums, nodes ...*procs.Node) {
		t.Helper()
		for _, n := range nodes {
			var got sums
			var err error
			last := ""
			c.await(fmt.Sprintf("%s: the history of %s", when, n.ID), func() bool {
				got, err = c.sumsAt(n, "mail")
				last = fmt.Sprintf("%+v, %v; want %+v", got, err, want)
				return got == want
			}, &last)
		}
	}
	c.submit(5)
	for i, end := range []string{"complete", "fail"} {
		var claim struct{ Task wire.Task }
		leader := c.leader()
		if err := leader.Ask(t.Context(), "POST", "/api/tasks/claim", map[string]any{"worker_id": "w"}, &claim); err != nil {
			t.Fatal(err)
		}
		body := map[string]any{"worker_id": "w", "claim_token": claim.Task.ClaimToken}
		if end == "fail" {
			body["error"], body["permanent"] = "mailbox full", true
		}
		if err := leader.Ask(t.Context(), "POST", fmt.Sprintf("/api/tasks/%d/%s", i+1, end), body, nil); err != nil {
			t.Fatal(err)
		}
	}
	want := sums{submitted: 5, completed: 1, failed: 1, pending: 3}
	have("at first", want, c.Nodes...)
	for range 2 {
		dead := c.leader()
		if err := dead.Kill(); err != nil {
			t.Fatal(err)
		}
		var alive []*procs.Node
		for _, n := range c.Nodes {
			if n != dead {
				alive = append(alive, n)
			}
		}
		have("the leader was killed", want, alive...)
		c.submit(1)
		want.submitted, want.pending = want.submitted+1, want.pending+1
		have("another one leads", want, alive...)
		c.do("snapshot", "take")
		c.start(dead)
		have("it has come back", want, c.Nodes...)
	}
}
