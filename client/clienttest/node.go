package clienttest

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

const nodeID = "clienttest"

// node is a cluster of one node without replication: each command is an entry that is applied at once. Package api
// bounds the waiting calls by its bound of connections.
type node struct {
	url   string
	begun time.Time // since when the clocks follow time.Now; zero: they stand still

	mu      sync.Mutex // guards what follows
	machine *fsm.Machine
	stamp   fsm.Stamp     // the clocks; advance and catchUp move them
	ticked  int64         // milliseconds that they have moved since begun
	waiters []*waiter     // claims, in order of arrival
	news    chan struct{} // closed and replaced with every entry
}

var _ api.Node = (*node)(nil)

func newNode(start time.Time) (*node, error) {
	n := &node{url: "http://" + memoryHost, machine: fsm.New(), stamp: fsm.Stamp{T: start.UnixMilli()}, news: make(chan struct{})}
	_, err := n.apply(command.SetLevel{Level: fsm.FeatureLevel, Defaults: fsm.FirstDefaults(fsm.FeatureLevel)})
	return n, err
}

// apply applies an entry with one command. The caller holds mu and calls follow after the last of several.
func (n *node) apply(cmd command.Command) (nodes.Proposed, error) {
	applied, err := n.machine.Apply(n.machine.Index()+1, command.AppendEntry(nil, n.stamp, cmd))
	if err != nil {
		return nodes.Proposed{}, err
	}
	close(n.news)
	n.news = make(chan struct{})
	return nodes.Proposed{Index: applied.Index, Stamp: applied.Stamp, Result: applied.Results[0]}, nil
}

// Propose applies cmd and whatever becomes due.
func (n *node) Propose(_ context.Context, cmd command.Command) (nodes.Proposed, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.propose(cmd)
}

// propose is Propose; the caller holds mu. A claim that finds nothing writes nothing, and ends the waits of the same
// request.
func (n *node) propose(cmd command.Command) (nodes.Proposed, error) {
	if c, ok := cmd.(command.ClaimNext); ok && !n.machine.Claimable(c, n.stamp) {
		n.endWaits(c.RequestID)
		return nodes.Proposed{Index: n.machine.Index(), Stamp: n.stamp}, nil
	}
	p, err := n.apply(cmd)
	if err != nil {
		return nodes.Proposed{}, err
	}
	return p, n.follow()
}

// ReadLinearizable calls fn with the current state.
func (n *node) ReadLinearizable(ctx context.Context, minIndex uint64, fn func(*fsm.Machine, fsm.Stamp)) (uint64, error) {
	return n.ReadStale(ctx, minIndex, fn)
}

// ReadStale calls fn with the state once it has reached minIndex.
func (n *node) ReadStale(ctx context.Context, minIndex uint64, fn func(*fsm.Machine, fsm.Stamp)) (index uint64, err error) {
	err = n.wait(ctx, nil, func() bool {
		if n.machine.Index() < minIndex {
			return false
		}
		fn(n.machine, n.stamp)
		index = n.machine.Index()
		return true
	})
	return index, err
}

// WaitEnded waits until the task has ended or was removed, but at most for wait.
func (n *node) WaitEnded(caller context.Context, id uint64, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	return n.wait(caller, timer.C, func() bool {
		t := n.machine.Get(id)
		return t == nil || t.Status.Ended()
	})
}

// WaitEvent waits until the trail has an event after after.
func (n *node) WaitEvent(ctx context.Context, after event.Pos) error {
	return n.wait(ctx, nil, func() bool {
		newest := n.machine.NewestEvent()
		return newest.Index > after.Index || newest.Index == after.Index && newest.Sub > after.Sub
	})
}

// CatchUp returns at once, because there is only one node.
func (n *node) CatchUp(context.Context) error { return nil }

// wait waits until done returns true or over receives. done is called under mu, first at once and then after every
// entry. Errors: ctx's cause.
func (n *node) wait(ctx context.Context, over <-chan time.Time, done func() bool) error {
	for {
		n.mu.Lock()
		err := n.catchUp()
		is, news := err != nil || done(), n.news
		n.mu.Unlock()
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

// nextEntry returns a channel that is closed with the next entry.
func (n *node) nextEntry() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.news
}

func (n *node) IsLeader() bool         { return true }
func (n *node) LeaderHTTPAddr() string { return n.url }
func (n *node) Ready() error           { return nil }
func (n *node) NodeID() string         { return nodeID }

// Forward always fails, because this node leads.
func (n *node) Forward(context.Context, *fasthttp.Request, *fasthttp.Response, func(int) error) error {
	return nodes.ErrNoLeader
}

// ForwardWaiting always fails, because this node leads.
func (n *node) ForwardWaiting(context.Context, *fasthttp.Request, *fasthttp.Response) error {
	return nodes.ErrNoLeader
}

// Cluster describes a cluster of this node.
func (n *node) Cluster(context.Context) nodes.ClusterView {
	n.mu.Lock()
	defer n.mu.Unlock()
	self := nodes.NodeView{
		NodeRecord: fsm.NodeRecord{NodeID: nodeID, HTTPAddr: n.url},
		Suffrage:   "voter", State: "leader", AppliedIndex: n.machine.Index(), TakesPart: true, Healthy: true,
	}
	return nodes.ClusterView{Leader: nodeID, Term: 1, FeatureLevel: n.machine.Level(), Nodes: []nodes.NodeView{self}}
}

// refused is the error for calls that need a real cluster.
func refused() error {
	return &nodes.MembershipRefused{
		Reason: "This is a server of package clienttest: one node in memory",
		Advice: "Start a real one for this, by claimq dev",
	}
}

func (n *node) JoinNode(context.Context, string, string, bool) error      { return refused() }
func (n *node) PromoteNode(context.Context, string, nodes.Operator) error { return refused() }
func (n *node) DemoteNode(context.Context, string, nodes.Operator) error  { return refused() }
func (n *node) RemoveNode(context.Context, string, nodes.Operator) error  { return refused() }
func (n *node) Transfer(context.Context, string) (string, error)          { return "", refused() }
func (n *node) RestoreBackup(context.Context, io.Reader) (uint64, error)  { return 0, refused() }

// TakeSnapshot does nothing, because there is no log to compact.
func (n *node) TakeSnapshot(context.Context) (uint64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.machine.Index(), nil
}

// Hashes reports that there is no checkpoint yet.
func (n *node) Hashes(context.Context) (nodes.HashView, error) {
	return nodes.HashView{Agree: true}, nil
}

// SaveBackup captures the state.
func (n *node) SaveBackup(context.Context, bool) (*fsm.Backup, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return fsm.NewBackup(n.machine.Snapshot(), fsm.BackupInfo{ClusterID: nodeID}), nil
}

// Upgrade does nothing, because the level is the highest from the start.
func (n *node) Upgrade(context.Context, string) (uint32, error) { return fsm.FeatureLevel, nil }

// Tell records an operator's action in the trail.
func (n *node) Tell(ctx context.Context, cmd command.Tell, _ string) error {
	_, err := n.Propose(ctx, cmd)
	return err
}
