package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/procs"
)

const (
	// operatorTimeout bounds one call of an operator; operatorPause is between two tries.
	operatorTimeout = 15 * time.Second
	operatorPause   = 200 * time.Millisecond
)

// operate makes an operator's call at whichever node answers, again until it
// succeeds or ctx ends: beside other faults there may be no leader.
func (c *Cluster) operate(ctx context.Context, path, body string) error {
	var last error
	for {
		for _, n := range c.Nodes() {
			if !n.Running() {
				continue
			}
			if last = operateAt(ctx, n, path, body); last == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("POST %s %s: %w: %w", path, body, context.Cause(ctx), last)
		case <-time.After(operatorPause):
		}
	}
}

// operateAt makes the call at one node.
func operateAt(ctx context.Context, n *procs.Node, path, body string) error {
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
	defer cancel()
	var raw any
	if body != "" {
		raw = json.RawMessage(body)
	}
	err := n.Ask(ctx, http.MethodPost, path, raw, nil)
	if errors.Is(err, procs.ErrRefused) && strings.Contains(err.Error(), "No member is named") {
		return nil // it was done, and the answer lost
	}
	return err
}

// nodeBody is the body of a call about the node.
func nodeBody(n *procs.Node) string { return fmt.Sprintf(`{"node_id": %q}`, n.ID) }

// replace has the node, whose folder is not to be used again, removed, and joins it
// as a new member with an empty folder: what operators do.
func (c *Cluster) replace(ctx context.Context, n *procs.Node) error {
	if err := killAll([]*procs.Node{n}); err != nil {
		return err
	}
	if err := c.operate(ctx, "/api/cluster/remove", nodeBody(n)); err != nil {
		return err
	}
	if err := wipe(n); err != nil {
		return err
	}
	var others []string
	for _, other := range without(c, n) {
		others = append(others, other.PeerAddr)
	}
	n.JoinBy(others)
	token, body := procs.NewJoinToken()
	if err := c.operate(ctx, "/api/cluster/tokens", body); err != nil {
		return err
	}
	if err := n.SetJoinToken(token); err != nil {
		return err
	}
	c.notef("%s is removed, and joins with an empty folder", n.ID)
	if err := c.startNodes([]*procs.Node{n}); err != nil {
		return err
	}
	return c.awaitVote(ctx, n)
}

// awaitVote waits until another node says that n votes: before that the loss of one more
// is that of a majority.
func (c *Cluster) awaitVote(ctx context.Context, n *procs.Node) error {
	for {
		for _, other := range without(c, n) {
			if !other.Running() {
				continue
			}
			view, err := procs.View(ctx, other)
			if err == nil && slices.ContainsFunc(view.Nodes, func(v wire.Node) bool { return v.NodeID == n.ID && v.Suffrage == "voter" }) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s votes: %w", n.ID, context.Cause(ctx))
		case <-time.After(operatorPause):
		}
	}
}

func wipe(n *procs.Node) error {
	entries, err := os.ReadDir(n.DataDir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(n.DataDir, e.Name())))
	}
	return errors.Join(errs...)
}

// member is a change of who is a member.
type member struct {
	name string
	pick picker
	// act begins it; recover ends it. The node runs, or ctx has ended.
	act func(ctx context.Context, c *Cluster, n *procs.Node) (recover func(context.Context) error, err error)
}

func (m member) Name() string { return m.name }

// Needs asks for hosts: a node that joins is asked for by the address that others
// reach it at, which is a proxy's without.
func (m member) Needs() (root bool, tools []string) { return true, []string{"ip", "nft"} }

func (m member) Inject(ctx context.Context, c *Cluster, rng *rand.Rand) (func(context.Context) error, error) {
	if c.Net == nil {
		return nil, fmt.Errorf("%s: %w: the nodes have no hosts of their own", m.name, ErrNeeds)
	}
	n := m.pick(ctx, c, rng)[0]
	recover, err := m.act(ctx, c, n)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	return recover, nil
}

// removed removes a member that is well; it joins again as a new one.
func removed(ctx context.Context, c *Cluster, n *procs.Node) (func(context.Context) error, error) {
	c.notef("%s is removed from the cluster", n.ID)
	tried := attempt(ctx, func(ctx context.Context) error { return c.operate(ctx, "/api/cluster/remove", nodeBody(n)) })
	if !tried {
		c.notef("%s: nobody answers; it is tried again at the end", n.ID)
	}
	return func(ctx context.Context) error { return c.replace(ctx, n) }, nil
}

// wiped has a node lose its folder.
func wiped(_ context.Context, c *Cluster, n *procs.Node) (func(context.Context) error, error) {
	c.notef("%s loses its folder", n.ID)
	if err := killAll([]*procs.Node{n}); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return c.replace(ctx, n) }, wipe(n)
}

// demoted takes a member's vote away for a while.
func demoted(ctx context.Context, c *Cluster, n *procs.Node) (func(context.Context) error, error) {
	c.notef("%s loses its vote", n.ID)
	attempt(ctx, func(ctx context.Context) error { return c.operate(ctx, "/api/cluster/demote", nodeBody(n)) })
	return func(ctx context.Context) error {
		c.notef("%s gets its vote back", n.ID)
		return c.operate(ctx, "/api/cluster/promote", nodeBody(n))
	}, nil
}

// transferred hands the leadership over.
func transferred(ctx context.Context, c *Cluster, n *procs.Node) (func(context.Context) error, error) {
	c.notef("the leadership is handed over")
	attempt(ctx, func(ctx context.Context) error { return c.operate(ctx, "/api/cluster/transfer", "") })
	return func(context.Context) error { return nil }, nil
}

// moved lets a node come back at another peer port.
func moved(ctx context.Context, c *Cluster, n *procs.Node) (func(context.Context) error, error) {
	stopping, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := n.Stop(stopping); ifRunning(err) != nil {
		if err := killAll([]*procs.Node{n}); err != nil {
			return nil, err
		}
	}
	n.PeerAddr = otherPort(n.PeerAddr)
	n.SetFlag("--peer-addr", n.PeerAddr)
	c.notef("%s comes back at %s", n.ID, n.PeerAddr)
	return func(context.Context) error { return c.startNodes([]*procs.Node{n}) }, c.startNodes([]*procs.Node{n})
}

// otherPort returns the address with one of two ports, the one that it has not.
func otherPort(addr string) string {
	if base, ok := strings.CutSuffix(addr, "1"); ok {
		return base + "2"
	}
	return addr[:len(addr)-1] + "1"
}

// attemptMax bounds the beginning of a fault that needs a leader.
const attemptMax = 10 * time.Second

// attempt reports whether do succeeded in time.
func attempt(ctx context.Context, do func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(ctx, attemptMax)
	defer cancel()
	return do(ctx) == nil
}
