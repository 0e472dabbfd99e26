package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/batch"
	"github.com/claimq/claimq/cluster/clocks"
	"github.com/claimq/claimq/cluster/confirm"
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

const (
	// exclusiveServeMax bounds the wait until this node serves again after an exclusive
	// operation.
	exclusiveServeMax = 10 * time.Second
	// retryInterval is the pause before a failed duty is retried.
	retryInterval = 100 * time.Millisecond
	// leaderNotesMax is the capacity of the channel on which Raft reports leadership. Raft
	// blocks when it is full.
	leaderNotesMax = 64
)

var errLeadershipEnded = errors.New("this node's leadership has ended")

// role knows whether this node leads, and whether it then serves. Type leaders begins and ends
// leaderships; everything else asks here.
type role struct {
	*core
	leader      atomic.Pointer[leadership]
	leaderNotes chan bool // Raft reports leadership here
	// exclusiveOps run on the goroutine that begins and ends leaderships.
	exclusiveOps chan *exclusiveOp
	doubted      chan *leadership // a leadership whose scope has to end, and another to begin
}

func newRole(c *core) *role {
	return &role{
		core: c, leaderNotes: make(chan bool, leaderNotesMax), exclusiveOps: make(chan *exclusiveOp), doubted: make(chan *leadership),
	}
}

// leadership is the scope of one leadership: everything a leader does starts when it is
// gained and has ended when end returns.
type leadership struct {
	node    *role
	term    uint64
	confirm *confirm.Scope
	// confirmer belongs to the Raft that gained the leadership; nil without Raft.
	confirmer *confirm.Confirmer
	timers    *lease.Timers
	waiters   *batch.Waiters
	laggards  laggards
	// doubt says why the voters do not let it serve, or is nil.
	doubt atomic.Pointer[doubt]
	// wallClocks are the other members' clocks as this node reads them.
	wallClocks *clocks.Walls

	// disksLow is true while the voters whose disks are not low are no majority.
	disksLow atomic.Bool

	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	// clock is set before established is closed.
	clock       *lease.Clock
	established chan struct{} // closed when proposals and reads are accepted
}

func (l *leadership) start(fn func()) {
	l.wg.Add(1)
	go func() {
		defer l.wg.Done()
		fn()
	}()
}

// end cancels the scope and waits for everything in it. Queued commands are refused; those
// in flight get their answer from Raft.
func (l *leadership) end() {
	n := l.node
	n.leader.CompareAndSwap(l, nil)
	l.refuse()
	n.fsm.Follow()
	l.wg.Wait()
	n.logger.Info("no longer leading", "term", l.term)
}

// refuse stops serving without waiting: nothing is answered or started from here on.
func (l *leadership) refuse() {
	l.cancel(errLeadershipEnded)
	l.waiters.End(l.node.leadershipError())
	l.node.batcher.Close(l.node.leadershipError())
}

// serves reports whether the leadership is established and has not ended.
func (l *leadership) serves() bool {
	select {
	case <-l.established:
		return l.ctx.Err() == nil
	default:
		return false
	}
}

// notYet is the error for requests to a leader that does not serve.
func (l *leadership) notYet() error {
	if d := l.doubt.Load(); d != nil {
		return fmt.Errorf("%w: this node %s", nodes.ErrNoLeader, d.text)
	}
	return fmt.Errorf("%w: this node has just been elected", nodes.ErrNoLeader)
}

// now returns the clocks, but not less than the state's.
func (l *leadership) now(m *fsm.Machine) fsm.Stamp { return l.clock.AtLeast(m.Stamp()) }

// claimable is fsm.Machine.Claimable at the current time.
func (l *leadership) claimable(m *fsm.Machine, c command.ClaimNext) bool {
	return m.Claimable(c, l.now(m))
}

// propose proposes one of the leader's own commands.
func (l *leadership) propose(cmd command.Command) error {
	_, err := l.node.batcher.ProposeOwn(l.ctx, cmd)
	return err
}

// read gives access to the state under its read lock.
func (l *leadership) read(fn func(*fsm.Machine)) { l.node.fsm.Read(fn) }

// retry calls do until it succeeds. It returns false when the scope has ended.
func (l *leadership) retry(what string, do func() error) bool {
	for {
		err := do()
		if l.ctx.Err() != nil {
			return false
		}
		if err == nil {
			return true
		}
		l.node.logger.Warn("leader duty failed, trying again", "duty", what, "term", l.term, "error", err)
		if !pause.For(l.ctx, retryInterval) {
			return false
		}
	}
}

// doubt is the reason why a leader does not serve.
type doubt struct {
	text    string // continues "this node"
	divided bool   // because the voters differ, not because answers are missing
}

// laggards are the nonvoters that should get a vote and are behind. The zero value is ready
// to use.
type laggards struct {
	mu    sync.Mutex
	since map[raft.ServerID]time.Duration // guarded by mu; by this node's monotonic clock
}

// note records whether a nonvoter that should get a vote is still behind.
func (b *laggards) note(id raft.ServerID, behind bool, now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch _, known := b.since[id]; {
	case !behind:
		delete(b.since, id)
	case !known:
		if b.since == nil {
			b.since = make(map[raft.ServerID]time.Duration)
		}
		b.since[id] = now
	}
}

// behind returns for how long a nonvoter has been behind; ok is false if it is not.
func (b *laggards) behind(id raft.ServerID, now time.Duration) (took time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	since, ok := b.since[id]
	return now - since, ok
}

// IsLeader reports whether this node leads and serves.
func (r *role) IsLeader() bool {
	l := r.leader.Load()
	return l != nil && l.serves() && !r.closing.Load()
}

// serving returns this node's leadership if it serves; the error says why not.
func (r *role) serving() (*leadership, error) {
	if l := r.leader.Load(); l != nil && l.serves() && !r.closing.Load() {
		return l, nil
	}
	return nil, r.notServing()
}

// notServing says why this node accepts no proposals and linearizable reads.
func (r *role) notServing() error {
	l := r.leader.Load()
	switch {
	case r.closing.Load():
		return nodes.ErrShuttingDown
	case r.removed.Load():
		return errRemoved()
	case l != nil:
		return l.notYet()
	case r.leaderID() == "" || r.leaderID() == r.uuid:
		return nodes.ErrNoLeader
	}
	return nodes.ErrNotLeader
}

// errRemoved is the error of a node that was removed and serves nothing.
func errRemoved() error {
	return fmt.Errorf("%w: this node was removed from the cluster", nodes.ErrNoLeader)
}

// leadershipError is the error for commands that were queued when a leadership ended.
// Nothing of them was written.
func (r *role) leadershipError() error {
	if r.closing.Load() {
		return fmt.Errorf("%w: %w", nodes.ErrShuttingDown, errLeadershipEnded)
	}
	return fmt.Errorf("%w: %w", nodes.ErrNotLeader, errLeadershipEnded)
}

// doubt returns why this node leads but does not serve. It is nil if it serves, does not
// lead, or was just elected.
func (r *role) doubt() *doubt {
	if l := r.leader.Load(); l != nil {
		return l.doubt.Load()
	}
	return nil
}

// votersLow reports whether this node leads and may have no majority without the voters whose disks
// are low.
func (r *role) votersLow() bool {
	l := r.leader.Load()
	return l != nil && l.disksLow.Load()
}

// waiters returns the waiting claims of this node's leadership, or nil.
func (r *role) waiters() *batch.Waiters {
	if l := r.leader.Load(); l != nil {
		return l.waiters
	}
	return nil
}

// leadsWith reports whether this node leads in term and id is a member.
func (r *role) leadsWith(term uint64, id raft.ServerID) bool {
	l := r.leader.Load()
	return l != nil && l.term == term && slices.ContainsFunc(r.servers(), func(s raft.Server) bool { return s.ID == id })
}

// raftMaker returns the starter of Raft.
func (r *role) raftMaker() *raftMaker {
	return &raftMaker{ctx: r.ctx, fsm: r.fsm, conf: r.raftConfig, leads: r.leadsWith}
}

// raftConfig returns Raft's configuration.
func (r *role) raftConfig() *raft.Config {
	c := raftConfig(r.uuid, r.logger)
	c.NotifyCh = r.leaderNotes
	return c
}

// exclusiveOp is an action to run while this node leads but no scope of its leadership is
// active.
type exclusiveOp struct {
	do   func() (uint64, error)
	done chan exclusiveResult // capacity 1
}

type exclusiveResult struct {
	index uint64
	err   error
}

// exclusively ends the scope of this node's leadership, calls do, and begins another scope, so
// that no commands are proposed meanwhile. It returns the result of do once this node
// serves again. ctx only bounds the wait for do to begin.
func (r *role) exclusively(ctx context.Context, do func() (uint64, error)) (uint64, error) {
	op := &exclusiveOp{do: do, done: make(chan exclusiveResult, 1)}
	select {
	case r.exclusiveOps <- op:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-r.ctx.Done():
		return 0, nodes.ErrShuttingDown
	}
	result := <-op.done // do ends with the node
	if l := r.leader.Load(); l != nil {
		timer := time.NewTimer(exclusiveServeMax)
		defer timer.Stop()
		select {
		case <-l.established:
		case <-l.ctx.Done():
		case <-timer.C:
		}
	}
	return result.index, result.err
}

// run performs the operation. end ends the leadership's scope, begin begins another.
func (op *exclusiveOp) run(end, begin func()) {
	end()
	index, err := op.do()
	begin()
	op.done <- exclusiveResult{index, err}
}
