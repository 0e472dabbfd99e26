package nodetest

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/internal/memnode"
	"github.com/claimq/claimq/nodes"
)

// Node is a node in memory whose time moves alone: it expires nothing by itself, and its calls do not wait. Its fields
// replace behavior that cannot be produced otherwise.
type Node struct {
	*memnode.Node

	Follower   bool // it does not lead
	LeaderAddr string
	Proposed   []command.Command

	OnPropose func(ctx context.Context, cmd command.Command) (nodes.Proposed, error) // nil: apply
	OnRead    func(ctx context.Context, minIndex uint64) error                       // nil: read
	// OnForward is Forward; nil: no leader.
	OnForward   func(ctx context.Context, pass nodes.Passing, req *fasthttp.Request, resp *fasthttp.Response) (nodes.Passed, error)
	OnClaim     func(caller context.Context, cmd command.ClaimNext, wait time.Duration) (nodes.Proposed, error) // nil: Propose
	OnWaitEnded func(caller context.Context, id uint64, wait time.Duration) error                               // nil: does not wait
	OnCatchUp   func(ctx context.Context) error                                                                 // nil: it is not behind

	OnRestore func(ctx context.Context, r io.Reader) (uint64, error) // nil: no leader

	ReadyErr error

	UpgradeErr error
	View       nodes.ClusterView
	Changes    []string // requested changes of the membership
	MemberErr  error
	HashView   nodes.HashView
	Removed    []string
	TellErr    error
}

// Start is the fake node's initial time: 2026-03-01T12:00:00.000Z.
const Start = 1_772_366_400_000

// New returns a leading node without tasks.
func New() *Node {
	return &Node{Node: memnode.New("n1", "", fsm.Stamp{U: 1_000, T: Start})}
}

// Propose implements package api's Node.
func (n *Node) Propose(ctx context.Context, cmd command.Command) (nodes.Proposed, error) {
	if n.OnPropose != nil {
		return n.OnPropose(ctx, cmd)
	}
	if n.Follower {
		return nodes.Proposed{}, nodes.ErrNotLeader
	}
	return n.Apply(cmd)
}

// Apply applies a command at once.
func (n *Node) Apply(cmd command.Command) (nodes.Proposed, error) {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	n.Proposed = append(n.Proposed, cmd)
	cmds := []command.Command{cmd}
	if n.Machine.Level() == 0 { // as the first leader does, but without a separate index and without defaults
		cmds = []command.Command{command.SetLevel{Level: fsm.FeatureLevel()}, cmd}
	}
	p, err := n.Node.Apply(cmds...)
	if err == nil {
		p.Release = releaseOnce(p.Result)
	}
	return p, err
}

// releaseOnce returns a function that overwrites the memory of the result, so that reading it after its release shows
// in an answer.
func releaseOnce(result fsm.Result) func() {
	released := false
	return func() {
		if released {
			panic("a result was released twice")
		}
		released = true
		junk := fsm.Task{ID: 666, Type: "released", WorkerID: "released", Key: "released", Params: []byte(`"released"`)}
		if result.Task != nil {
			*result.Task = junk
		}
		for i := range result.Submitted {
			*result.Submitted[i].Task = junk
			result.Submitted[i] = fsm.Submitted{}
		}
		for i := range result.Claims {
			*result.Claims[i].Task = junk
			result.Claims[i] = fsm.Claim{Token: 666}
		}
		for i := range result.Results {
			result.Results[i] = fsm.Result{Code: "released"}
		}
	}
}

// ProposeTo passes commands to note instead of applying them; the answers are meaningless.
func (n *Node) ProposeTo(note func(cmd command.Command)) {
	n.OnPropose = func(_ context.Context, cmd command.Command) (nodes.Proposed, error) {
		note(cmd)
		return nodes.Proposed{}, nodes.ErrOverloaded
	}
}

// Advance moves both clocks forward.
func (n *Node) Advance(ms int64) {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	n.Stamp.U += ms
	n.Stamp.T += ms
}

// ReadLinearizable implements package api's Node.
func (n *Node) ReadLinearizable(ctx context.Context, minIndex uint64, fn func(*fsm.Machine, fsm.Stamp)) (uint64, error) {
	if n.Follower {
		return 0, nodes.ErrNotLeader
	}
	return n.ReadStale(ctx, minIndex, fn)
}

// ReadStale implements package api's Node.
func (n *Node) ReadStale(ctx context.Context, minIndex uint64, fn func(*fsm.Machine, fsm.Stamp)) (uint64, error) {
	if n.OnRead != nil {
		if err := n.OnRead(ctx, minIndex); err != nil {
			return 0, err
		}
	}
	return n.Node.ReadStale(ctx, 0, fn)
}

// WaitEnded implements package api's Node.
func (n *Node) WaitEnded(caller context.Context, id uint64, wait time.Duration) error {
	if n.OnWaitEnded != nil {
		return n.OnWaitEnded(caller, id, wait)
	}
	return nil
}

// CatchUp implements package api's Node.
func (n *Node) CatchUp(ctx context.Context) error {
	if n.OnCatchUp != nil {
		return n.OnCatchUp(ctx)
	}
	return nil
}

// IsLeader implements package api's Node.
func (n *Node) IsLeader() bool { return !n.Follower }

// LeaderHTTPAddr implements package api's Node.
func (n *Node) LeaderHTTPAddr() string { return n.LeaderAddr }

// Ready implements package api's Node.
func (n *Node) Ready() error { return n.ReadyErr }

// Claim implements package api's Node.
func (n *Node) Claim(caller context.Context, cmd command.ClaimNext, wait time.Duration, reserve func(context.Context) (free func(), err error)) (nodes.Proposed, error) {
	if reserve != nil {
		if _, err := reserve(caller); err != nil {
			return nodes.Proposed{}, err
		}
	}
	if n.OnClaim != nil {
		return n.OnClaim(caller, cmd, wait)
	}
	return n.Propose(caller, cmd)
}

// Forward implements package api's Node.
func (n *Node) Forward(ctx context.Context, pass nodes.Passing, req *fasthttp.Request, resp *fasthttp.Response) (nodes.Passed, error) {
	if n.OnForward == nil {
		return nodes.Passed{}, nodes.ErrNoLeader
	}
	return n.OnForward(ctx, pass, req, resp)
}

// Release implements package api's Node.
func (n *Node) Release(ctx context.Context, holds []command.Hold) error {
	for _, h := range holds {
		if _, err := n.Propose(ctx, command.Release{Hold: h, Answer: command.FirstAnswer}); err != nil {
			return err
		}
	}
	return nil
}

// Cluster implements package api's Node.
func (n *Node) Cluster(context.Context) nodes.ClusterView { return n.View }

// RemoveNode implements package api's Node.
func (n *Node) RemoveNode(ctx context.Context, nodeID string, by nodes.Operator) error {
	if nodeID == n.NodeID() {
		return &nodes.MembershipRefused{Reason: nodeID + " leads", Advice: "Stop it first"}
	}
	n.Removed = append(n.Removed, nodeID)
	return n.Tell(ctx, command.Tell{Kind: event.MemberRemoved, By: by.Name, What: nodeID}, by.Key)
}

// JoinNode implements package api's Node.
func (n *Node) JoinNode(_ context.Context, nodeID, peerAddr string, voter bool) error {
	return n.changeMember(fmt.Sprintf("join %s at %s, voter %t", nodeID, peerAddr, voter))
}

// PromoteNode implements package api's Node.
func (n *Node) PromoteNode(ctx context.Context, nodeID string, by nodes.Operator) error {
	if err := n.changeMember("promote " + nodeID); err != nil {
		return err
	}
	return n.Tell(ctx, command.Tell{Kind: event.MemberPromoted, By: by.Name, What: nodeID}, by.Key)
}

// DemoteNode implements package api's Node.
func (n *Node) DemoteNode(ctx context.Context, nodeID string, by nodes.Operator) error {
	if err := n.changeMember("demote " + nodeID); err != nil {
		return err
	}
	return n.Tell(ctx, command.Tell{Kind: event.MemberDemoted, By: by.Name, What: nodeID}, by.Key)
}

// Transfer implements package api's Node.
func (n *Node) Transfer(_ context.Context, nodeID string) (string, error) {
	return "n2", n.changeMember("transfer to " + nodeID)
}

// changeMember records a change of the membership, unless MemberErr refuses it.
func (n *Node) changeMember(change string) error {
	if n.MemberErr == nil {
		n.Changes = append(n.Changes, change)
	}
	return n.MemberErr
}

// Hashes implements package api's Node.
func (n *Node) Hashes(context.Context) (nodes.HashView, error) { return n.HashView, n.MemberErr }

// TakeSnapshot implements package api's Node.
func (n *Node) TakeSnapshot(context.Context) (uint64, error) { return 7, nil }

// RestoreBackup implements package api's Node.
func (n *Node) RestoreBackup(ctx context.Context, r io.Reader) (uint64, error) {
	if n.OnRestore == nil {
		return 0, nodes.ErrNoLeader
	}
	return n.OnRestore(ctx, r)
}

// Upgrade implements package api's Node.
func (n *Node) Upgrade(_ context.Context, by string) (uint32, error) {
	if n.UpgradeErr != nil {
		return 0, n.UpgradeErr
	}
	if _, err := n.Apply(command.SetLevel{Level: fsm.FeatureLevel(), By: by}); err != nil {
		return 0, err
	}
	return fsm.FeatureLevel(), nil
}

// Tell implements package api's Node.
func (n *Node) Tell(_ context.Context, cmd command.Tell, _ string) error {
	if n.TellErr != nil {
		return n.TellErr
	}
	_, err := n.Apply(cmd)
	return err
}

// LoseTrail makes the node drop all events that it has now. One event is left: trail_changed, at index+3 if the node
// was at index.
func LoseTrail(t testing.TB, node *Node) {
	t.Helper()
	for _, cmd := range []command.Command{command.SetTrail{Bytes: 1 << 20, AgeMS: 60_000}, command.Tick{}, command.SetTrail{Bytes: 2 << 20, AgeMS: 60_000}} {
		if _, err := node.Apply(cmd); err != nil {
			t.Fatal(err)
		}
		if cmd == (command.SetTrail{Bytes: 1 << 20, AgeMS: 60_000}) {
			node.Advance(120_000)
		}
	}
}

// SubmitTo submits this number of tasks of type t to the node.
func SubmitTo(t testing.TB, node *Node, tasks int) {
	t.Helper()
	cmd := command.Submit{Tasks: make([]fsm.NewTask, tasks)}
	for i := range cmd.Tasks {
		cmd.Tasks[i] = fsm.NewTask{Type: "t", Params: []byte("1")}
	}
	if _, err := node.Apply(cmd); err != nil {
		t.Fatal(err)
	}
}
