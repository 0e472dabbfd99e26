package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
)

const (
	// operatorTimeout bounds one call of an operator; operatorPause is the pause between
	// two tries.
	operatorTimeout = 15 * time.Second
	operatorPause   = 200 * time.Millisecond
	// attemptMax bounds the start of a fault that needs a leader.
	attemptMax = 10 * time.Second
	// rotLook is the time that a node with rotten bytes has to become ready.
	rotLook = 10 * time.Second
)

// errNobodyRuns is returned while there is no node to ask.
var errNobodyRuns = errors.New("no node runs")

// operate makes an operator's call at any node that answers, and repeats it until it
// succeeds or ctx ends, because other faults may leave no leader.
func (c *Cluster) operate(ctx context.Context, path, body string) error {
	err := pause.Until(ctx, operatorPause, func() error {
		last := errNobodyRuns
		for _, n := range c.Nodes {
			if n.Running() {
				if last = operateAt(ctx, n, path, body); last == nil {
					break
				}
			}
		}
		return last
	})
	if err != nil {
		return fmt.Errorf("POST %s %s: %w", path, body, err)
	}
	return nil
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
		return nil // it was done, but the answer was lost
	}
	return err
}

// change requests a change of a member, or of the leader, for as long as a fault may take
// to start. It reports whether it was done.
func (c *Cluster) change(ctx context.Context, path, body string) bool {
	ctx, cancel := context.WithTimeout(ctx, attemptMax)
	defer cancel()
	return c.operate(ctx, path, body) == nil
}

// nodeBody returns the body of a call about the node.
func nodeBody(n *procs.Node) string { return fmt.Sprintf(`{"node_id": %q}`, n.ID) }

// replaced returns an undo that does what operators do with a node whose folder must not be
// used again: it removes the node and lets it join as a new member with an empty folder.
func (c *Cluster) replaced(n *procs.Node) undo {
	return func(ctx context.Context) error {
		if err := procs.KillAll(n); err != nil {
			return err
		}
		if err := c.operate(ctx, "/api/cluster/remove", nodeBody(n)); err != nil {
			return err
		}
		var others []string
		for _, other := range without(c, n) {
			others = append(others, other.PeerAddr)
		}
		n.JoinBy(others)
		token, body := procs.NewJoinToken()
		if err := errors.Join(n.Wipe(), c.operate(ctx, "/api/cluster/tokens", body)); err != nil {
			return err
		}
		c.notef("%s is removed, and joins with an empty folder", n.ID)
		if err := errors.Join(n.SetJoinToken(token), c.startNodes(n)); err != nil {
			return err
		}
		return pause.Until(ctx, operatorPause, func() error { return c.votes(ctx, n) })
	}
}

// votes returns nil if another node says that n votes. Before that, the loss of one more
// node could be the loss of a majority.
func (c *Cluster) votes(ctx context.Context, n *procs.Node) error {
	for _, other := range without(c, n) {
		if !other.Running() {
			continue
		}
		view, err := procs.View(ctx, other)
		if err == nil && slices.ContainsFunc(view.Nodes, func(v wire.Node) bool { return v.NodeID == n.ID && v.Suffrage == "voter" }) {
			return nil
		}
	}
	return fmt.Errorf("nobody says that %s votes", n.ID)
}

// removed removes a healthy member; it joins again as a new one.
func removed(ctx context.Context, c *Cluster, nodes []*procs.Node, _ *rand.Rand) (undo, error) {
	n := nodes[0]
	c.notef("%s is removed from the cluster", n.ID)
	if !c.change(ctx, "/api/cluster/remove", nodeBody(n)) {
		c.notef("%s: nobody answers; it is tried again at the end", n.ID)
	}
	return c.replaced(n), nil
}

// wiped deletes a node's folder.
func wiped(_ context.Context, c *Cluster, nodes []*procs.Node, _ *rand.Rand) (undo, error) {
	n := nodes[0]
	c.notef("%s loses its folder", n.ID)
	if err := procs.KillAll(n); err != nil {
		return nil, err
	}
	return c.replaced(n), n.Wipe()
}

// demoted takes a member's vote away for a while.
func demoted(ctx context.Context, c *Cluster, nodes []*procs.Node, _ *rand.Rand) (undo, error) {
	n := nodes[0]
	c.notef("%s loses its vote", n.ID)
	c.change(ctx, "/api/cluster/demote", nodeBody(n))
	return func(ctx context.Context) error {
		c.notef("%s gets its vote back", n.ID)
		return c.operate(ctx, "/api/cluster/promote", nodeBody(n))
	}, nil
}

// transferred transfers the leadership.
func transferred(ctx context.Context, c *Cluster, _ []*procs.Node, _ *rand.Rand) (undo, error) {
	c.notef("the leadership is handed over")
	c.change(ctx, "/api/cluster/transfer", "")
	return func(context.Context) error { return nil }, nil
}

// moved restarts a node with another peer port.
func moved(ctx context.Context, c *Cluster, nodes []*procs.Node, _ *rand.Rand) (undo, error) {
	n := nodes[0]
	if err := c.end(ctx, n); err != nil {
		return nil, err
	}
	n.PeerAddr = otherPort(n.PeerAddr)
	n.SetFlag("--peer-addr", n.PeerAddr)
	c.notef("%s comes back at %s", n.ID, n.PeerAddr)
	return func(context.Context) error { return c.startNodes(n) }, c.startNodes(n)
}

// otherPort returns the address with the other one of two ports.
func otherPort(addr string) string {
	if base, ok := strings.CutSuffix(addr, "1"); ok {
		return base + "2"
	}
	return addr[:len(addr)-1] + "1"
}

// rotten flips bytes anywhere in the log and snapshots of a node while it is down. If the
// node notices, it does not start and is replaced; if the flipped bytes do not matter (in
// the unused end of a segment), it goes on.
func rotten(_ context.Context, c *Cluster, nodes []*procs.Node, rng *rand.Rand) (undo, error) {
	n := nodes[0]
	if err := procs.KillAll(n); err != nil {
		return nil, err
	}
	what, err := flip(n.DataDir, rng)
	c.notef("%s: %s", n.ID, what)
	return func(ctx context.Context) error {
		if err := c.startNodes(n); err != nil {
			return err
		}
		looking, cancel := context.WithTimeout(ctx, rotLook)
		defer cancel()
		if n.WaitReady(looking) == nil {
			return nil
		}
		return c.replaced(n)(ctx)
	}, err
}

// flip flips one to three bits of one file of the log, vote or snapshots.
func flip(dir string, rng *rand.Rand) (what string, err error) {
	var paths []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != "LOCK" && d.Name() != "identity.json" && d.Name() != "node.key" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		return "it has nothing that could rot", err
	}
	path := paths[rng.Intn(len(paths))]
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		return "an empty file cannot rot", err
	}
	used := len(data)
	for used > 1 && data[used-1] == 0 { // most of a segment is zeros
		used--
	}
	count := 1 + rng.Intn(3)
	for range count {
		data[rng.Intn(used)] ^= 1 << rng.Intn(8)
	}
	return fmt.Sprintf("%d bits of %s have flipped", count, filepath.Base(path)), os.WriteFile(path, data, 0o600)
}
