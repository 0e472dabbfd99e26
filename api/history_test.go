package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/latency"
	"github.com/claimq/claimq/nodes"
)

func TestServer_History(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	columns := `"submitted":[],"completed":[],"failed":[],"pending":[],"claimed":[],"oldest_pending_age_ms":[],"waited_p50_ms":[],"waited_p99_ms":[],"ran_p50_ms":[],"ran_p99_ms":[]}`
	got := s.call(t, "GET /api/history", "").body
	if !strings.Contains(got, `"task_type":null,"interval_ms":10000,"since":null,"from":null,"kept":true,`+columns) {
		t.Errorf("not begun: %s", got)
	}
	synctest.Test(t, func(t *testing.T) {
		node := nodetest.New()
		h := newHistory(node, 1<<20)
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(done)
			h.Run(ctx)
		}()
		synctest.Wait()
		for _, cmd := range []command.Command{
			command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte("1")}}},
			command.ClaimNext{WorkerID: "w", Limit: 1, LeaseMS: 60_000},
		} {
			if _, err := node.Apply(cmd); err != nil {
				t.Error(err)
			}
			node.Advance(1500)
		}
		<-time.After(historyInterval)
		synctest.Wait()
		cancel()
		<-done
		s.history = h
	})
	got = s.call(t, "GET /api/history?minutes=1", "").body
	want := `"since":"2000-01-01T00:00:00.000Z","from":"2000-01-01T00:00:00.000Z","kept":true,"submitted":[1],"completed":[0],"failed":[0],"pending":[0],"claimed":[1],"oldest_pending_age_ms":[0],` +
		`"waited_p50_ms":[1407],"waited_p99_ms":[1407],"ran_p50_ms":[null],"ran_p99_ms":[null]}`
	if !strings.Contains(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// run records the history of a new node while test runs, with a virtual clock.
func run(t *testing.T, bytes int64, test func(t *testing.T, h *history, node *nodetest.Node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		node := nodetest.New()
		h := newHistory(node, bytes)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.Run(ctx)
		}()
		synctest.Wait()
		test(t, h, node)
		cancel()
		<-done
	})
}

// pass lets this number of intervals pass.
func pass(intervals int) {
	<-time.After(time.Duration(intervals) * historyInterval)
	synctest.Wait()
}

func submit(t *testing.T, node *nodetest.Node, taskTypes ...string) {
	t.Helper()
	var cmd command.Submit
	for _, name := range taskTypes {
		cmd.Tasks = append(cmd.Tasks, fsm.NewTask{Type: name, Params: []byte("1")})
	}
	propose(t, node, cmd)
}

func propose(t *testing.T, node *nodetest.Node, commands ...command.Command) {
	t.Helper()
	for _, cmd := range commands {
		if p, err := node.Apply(cmd); err != nil || p.Result.Code != "" {
			t.Fatalf("%+v: %+v, %v", cmd, p.Result, err)
		}
	}
}

func (h *history) want(t *testing.T, taskType string, last int, want ...historyPoint) {
	t.Helper()
	if v := h.View(taskType, last); !slices.Equal(v.Points, want) {
		t.Errorf("%q:\n got %+v\nwant %+v", taskType, v.Points, want)
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	run(t, 8<<20, func(t *testing.T, h *history, node *nodetest.Node) {
		begun := time.Now()
		if v := h.View("", 6); len(v.Points) != 0 || !v.Since.Equal(begun) || !v.From.IsZero() || !v.Kept {
			t.Errorf("at the beginning: %+v", v)
		}
		submit(t, node, "a", "a", "b")
		pass(1)
		h.want(t, "", 6, historyPoint{Submitted: 3, Pending: 3, Known: true})
		h.want(t, "a", 6, historyPoint{Submitted: 2, Pending: 2, Known: true})
		if h.View("c", 6).Kept {
			t.Error("a type that never was is kept")
		}
		node.Advance(1500)
		submit(t, node, "c")
		propose(t, node, command.ClaimNext{Types: []string{"a"}, WorkerID: "w", Limit: 1, LeaseMS: 60_000})
		node.Advance(500)
		propose(t, node, command.ClaimNext{Types: []string{"a"}, WorkerID: "w", Limit: 1, LeaseMS: 60_000})
		pass(1)
		waited := percentiles{P50: latency.Of(1500), P99: latency.Of(2000)}
		h.want(t, "", 1, historyPoint{Submitted: 1, Pending: 2, Claimed: 2, OldestPendingAgeMS: 2000, Waited: waited, Known: true})
		h.want(t, "b", 1, historyPoint{Pending: 1, OldestPendingAgeMS: 2000, Known: true})
		h.want(t, "c", 6, historyPoint{}, historyPoint{Submitted: 1, Pending: 1, OldestPendingAgeMS: 500, Known: true})
		if v := h.View("", 1); !v.From.Equal(begun.Add(historyInterval)) {
			t.Errorf("from %s, begun %s", v.From, begun)
		}
		// A deleted type has had nothing since, and a new one starts from 0.
		propose(t, node, command.Cancel{ID: 4}, command.Delete{ID: 4}, command.Complete{Hold: command.Hold{ID: 1, WorkerID: "w"}})
		pass(1)
		h.want(t, "c", 1, historyPoint{Known: true})
		h.want(t, "a", 1, historyPoint{Completed: 1, Claimed: 1, Ran: percentiles{P50: latency.Of(500), P99: latency.Of(500)}, Known: true})
		submit(t, node, "c")
		pass(1)
		h.want(t, "c", 1, historyPoint{Submitted: 1, Pending: 1, Known: true})
		// Even if it was deleted and came again before the node looked.
		submit(t, node, "c")
		pass(1)
		propose(t, node, command.Cancel{ID: 5}, command.Delete{ID: 5}, command.Cancel{ID: 6}, command.Delete{ID: 6})
		submit(t, node, "c")
		pass(1)
		h.want(t, "c", 1, historyPoint{Submitted: 1, Pending: 1, Known: true})
		pass(historyPoints)
		if v := h.View("", historyPoints+1); len(v.Points) != historyPoints || !v.From.Equal(begun.Add(6*historyInterval)) {
			t.Errorf("%d points from %s, begun %s", len(v.Points), v.From, begun)
		}
	})
}

// Entries that a starting node applies are not new, and unreadable ones are a gap.
func TestHistory_Gaps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		node := nodetest.New()
		h := newHistory(node, 8<<20)
		ctx := t.Context()
		node.ReadyErr = errors.New("not yet")
		h.look(ctx)
		submit(t, node, "a", "a")
		if v := h.View("", 6); !v.Since.IsZero() || len(v.Points) != 0 {
			t.Errorf("before it is ready: %+v", v)
		}
		node.ReadyErr = nil
		h.look(ctx)
		node.ReadyErr = errors.New("no leader")
		pass(1)
		h.look(ctx)
		h.want(t, "", 6, historyPoint{Pending: 2, Known: true})
		node.OnRead = func(context.Context, uint64) error { return nodes.ErrShuttingDown }
		pass(1)
		h.look(ctx)
		node.OnRead = nil
		submit(t, node, "a")
		pass(1)
		h.look(ctx)
		pass(1)
		submit(t, node, "a")
		h.look(ctx)
		for _, taskType := range []string{"", "a"} {
			v := h.View(taskType, 3)
			if len(v.Points) != 3 || v.Points[0].Known || v.Points[1].Known || v.Points[2] != (historyPoint{Submitted: 1, Pending: 4, Known: true}) {
				t.Errorf("%q: %+v", taskType, v.Points)
			}
		}
	})
}

// A type whose tasks are not kept has points, too.
func TestHistory_NotKept(t *testing.T) {
	t.Parallel()
	run(t, 8<<20, func(t *testing.T, h *history, node *nodetest.Node) {
		propose(t, node, command.SetDefaults{Set: fsm.TypeRetention, Defaults: fsm.Defaults{RetentionMS: fsm.KeepNone}})
		id := uint64(0)
		through := func() {
			id++
			submit(t, node, "a")
			propose(t, node, command.ClaimNext{WorkerID: "w", Limit: 1, LeaseMS: 60_000})
			node.Advance(500)
			propose(t, node, command.Complete{Hold: command.Hold{ID: id, WorkerID: "w"}})
		}
		ran := percentiles{P50: latency.Of(500), P99: latency.Of(500)}
		waited := percentiles{P50: latency.Of(0), P99: latency.Of(0)}
		through()
		through()
		pass(1)
		h.want(t, "a", 1, historyPoint{Submitted: 2, Completed: 2, Waited: waited, Ran: ran, Known: true})
		pass(1)
		h.want(t, "a", 1, historyPoint{Known: true})
		through()
		pass(1)
		h.want(t, "a", 1, historyPoint{Submitted: 1, Completed: 1, Waited: waited, Ran: ran, Known: true})
		// Once it has no rates it starts from 0.
		node.Advance(65_000)
		pass(1)
		h.want(t, "a", 1, historyPoint{Known: true})
		through()
		through()
		through()
		through()
		pass(1)
		h.want(t, "a", 1, historyPoint{Submitted: 4, Completed: 4, Waited: waited, Ran: ran, Known: true})
	})
}

// As many types as there is room for have points, and all tasks together always do.
func TestHistory_Room(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bytes int64
		types int
	}{{0, 0}, {3 * int64(seriesBytes), 2}, {1 << 40, historyTypesMax}} {
		run(t, c.bytes, func(t *testing.T, h *history, node *nodetest.Node) {
			var names []string
			for i := range historyTypesMax + 1 {
				names = append(names, fmt.Sprintf("t%03d", i))
			}
			submit(t, node, names...)
			pass(1)
			h.want(t, "", 1, historyPoint{Submitted: uint32(len(names)), Pending: uint32(len(names)), Known: true})
			kept := 0
			for _, name := range names {
				if h.View(name, 1).Kept {
					kept++
				}
			}
			if kept != c.types {
				t.Errorf("with %d bytes %d types are kept, want %d", c.bytes, kept, c.types)
			}
		})
	}
}

// A type that waited for room existed before, so its first values are not those of one interval.
func TestHistory_Full(t *testing.T) {
	t.Parallel()
	run(t, 2*int64(seriesBytes), func(t *testing.T, h *history, node *nodetest.Node) {
		submit(t, node, "a")
		pass(1)
		submit(t, node, "b", "b")
		pass(1)
		propose(t, node, command.Cancel{ID: 1}, command.Delete{ID: 1})
		node.Advance(65_000) // and it has no rates
		pass(historyPoints - 1)
		if !h.View("a", 1).Kept || h.View("b", 1).Kept {
			t.Errorf("within 6 h after the one went: %+v, %+v", h.View("a", 1), h.View("b", 1))
		}
		pass(2)
		if h.View("a", 1).Kept {
			t.Error("a type that went is kept after 6 h")
		}
		submit(t, node, "b")
		pass(1)
		const age = 65_000
		h.want(t, "b", 3, historyPoint{}, historyPoint{Submitted: 2, Pending: 2, OldestPendingAgeMS: age}, historyPoint{Submitted: 1, Pending: 3, OldestPendingAgeMS: age, Known: true})
	})
}
