package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/batch"
	"github.com/claimq/claimq/cluster/clocks"
	"github.com/claimq/claimq/cluster/confirm"
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// barrierTimeout bounds one attempt of the barrier; the leader retries.
const barrierTimeout = 10 * time.Second

// leaders begins and ends this node's leaderships, one at a time, and starts what a leader does.
type leaders struct {
	*role
	agreement   *agreement
	checkpoints *checkpoints
	clocks      *leaseClocks
	levels      *featureLevels
	checks      *memberChecks
	transfers   *transfers
}

// monitor begins and ends leaderships as Raft reports them. It is the only reader of leaderNotes. A
// second note that this node leads ends the old scope and begins another, because the leadership
// may have been lost and regained in between.
func (ld *leaders) monitor(ctx context.Context) {
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
		case leads := <-ld.leaderNotes:
			end()
			if leads && ctx.Err() == nil {
				current = ld.begin(ctx)
			}
		case l := <-ld.doubted:
			if l != current {
				continue // it has ended
			}
			end()
			if ld.raft.State() == raft.Leader && ctx.Err() == nil { // else Raft reports it
				current = ld.begin(ctx)
			}
		case op := <-ld.exclusiveOps:
			if current == nil {
				op.done <- exclusiveResult{err: ld.notServing()}
				continue
			}
			op.run(end, func() {
				// Otherwise Raft has reported the loss, or is about to.
				if ld.raft.State() == raft.Leader && ctx.Err() == nil {
					current = ld.begin(ctx)
				}
			})
		}
	}
}

// begin starts the scope's goroutines.
func (ld *leaders) begin(ctx context.Context) *leadership {
	l := &leadership{node: ld.role, term: ld.currentTerm(), established: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.confirm = confirm.NewScope(l.term, func() ([]raft.ServerID, bool, bool) { return ld.voters(l.term) }, func() { ld.raft.VerifyLeader() })
	l.timers = lease.NewTimers()
	l.wallClocks = clocks.NewWalls(ld.logger)
	l.waiters = batch.NewWaiters(batch.WaitersConfig{
		Batcher: ld.batcher, Read: l.read, Claimable: l.claimable, Woken: ld.stats.fsm.woken, Max: ld.cfg.WaitingClaimsMax, MaxBytes: ld.cfg.waitingBytes(),
	})
	if ld.raft != nil {
		l.confirmer = ld.raft.confirmer()
	}
	ld.stats.leaderships.Inc()
	ld.transfers.transferSince.Store(0) // left over from an earlier leadership
	ld.leader.Store(l)
	ld.logger.Info("leading", "term", l.term)
	l.start(func() { ld.run(l) })
	if l.confirmer != nil {
		l.start(func() { l.confirmer.Serve(l.ctx, l.confirm) })
	}
	return l
}

// run establishes the leadership in this order:
//
//  1. A barrier: everything that an earlier leader committed is applied here.
//  2. The clocks, which continue from that state and from the answers of most voters.
//  3. A tick, so that the newest entry is one of ours.
//  4. Confirmation by a majority of the voters that they have applied the same up to the barrier. The tick
//     has told them that it is committed. Their answers have their wall clocks, too, so that nothing is
//     proposed while the calendar goes by monotonic time: it may be behind by as long as there was no leader,
//     in a new cluster by decades, and a task that ended then would be removed as soon as it is set right.
//  5. The feature level, if the cluster is new.
//  6. The lease timers, from what each claim has left by U.
//  7. Proposals and reads.
func (ld *leaders) run(l *leadership) {
	if !l.retry("barrier", l.barrier) {
		return
	}
	applied := ld.fsm.NewestChain()
	voters, others := ld.clockVoters()
	ld.clocks.start(l, voters, others)
	// end may close the batcher just before it is opened below.
	defer func() { ld.batcher.Close(ld.leadershipError()) }()
	ld.batcher.Open(batch.GateInternal, l.clock.Now)
	if !l.retry("first tick", func() error { return l.propose(command.Tick{}) }) {
		return
	}
	if !ld.agreement.agree(l, applied) {
		return
	}
	ld.clocks.followWalls(l)
	if !l.retry("feature level", func() error { return ld.levels.startLevel(l) }) {
		return
	}
	duties := ld.startDuties(l)
	ld.batcher.Open(batch.GateOpen, l.clock.Now)
	close(l.established)
	ld.logger.Info("serving as leader", "term", l.term)
	l.start(func() { ld.checks.run(l) })
	l.start(func() { ld.checkpoints.run(l) })
	if ld.raft != nil {
		l.start(func() { ld.runDisks(l) })
	}
	duties.runTicks()
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

// startDuties starts timers for the existing claims and, from the same moment on, for new
// ones. It starts all duties except the ticks.
func (ld *leaders) startDuties(l *leadership) *duties {
	d := newDuties(l)
	if !ld.fsm.Lead(l.ctx, d.applied, func(m *fsm.Machine) { l.timers.Start(m) }) {
		return d
	}
	l.start(d.watchLeases)
	l.start(d.runOpenings)
	l.start(d.runSchedules)
	if ld.raft != nil {
		l.start(func() { ld.clocks.runHints(l) })
	}
	return d
}

// runDisks watches the voters' disks until the scope ends.
func (ld *leaders) runDisks(l *leadership) {
	d := &voterDisks{
		uuid: ld.uuid, voters: ld.votersNow, full: ld.space.Disk.Low, applied: ld.fsm.AppliedIndex, leave: ld.transfers.leaveLowDisk,
		ask: func(ctx context.Context, voters []raft.Server) ([]peerStatus, []error) {
			return ld.agreement.askStatuses(ctx, voters, statusQuestion{})
		},
	}
	d.run(l.ctx, l.disksLow.Store)
}
