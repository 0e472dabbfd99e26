package api

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/fsm"
)

// fakeNode is a node over a real state machine, without Raft: a command is
// applied at once. Its func fields stand in for what the real one cannot be
// made to do here.
type fakeNode struct {
	mu      sync.Mutex
	machine *fsm.Machine
	stamp   fsm.Stamp

	follower   bool // does not lead
	leaderAddr string
	proposed   []fsm.Command

	onPropose func(ctx context.Context, cmd fsm.Command) (fsm.Proposed, error) // nil: apply
	onRead    func(ctx context.Context, minIndex uint64) error                 // nil: read
	onForward func(req *fasthttp.Request, resp *fasthttp.Response) error       // nil: no leader
	// onForwardCtx sees how long Forward may take, nil: nobody does.
	onForwardCtx func(ctx context.Context)
	// nil: as Propose and Forward, which do not wait.
	onClaim          func(caller context.Context, cmd fsm.ClaimNext, wait time.Duration) (fsm.Proposed, error)
	onForwardWaiting func(ctx context.Context, req *fasthttp.Request, resp *fasthttp.Response) error
	onWaitEnded      func(caller context.Context, id uint64, wait time.Duration) error // nil: does not wait

	onRestore func(ctx context.Context, r io.Reader) (uint64, error) // nil: no leader

	readyErr error

	upgradeErr error
	view       fsm.ClusterView
	changes    []string // what was asked for of the membership
	memberErr  error
	hashes     fsm.HashView
	removed    []string
	tellErr    error
}

// testStart is the fake node's calendar at the start: 2026-03-01T12:00:00.000Z.
const testStart = 1_772_366_400_000

func newFakeNode() *fakeNode {
	return &fakeNode{machine: fsm.New(), stamp: fsm.Stamp{U: 1_000, T: testStart}}
}

func (n *fakeNode) Propose(ctx context.Context, cmd fsm.Command) (fsm.Proposed, error) {
	if n.onPropose != nil {
		return n.onPropose(ctx, cmd)
	}
	if n.follower {
		return fsm.Proposed{}, fsm.ErrNotLeader
	}
	return n.apply(cmd)
}

func (n *fakeNode) apply(cmd fsm.Command) (fsm.Proposed, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.proposed = append(n.proposed, cmd)
	cmds := []fsm.Command{cmd}
	if n.machine.Level() == 0 { // as the first leader does, but without an index of its own
		cmds = []fsm.Command{fsm.SetLevel{Level: fsm.FeatureLevel}, cmd}
	}
	applied, err := n.machine.Apply(n.machine.Index()+1, fsm.AppendEntry(nil, n.stamp, cmds...))
	if err != nil {
		return fsm.Proposed{}, err
	}
	result := applied.Results[len(cmds)-1]
	return fsm.Proposed{Index: applied.Index, Stamp: applied.Stamp, Result: result, Release: releaseOnce(result)}, nil
}

// releaseOnce returns what overwrites the memory of the result: whoever reads it
// after it was released shows so in an answer.
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
			result.Claims[i] = fsm.Claim{Task: junk, Token: 666}
		}
		for i := range result.Results {
			result.Results[i] = fsm.Result{Code: "released"}
		}
	}
}

// propose has commands go to note, and none applied: what is answered means
// nothing.
func (n *fakeNode) propose(note func(cmd fsm.Command)) {
	n.onPropose = func(_ context.Context, cmd fsm.Command) (fsm.Proposed, error) {
		note(cmd)
		return fsm.Proposed{}, fsm.ErrOverloaded
	}
}

// advance moves both clocks on.
func (n *fakeNode) advance(ms int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stamp.U += ms
	n.stamp.T += ms
}

func (n *fakeNode) ReadLinearizable(ctx context.Context, minIndex uint64, fn func(*fsm.Machine, fsm.Stamp)) (uint64, error) {
	if n.follower {
		return 0, fsm.ErrNotLeader
	}
	return n.ReadStale(ctx, minIndex, fn)
}

func (n *fakeNode) ReadStale(ctx context.Context, minIndex uint64, fn func(*fsm.Machine, fsm.Stamp)) (uint64, error) {
	if n.onRead != nil {
		if err := n.onRead(ctx, minIndex); err != nil {
			return 0, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	fn(n.machine, n.stamp)
	return n.machine.Index(), nil
}

func (n *fakeNode) WaitEnded(caller context.Context, id uint64, wait time.Duration) error {
	if n.onWaitEnded != nil {
		return n.onWaitEnded(caller, id, wait)
	}
	return nil
}

// WaitEvent looks every now and then.
func (n *fakeNode) WaitEvent(ctx context.Context, after fsm.EventPos) error {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		n.mu.Lock()
		newest := n.machine.NewestEvent()
		n.mu.Unlock()
		if behind(newest, after) {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (n *fakeNode) IsLeader() bool         { return !n.follower }
func (n *fakeNode) LeaderHTTPAddr() string { return n.leaderAddr }
func (n *fakeNode) Ready() error           { return n.readyErr }
func (n *fakeNode) NodeID() string         { return "n1" }

func (n *fakeNode) Claim(caller context.Context, cmd fsm.ClaimNext, wait time.Duration) (fsm.Proposed, error) {
	if n.onClaim != nil {
		return n.onClaim(caller, cmd, wait)
	}
	return n.Propose(caller, cmd)
}

func (n *fakeNode) ForwardWaiting(ctx context.Context, req *fasthttp.Request, resp *fasthttp.Response) error {
	if n.onForwardWaiting != nil {
		return n.onForwardWaiting(ctx, req, resp)
	}
	return n.Forward(ctx, req, resp, nil)
}

func (n *fakeNode) Forward(ctx context.Context, req *fasthttp.Request, resp *fasthttp.Response, room func(int) error) error {
	if n.onForwardCtx != nil {
		n.onForwardCtx(ctx)
	}
	if n.onForward == nil {
		return fsm.ErrNoLeader
	}
	answer := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(answer)
	if err := n.onForward(req, answer); err != nil {
		return err
	}
	if size := len(answer.Body()); room != nil && size > 0 {
		if err := room(size); err != nil {
			return fmt.Errorf("%w: %w", fsm.ErrOutcomeUnknown, err)
		}
	}
	answer.CopyTo(resp)
	return nil
}

func (n *fakeNode) Cluster(context.Context) fsm.ClusterView { return n.view }

func (n *fakeNode) RemoveNode(ctx context.Context, nodeID string, by fsm.Operator) error {
	if nodeID == n.NodeID() {
		return &fsm.MembershipRefused{Reason: nodeID + " leads", Advice: "Stop it first"}
	}
	n.removed = append(n.removed, nodeID)
	return n.Tell(ctx, fsm.Tell{Kind: fsm.EventMemberRemoved, By: by.Name, What: nodeID}, by.Key)
}

func (n *fakeNode) JoinNode(_ context.Context, nodeID, peerAddr string, voter bool) error {
	return n.changeMember(fmt.Sprintf("join %s at %s, voter %t", nodeID, peerAddr, voter))
}

func (n *fakeNode) PromoteNode(ctx context.Context, nodeID string, by fsm.Operator) error {
	if err := n.changeMember("promote " + nodeID); err != nil {
		return err
	}
	return n.Tell(ctx, fsm.Tell{Kind: fsm.EventMemberPromoted, By: by.Name, What: nodeID}, by.Key)
}

func (n *fakeNode) DemoteNode(ctx context.Context, nodeID string, by fsm.Operator) error {
	if err := n.changeMember("demote " + nodeID); err != nil {
		return err
	}
	return n.Tell(ctx, fsm.Tell{Kind: fsm.EventMemberDemoted, By: by.Name, What: nodeID}, by.Key)
}

func (n *fakeNode) Transfer(_ context.Context, nodeID string) (string, error) {
	return "n2", n.changeMember("transfer to " + nodeID)
}

// changeMember notes a change of the membership, unless memberErr refuses it.
func (n *fakeNode) changeMember(change string) error {
	if n.memberErr == nil {
		n.changes = append(n.changes, change)
	}
	return n.memberErr
}

func (n *fakeNode) Hashes(context.Context) (fsm.HashView, error) { return n.hashes, n.memberErr }

func (n *fakeNode) TakeSnapshot(context.Context) (uint64, error) { return 7, nil }

func (n *fakeNode) SaveBackup(context.Context, bool) (*fsm.Backup, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return fsm.NewBackup(n.machine.Snapshot(), fsm.BackupInfo{ClusterID: "c"}), nil
}

func (n *fakeNode) RestoreBackup(ctx context.Context, r io.Reader) (uint64, error) {
	if n.onRestore == nil {
		return 0, fsm.ErrNoLeader
	}
	return n.onRestore(ctx, r)
}

func (n *fakeNode) Upgrade(_ context.Context, by string) (uint32, error) {
	if n.upgradeErr != nil {
		return 0, n.upgradeErr
	}
	if _, err := n.apply(fsm.SetLevel{Level: fsm.FeatureLevel, By: by}); err != nil {
		return 0, err
	}
	return fsm.FeatureLevel, nil
}

func (n *fakeNode) Tell(_ context.Context, cmd fsm.Tell, _ string) error {
	if n.tellErr != nil {
		return n.tellErr
	}
	_, err := n.apply(cmd)
	return err
}

var _ Node = (*fakeNode)(nil)

// setup returns a server over a fake node.
func setup(t testing.TB, options ...func(*Config)) (*Server, *fakeNode) {
	t.Helper()
	node := newFakeNode()
	cfg := Config{Node: node, Version: "v0.0.1", AdvertisedHosts: []string{"http://queue.example:7400"}}
	for _, o := range options {
		o(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	return s, node
}
