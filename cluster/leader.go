package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/batch"
	"github.com/claimq/claimq/cluster/clocks"
	"github.com/claimq/claimq/cluster/confirm"
	"github.com/claimq/claimq/cluster/duty"
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

const (
	// barrierTimeout bounds one attempt of the barrier; the leader retries.
	barrierTimeout = 10 * time.Second
	// leaderNotesMax is the capacity of the channel on which Raft reports leadership. Raft
	// blocks when it is full.
	leaderNotesMax = 64
)

var errLeadershipEnded = errors.New("this node's leadership has ended")

// leadership is the scope of one leadership: everything a leader does starts when it is
// gained and has ended when end returns.
type leadership struct {
	node    *Node
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

// monitorLeadership begins and ends leaderships as Raft reports them. It is the only reader
// of n.leaderNotes. A second note that this node leads ends the old scope and begins
// another, because the leadership may have been lost and regained in between.
func (n *Node) monitorLeadership(ctx context.Context) {
	var current *leadership
	end := func() {
		if current != nil {
			current.end()
			current = nil
		}
	}
	defer end()
	for {
		select {
		case <-ctx.Done():
			return
		case leads := <-n.leaderNotes:
			end()
			if leads && ctx.Err() == nil {
				current = n.beginLeadership(ctx)
			}
		case l := <-n.doubted:
			if l != current {
				continue // it has ended
			}
			end()
			if n.raft.State() == raft.Leader && ctx.Err() == nil { // else Raft reports it
				current = n.beginLeadership(ctx)
			}
		case i := <-n.interludes:
			if current == nil {
				i.done <- interludeResult{err: n.notServing()}
				continue
			}
			i.run(end, func() {
				// Otherwise Raft has reported the loss, or is about to.
				if n.raft.State() == raft.Leader && ctx.Err() == nil {
					current = n.beginLeadership(ctx)
				}
			})
		}
	}
}

// beginLeadership starts the scope's goroutines.
func (n *Node) beginLeadership(ctx context.Context) *leadership {
	l := &leadership{node: n, term: n.currentTerm(), established: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.confirm = confirm.NewScope(l.term, func() ([]raft.ServerID, bool, bool) { return n.voters(l.term) }, n.sendHeartbeats)
	l.timers = lease.NewTimers()
	l.wallClocks = clocks.NewWalls(n.logger)
	l.waiters = batch.NewWaiters(batch.WaitersConfig{
		Batcher: n.batcher, Read: l.read, Claimable: l.claimable, Woken: n.stats.fsm.woken, Max: n.cfg.WaitingClaimsMax, MaxBytes: n.cfg.waitingBytes(),
	})
	if n.raft != nil {
		l.confirmer = n.raft.confirmer()
	}
	n.stats.leaderships.Inc()
	n.transferSince.Store(0) // left over from an earlier leadership
	n.leader.Store(l)
	n.logger.Info("leading", "term", l.term)
	l.start(l.run)
	if l.confirmer != nil {
		l.start(func() { l.confirmer.Serve(l.ctx, l.confirm) })
	}
	return l
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

// leadershipError is the error for commands that were queued when a leadership ended.
// Nothing of them was written.
func (n *Node) leadershipError() error {
	if n.closing.Load() {
		return fmt.Errorf("%w: %w", nodes.ErrShuttingDown, errLeadershipEnded)
	}
	return fmt.Errorf("%w: %w", nodes.ErrNotLeader, errLeadershipEnded)
}

// transferStuckMax bounds how long a leader may be in a leadership transfer before that is
// taken for the state in which Raft refuses everything permanently. A transfer takes at
// most two election timeouts.
const transferStuckMax = 30 * time.Second

// observeEntry detects a leader that is stuck in a transfer.
func (n *Node) observeEntry(err error) {
	if !errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		n.transferSince.Store(0)
		return
	}
	now := int64(n.clock.Mono()) + 1 // never 0
	if n.transferSince.CompareAndSwap(0, now) || n.closing.Load() {
		return
	}
	if stuck := time.Duration(now - n.transferSince.Load()); stuck > transferStuckMax {
		n.cfg.Fatal(fmt.Errorf("this node leads, but has been transferring its leadership for %s: it would refuse every write; start it again", stuck))
	}
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

// doubt returns why this node leads but does not serve. It is nil if it serves, does not
// lead, or was just elected.
func (n *Node) doubt() *doubt {
	if l := n.leader.Load(); l != nil {
		return l.doubt.Load()
	}
	return nil
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

// claimable is the state's Claimable at the current time.
func (l *leadership) claimable(m *fsm.Machine, c command.ClaimNext) bool {
	return m.Claimable(c, l.now(m))
}

// run establishes the leadership in this order:
//
//  1. A barrier: everything that an earlier leader committed is applied here.
//  2. The clocks, which continue from that state and from the answers of most voters.
//  3. A tick, so that the newest entry is one of ours.
//  4. Confirmation by a majority of the voters that they have applied the same up to the barrier. The tick
//     has told them that it is committed.
//  5. The feature level, if the cluster is new.
//  6. The lease timers, from what each claim has left by U.
//  7. Proposals and reads.
func (l *leadership) run() {
	n := l.node
	if !l.retry("barrier", l.barrier) {
		return
	}
	applied := n.fsm.NewestChain()
	l.startClocks(n.clockVoters())
	// end may close the batcher just before it is opened below.
	defer func() { n.batcher.Close(n.leadershipError()) }()
	n.batcher.Open(batch.GateInternal, l.clock.Now)
	if !l.retry("first tick", func() error { return l.propose(command.Tick{}) }) {
		return
	}
	if !l.agree(applied) {
		return
	}
	if !l.retry("feature level", l.startLevel) {
		return
	}
	duties := l.startDuties()
	n.batcher.Open(batch.GateOpen, l.clock.Now)
	close(l.established)
	n.logger.Info("serving as leader", "term", l.term)
	l.start(l.runMembers)
	l.start(l.runCheckpoints)
	if n.raft != nil {
		l.start(l.runDisks)
	}
	duties.RunTicks(l.ctx)
}

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
		if !pause.For(l.ctx, duty.RetryInterval) {
			return false
		}
	}
}

func (l *leadership) barrier() error {
	if l.node.raft == nil {
		return nil
	}
	// Raft answers a barrier when the leadership ends; if it does not, the deadline ends
	// the wait.
	done := make(chan error, 1)
	go func() { done <- l.node.raft.Barrier(batch.EnqueueTimeout).Error() }()
	timer := time.NewTimer(barrierTimeout)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("no answer in %s", barrierTimeout)
	}
}

// propose proposes one of the leader's own commands.
func (l *leadership) propose(cmd command.Command) error {
	_, err := l.node.batcher.ProposeOwn(l.ctx, cmd)
	return err
}

// read gives access to the state under its read lock.
func (l *leadership) read(fn func(*fsm.Machine)) { l.node.fsm.Read(fn) }

// startDuties starts timers for the existing claims and, from the same moment on, for new
// ones. It starts all duties except the ticks.
func (l *leadership) startDuties() *duty.Duties {
	n := l.node
	d := duty.New(duty.Config{
		Source: n.clock, Clock: l.clock, Timers: l.timers, Read: l.read, Claims: n.fsm.Claims,
		Propose: n.batcher.ProposeOwn, Knows: n.checkLevel, Space: n.space, Waiters: l.waiters, Zones: n.cfg.Zones,
		TrailBytes: n.cfg.TrailBytes, TrailAge: n.cfg.TrailAge, Logger: n.logger,
	})
	if !n.fsm.Lead(l.ctx, d.Applied, func(m *fsm.Machine) { l.timers.Start(m) }) {
		return d
	}
	for _, run := range []func(context.Context){d.RunLeases, d.RunOpenings, d.RunSchedules} {
		l.start(func() { run(l.ctx) })
	}
	if n.raft != nil {
		l.start(l.runHints)
	}
	return d
}

// votersLow reports whether this node leads and may have no majority without the voters whose disks
// are low.
func (n *Node) votersLow() bool {
	l := n.leader.Load()
	return l != nil && l.disksLow.Load()
}

// runDisks watches the voters' disks until the scope ends.
func (l *leadership) runDisks() {
	n := l.node
	d := &diskWatch{
		uuid: n.uuid, voters: n.votersNow, full: n.space.Disk.Low, applied: n.fsm.AppliedIndex, leave: n.leaveLowDisk,
		ask: func(ctx context.Context, voters []raft.Server) ([]peerStatus, []error) {
			return n.askStatuses(ctx, voters, statusQuestion{})
		},
	}
	d.run(l.ctx, l.disksLow.Store)
}
