package fuzz

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/claimq/claimq/internal/pause"
)

const (
	// guestPatience bounds a call of the guest with its repeats: while the nodes have no
	// leader, and when its connection was cut off, as happens to the connections that wait
	// longest without having shown a key.
	guestPatience = 10 * time.Second
	// guestBody is large enough to count among the bodies of a node.
	guestBody = 40_000
	listType  = "siege-list"
	guestType = "siege-guest"
	guestRest = 10 * time.Millisecond
)

// guest makes calls to the nodes while they are under siege: with a valid key, each call
// over a new connection. It is for one goroutine.
type guest struct {
	r      *run
	member *foe  // a member that shakes hands
	turn   int   // next node
	seen   Siege // results of this siege
}

func newGuest(r *run) *guest { return &guest{r: r, member: r.foeOf(0)} }

// begin begins a siege of that name.
func (g *guest) begin(name string) { g.seen = Siege{Name: name} }

// fill creates the tasks that readers list.
func (g *guest) fill(ctx context.Context) error {
	for range listTasks {
		if err := g.call(ctx, g.r.cfg.Nodes[0], "/api/tasks", submission(listType, listParams), nil); err != nil {
			return err
		}
	}
	return nil
}

func submission(taskType string, params int) []byte {
	return fmt.Appendf(nil, `{"task_type":%q,"params":%q}`, taskType, strings.Repeat("x", params))
}

// ask makes one round at the next node: it reads figures, submits a task, claims and
// completes one, shakes hands as a member, and checks the node's memory.
func (g *guest) ask(ctx context.Context) {
	g.turn = (g.turn + 1) % len(g.r.cfg.Nodes)
	node := g.r.cfg.Nodes[g.turn]
	var claimed struct {
		Task struct {
			ID         uint64 `json:"id"`
			ClaimToken uint64 `json:"claim_token"`
		} `json:"task"`
	}
	for _, call := range []struct {
		name string
		do   func() error
	}{
		{"asks for figures", func() error { return g.call(ctx, node, "/api/stats", nil, nil) }},
		{"submits", func() error { return g.call(ctx, node, "/api/tasks", submission(guestType, guestBody), nil) }},
		{"claims", func() error {
			body := fmt.Appendf(nil, `{"worker_id":"guest","task_types":[%q]}`, guestType)
			return g.call(ctx, node, "/api/tasks/claim", body, &claimed)
		}},
		{"completes", func() error {
			body := fmt.Appendf(nil, `{"worker_id":"guest","claim_token":%d}`, claimed.Task.ClaimToken)
			return g.call(ctx, node, fmt.Sprintf("/api/tasks/%d/complete", claimed.Task.ID), body, nil)
		}},
		{"shakes hands as a member", func() error { return g.shake(ctx, node) }},
		{"looks at the memory", func() error { return g.patiently(ctx, func(ctx context.Context) error { return g.look(ctx, node) }) }},
	} {
		began := time.Now()
		err := call.do()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			g.r.violate(ruleGuest, "beside %s the guest %s at node %d: %v", g.seen.Name, call.name, g.turn+1, err)
			return // the next calls may need it
		}
		g.seen.Calls++
		g.seen.Slowest = max(g.seen.Slowest, time.Since(began))
	}
	pause.For(ctx, guestRest) // gives the foes a turn
}

// errNoLeader is returned for an answer after which the call should be repeated.
var errNoLeader = errors.New("no leader")

// patiently repeats ask until the answer is one that a client would accept.
func (g *guest) patiently(ctx context.Context, ask func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, guestPatience)
	defer cancel()
	last := pause.Until(ctx, trickle, func() error {
		var cut *url.Error
		switch err = ask(ctx); {
		case errors.As(err, &cut):
			g.seen.Cut++
			return err
		case errors.Is(err, errNoLeader):
			return err
		}
		return nil
	})
	return cmp.Or(err, last)
}

// call sends a request (GET without a body) and decodes a success into to.
func (g *guest) call(ctx context.Context, node Node, path string, body []byte, to any) error {
	method, sent := http.MethodGet, any(nil)
	if body != nil {
		method, sent = http.MethodPost, json.RawMessage(body)
	}
	return g.patiently(ctx, func(ctx context.Context) error {
		err := node.Ask(ctx, method, path, sent, to)
		if err != nil && (strings.Contains(err.Error(), `"code":"no_leader"`) || strings.Contains(err.Error(), `"code":"outcome_unknown"`)) {
			return fmt.Errorf("%w: %w", errNoLeader, err)
		}
		return err
	})
}

// shake shakes hands with the node as another member whose key it has, if any.
func (g *guest) shake(ctx context.Context, node Node) error {
	g.member.addr = node.PeerAddr
	as, ok := g.member.member()
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, guestPatience)
	defer cancel()
	return pause.Until(ctx, trickle, func() error { // the foes may have cut off a slow one
		c, err := dialTCP(ctx, node.PeerAddr)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		until, _ := ctx.Deadline()
		_ = c.SetDeadline(until)
		if err = g.member.shake(c, 'h', as, io.Discard); err != nil {
			g.seen.Cut++
		}
		return err
	})
}

const (
	// memoryPatience bounds the time for which a node's memory may be too much: without a
	// processor for collecting, Go exceeds its limit for a moment. Memory that foes hold
	// stays.
	memoryPatience = 2 * time.Second
	memoryLook     = 100 * time.Millisecond
)

// look records the node's memory, and fails if it is and stays too much.
func (g *guest) look(ctx context.Context, node Node) (err error) {
	ctx, cancel := context.WithTimeout(ctx, memoryPatience)
	defer cancel()
	tooMuch := pause.Until(ctx, memoryLook, func() error {
		var u Usage
		if u, err = node.Metrics(ctx); err != nil {
			return nil
		}
		g.seen.ResidentMB = max(g.seen.ResidentMB, u.residentMB())
		if most := g.r.cfg.ResidentMaxMB; most > 0 && u.residentMB() > most {
			return fmt.Errorf("the node's memory is %.0f MB, it may be %.0f", u.residentMB(), most)
		}
		return nil
	})
	return cmp.Or(err, tooMuch)
}
