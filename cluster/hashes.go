package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/claimq/claimq/fsm"
)

const (
	// hashesTimeout bounds the wait for the nodes' hashes, which are asked for
	// every hashesInterval.
	hashesTimeout  = 4 * time.Second
	hashesInterval = 200 * time.Millisecond
)

// Hashes has every node hash its state at one index of the log, a new one, and
// returns what they say. Errors: fsm.ErrNotLeader, fsm.ErrNoLeader,
// fsm.ErrOverloaded, fsm.ErrShuttingDown; fsm.ErrOutcomeUnknown.
func (n *Node) Hashes(ctx context.Context) (fsm.HashView, error) {
	l := n.leader.Load()
	if l == nil || !l.serves() || n.closing.Load() {
		return fsm.HashView{}, n.notServing()
	}
	p, err := n.batcher.Propose(ctx, fsm.Checkpoint{})
	if err != nil {
		return fsm.HashView{}, fmt.Errorf("log a checkpoint: %w", err)
	}
	servers := n.servers()
	asking, cancel := context.WithTimeout(ctx, hashesTimeout)
	defer cancel()
	hashes := n.askHashes(asking, servers, p.Index, hashesInterval)
	view := fsm.HashView{Index: p.Index, Agree: distinct(hashes) <= 1}
	for _, s := range servers {
		view.Nodes = append(view.Nodes, fsm.NodeHash{NodeID: n.nameOfMember(string(s.ID)), Hash: hashes[string(s.ID)]})
	}
	slices.SortFunc(view.Nodes, func(a, b fsm.NodeHash) int { return cmp.Compare(a.NodeID, b.NodeID) })
	return view, nil
}
