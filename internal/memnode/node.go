package memnode

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

// Node is a cluster of one node without replication: each command is an entry that is applied at once. It implements
// package api's Node, whose bound of connections bounds the waiting calls.
type Node struct {
	ID, URL string
	// FollowSince, if set, is the time since when the clocks follow time.Now; otherwise they stand still.
	FollowSince time.Time

	Mu      sync.Mutex // guards what follows
	Machine *fsm.Machine
	Stamp   fsm.Stamp     // the clocks
	ticked  int64         // milliseconds that the clocks have moved since FollowSince
	waiters []*waiter     // claims, in order of arrival
	news    chan struct{} // closed and replaced with every entry
}

// New returns a node whose state is empty, at these times, and still at no feature level.
func New(id, url string, start fsm.Stamp) *Node {
	return &Node{ID: id, URL: url, Machine: fsm.New(), Stamp: start, news: make(chan struct{})}
}

// Apply applies an entry with these commands, and returns the outcome of the last. The caller holds Mu.
func (n *Node) Apply(cmds ...command.Command) (nodes.Proposed, error) {
	applied, err := n.Machine.Apply(n.Machine.Index()+1, command.AppendEntry(nil, n.Stamp, cmds...))
	if err != nil {
		return nodes.Proposed{}, err
	}
	close(n.news)
	n.news = make(chan struct{})
	return nodes.Proposed{Index: applied.Index, Stamp: applied.Stamp, Result: applied.Results[len(cmds)-1]}, nil
}

// Propose applies cmd and whatever becomes due.
func (n *Node) Propose(_ context.Context, cmd command.Command) (nodes.Proposed, error) {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	return n.propose(cmd)
}

// propose is Propose; the caller holds Mu. A claim that finds nothing writes nothing, and ends the waits of the same
// request.
func (n *Node) propose(cmd command.Command) (nodes.Proposed, error) {
	if c, ok := cmd.(command.ClaimNext); ok && !n.Machine.Claimable(c, n.Stamp) {
		n.endWaits(c.RequestID)
		return nodes.Proposed{Index: n.Machine.Index(), Stamp: n.Stamp}, nil
	}
	p, err := n.Apply(cmd)
	if err != nil {
		return nodes.Proposed{}, err
	}
	return p, n.runDue()
}

// ReadLinearizable calls fn with the current state.
func (n *Node) ReadLinearizable(ctx context.Context, minIndex uint64, fn func(*fsm.Machine, fsm.Stamp)) (uint64, error) {
	return n.ReadStale(ctx, minIndex, fn)
}

// ReadStale calls fn with the state once it has reached minIndex.
func (n *Node) ReadStale(ctx context.Context, minIndex uint64, fn func(*fsm.Machine, fsm.Stamp)) (index uint64, err error) {
	err = n.wait(ctx, nil, func() bool {
		if n.Machine.Index() < minIndex {
			return false
		}
		fn(n.Machine, n.Stamp)
		index = n.Machine.Index()
		return true
	})
	return index, err
}

// WaitEnded waits until the task has ended or was removed, but at most for wait.
func (n *Node) WaitEnded(caller context.Context, id uint64, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	return n.wait(caller, timer.C, func() bool {
		t := n.Machine.Get(id)
		return t == nil || t.Status.Ended()
	})
}

// WaitEvent waits until the trail has an event after after.
func (n *Node) WaitEvent(ctx context.Context, after event.Pos) error {
	return n.wait(ctx, nil, func() bool {
		return n.Machine.NewestEvent().Compare(after) > 0
	})
}

// CatchUp returns at once, because there is only one node.
func (n *Node) CatchUp(context.Context) error { return nil }

// wait waits until done returns true or over receives. done is called under Mu, first at once and then after every
// entry. Errors: ctx's cause.
func (n *Node) wait(ctx context.Context, over <-chan time.Time, done func() bool) error {
	for {
		n.Mu.Lock()
		err := n.catchUp()
		is, news := err != nil || done(), n.news
		n.Mu.Unlock()
		if is {
			return err
		}
		select {
		case <-news:
		case <-over:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// NextEntry returns a channel that is closed with the next entry.
func (n *Node) NextEntry() <-chan struct{} {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	return n.news
}

// IsLeader returns true, because there is no other node.
func (n *Node) IsLeader() bool { return true }

// LeaderHTTPAddr returns URL.
func (n *Node) LeaderHTTPAddr() string { return n.URL }

// Ready returns nil, because the state is always the newest.
func (n *Node) Ready() error { return nil }

// NodeID returns ID.
func (n *Node) NodeID() string { return n.ID }

// Forward always fails, because this node leads.
func (n *Node) Forward(context.Context, nodes.Passing, *fasthttp.Request, *fasthttp.Response) (nodes.Passed, error) {
	return nodes.Passed{}, nodes.ErrNoLeader
}

// Release releases claims.
func (n *Node) Release(ctx context.Context, holds []command.Hold) error {
	for _, h := range holds {
		if _, err := n.Propose(ctx, command.Release{Hold: h, Answer: command.FirstAnswer}); err != nil {
			return err
		}
	}
	return nil
}

// Cluster describes a cluster of this node.
func (n *Node) Cluster(context.Context) nodes.ClusterView {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	self := nodes.NodeView{
		NodeRecord: fsm.NodeRecord{NodeID: n.ID, HTTPAddr: n.URL},
		Suffrage:   "voter", State: "leader", AppliedIndex: n.Machine.Index(), TakesPart: true, Healthy: true,
	}
	return nodes.ClusterView{Leader: n.ID, Term: 1, FeatureLevel: n.Machine.Level(), Nodes: []nodes.NodeView{self}}
}

// refused is the error for calls that need a real cluster.
func refused() error {
	return &nodes.MembershipRefused{
		Reason: "This is a server of package clienttest: one node in memory",
		Advice: "Start a real one for this, by claimq dev",
	}
}

// JoinNode is refused, as are all changes of the membership.
func (n *Node) JoinNode(context.Context, string, string, bool) error { return refused() }

// PromoteNode is refused.
func (n *Node) PromoteNode(context.Context, string, nodes.Operator) error { return refused() }

// DemoteNode is refused.
func (n *Node) DemoteNode(context.Context, string, nodes.Operator) error { return refused() }

// RemoveNode is refused.
func (n *Node) RemoveNode(context.Context, string, nodes.Operator) error { return refused() }

// Transfer is refused.
func (n *Node) Transfer(context.Context, string) (string, error) { return "", refused() }

// RestoreBackup is refused.
func (n *Node) RestoreBackup(context.Context, io.Reader) (uint64, error) { return 0, refused() }

// TakeSnapshot does nothing, because there is no log to compact.
func (n *Node) TakeSnapshot(context.Context) (uint64, error) {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	return n.Machine.Index(), nil
}

// Hashes reports that there is no checkpoint yet.
func (n *Node) Hashes(context.Context) (nodes.HashView, error) {
	return nodes.HashView{Agree: true}, nil
}

// SaveBackup captures the state.
func (n *Node) SaveBackup(context.Context, bool) (*fsm.Backup, error) {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	return fsm.NewBackup(n.Machine.Snapshot(), fsm.BackupInfo{ClusterID: n.ID}), nil
}

// Upgrade does nothing, because the level is the highest from the start.
func (n *Node) Upgrade(context.Context, string) (uint32, error) { return fsm.FeatureLevel(), nil }

// Tell records an operator's action in the trail.
func (n *Node) Tell(ctx context.Context, cmd command.Tell, _ string) error {
	_, err := n.Propose(ctx, cmd)
	return err
}
