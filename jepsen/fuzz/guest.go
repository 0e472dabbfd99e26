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
	// guestPatience is how long a call of the guest may take, with what it
	// repeats: while the nodes have no leader, and when its connection was cut off,
	// as those are that wait longest and have not shown their key yet.
	guestPatience = 10 * time.Second
	// guestBody is large enough to be counted among the bodies of a node.
	guestBody = 40_000
	listType  = "siege-list"
	guestType = "siege-guest"
	guestRest = 10 * time.Millisecond
)

// guest is who asks the nodes while they are under siege: with a valid key, each
// call over a connection of its own. It is for one goroutine.
type guest struct {
	r      *run
	member *foe  // a member, who shakes hands
	turn   int   // of the nodes
	seen   Siege // what it has seen in this siege
}

func newGuest(r *run) *guest { return &guest{r: r, member: r.foeOf(0)} }

// begin begins a siege of that name.
func (g *guest) begin(name string) { g.seen = Siege{Name: name} }

// fill makes the tasks that readers ask for.
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

// ask makes one round at the next node: it asks for figures, submits a task, claims
// one and completes it, shakes hands as a member, and looks at the node's memory.
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
			return // what follows may need it
		}
		g.seen.Calls++
		g.seen.Slowest = max(g.seen.Slowest, time.Since(began))
	}
	pause.For(ctx, guestRest) // the foes are to come, too
}

// errNoLeader is returned for an answer that is to be asked for again.
var errNoLeader = errors.New("no leader")

// patiently asks until there is an answer that a client would not ask for again.
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

// call sends a request, GET without a body, and reads a success into to.
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

// shake shakes hands as a member with the node, if it has the key of another one.
func (g *guest) shake(ctx context.Context, node Node) error {
	g.member.addr = node.PeerAddr
	as, ok := g.member.member()
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, guestPatience)
	defer cancel()
	return pause.Until(ctx, trickle, func() error { // the foes may have cut off who was slow
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
	// memoryPatience is for how long a node's memory may be too much: without a processor
	// to collect with, Go goes above its limit for a moment. What foes hold stays.
	memoryPatience = 2 * time.Second
	memoryLook     = 100 * time.Millisecond
)

// look notes the node's memory, and says if it is and stays too much.
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
