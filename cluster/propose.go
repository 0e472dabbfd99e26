package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claimq/claimq/cluster/batch"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// proposals proposes commands, and answers those that would change nothing without writing.
type proposals struct{ *reads }

// Propose replicates cmd and returns the outcome once it is on a quorum's disks and applied here.
// A command that would change nothing is answered by a linearizable read instead. ctx ends the
// caller's wait, not the command. Errors: nodes.ErrNotLeader, nodes.ErrNoLeader,
// nodes.ErrOverloaded, nodes.ErrShuttingDown, nodes.ErrTooLarge, nodes.ErrLevel (nothing was
// written); nodes.ErrOutcomeUnknown (it may be applied, now or later).
func (pr *proposals) Propose(ctx context.Context, cmd command.Command) (nodes.Proposed, error) {
	if pr.closing.Load() {
		return nodes.Proposed{}, nodes.ErrShuttingDown
	}
	if err := pr.checkLevel(cmd); err != nil {
		return nodes.Proposed{}, err
	}
	if err := pr.space.Admit(cmd); err != nil {
		return nodes.Proposed{}, err
	}
	if c, ok := cmd.(command.ClaimNext); ok {
		if p, done, err := pr.answerEmpty(ctx, c); done {
			pr.endWaits(c, p, err)
			return p, err
		}
		p, err := pr.batcher.Propose(ctx, cmd)
		pr.wakeRepeats(c, err)
		return p, err
	}
	if fsm.IsJudged(cmd) {
		if p, done, err := pr.answerJudged(ctx, cmd); done {
			return p, err
		}
	}
	return pr.batcher.Propose(ctx, pr.space.Shorten(cmd))
}

// Claim is Propose for a claim that waits up to wait until there is something to claim, in order
// of arrival. Nothing is written while it waits. The same request (RequestID) without a wait ends
// the waiting ones if there is nothing for it. caller should end when the answer is no longer
// wanted: a waiting claim then takes nothing, but a claim that is already in an entry is still
// answered, so that its tasks can be released. reserve, if not nil, reserves memory for the result
// before the claim is proposed; free is called if the claim waits again. Errors: those of Propose
// and of reserve; nodes.ErrNotLeader and nodes.ErrNoLeader if the leadership ended meanwhile;
// caller's cause if the claim was given up.
func (pr *proposals) Claim(caller context.Context, cmd command.ClaimNext, wait time.Duration, reserve func(context.Context) (free func(), err error)) (nodes.Proposed, error) {
	if pr.closing.Load() {
		return nodes.Proposed{}, nodes.ErrShuttingDown
	}
	if err := pr.checkLevel(cmd); err != nil {
		return nodes.Proposed{}, err
	}
	if wait <= 0 {
		p, err := pr.claimNow(caller, cmd, reserve)
		pr.endWaits(cmd, p, err)
		return p, err
	}
	l := pr.leader.Load()
	if l == nil || !l.serves() {
		return nodes.Proposed{}, pr.notServing()
	}
	p, timedOut, err := l.waiters.Wait(caller, cmd, wait, reserve)
	if timedOut {
		return pr.claimNow(caller, cmd, reserve)
	}
	return p, err
}

// claimNow claims without waiting: at once, or at the end of a wait.
func (pr *proposals) claimNow(caller context.Context, cmd command.ClaimNext, reserve func(context.Context) (free func(), err error)) (nodes.Proposed, error) {
	ctx, cancel := context.WithTimeout(caller, batch.OutcomeTimeout)
	defer cancel()
	p, done, err := pr.answerEmpty(ctx, cmd)
	switch {
	case caller.Err() != nil && err != nil:
		return nodes.Proposed{}, context.Cause(caller)
	case done:
		return p, err
	}
	if reserve != nil {
		if _, err := reserve(caller); err != nil {
			return nodes.Proposed{}, err
		}
	}
	p, err = pr.batcher.ProposeToEnd(caller, cmd)
	pr.wakeRepeats(cmd, err)
	return p, err
}

// endWaits ends the waiting claims of the same request as one that did not wait and found
// nothing.
func (pr *proposals) endWaits(cmd command.ClaimNext, p nodes.Proposed, err error) {
	if l := pr.leader.Load(); l != nil && err == nil && cmd.RequestID != "" && len(p.Result.Claims) == 0 {
		l.waiters.EndWaits(cmd.RequestID)
	}
}

// wakeRepeats proposes the waiting claims of the same request as one that was answered without
// waiting, because their answer is known now.
func (pr *proposals) wakeRepeats(cmd command.ClaimNext, err error) {
	if l := pr.leader.Load(); l != nil && err == nil && cmd.RequestID != "" {
		l.waiters.Answered(cmd.RequestID)
	}
}

// answerEmpty answers a claim that finds nothing by a linearizable read. done is false if this
// node's state has something to claim; the log then decides whether the claim gets it.
func (pr *proposals) answerEmpty(ctx context.Context, c command.ClaimNext) (p nodes.Proposed, done bool, err error) {
	claimable := false
	pr.fsm.Read(func(m *fsm.Machine) { claimable = m.Claimable(c, pr.fsm.Estimate(m)) })
	if claimable {
		return p, false, nil
	}
	p.Index, err = pr.ReadLinearizable(ctx, 0, func(m *fsm.Machine, now fsm.Stamp) {
		claimable = m.Claimable(c, now)
		p.Stamp = now
	})
	if err != nil {
		return nodes.Proposed{}, true, readFailed(ctx, err)
	}
	return p, !claimable, nil
}

// answerJudged answers a command that is refused or repeated, and so changes nothing, by a
// linearizable read. done is false if it might change something.
//
// The read also waits for the entries in this leader's log that are not applied yet: one of them
// may hold the claim that makes the command valid.
func (pr *proposals) answerJudged(ctx context.Context, cmd command.Command) (p nodes.Proposed, done bool, err error) {
	pr.fsm.Read(func(m *fsm.Machine) { _, done = m.Judge(cmd, m.Stamp()) })
	if !done {
		return p, false, nil
	}
	p.Index, err = pr.ReadLinearizable(ctx, pr.lastApplicable(pr.lastIndex()), func(m *fsm.Machine, now fsm.Stamp) {
		p.Result, done = m.Judge(cmd, now)
		p.Stamp = now
	})
	if err != nil {
		return nodes.Proposed{}, true, readFailed(ctx, err)
	}
	return p, done, nil
}

// readFailed returns the error of a command that should have been answered by a read, which failed
// with err.
func readFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", nodes.ErrNoLeader, err)
	}
	return err
}

// callRelease is the call by which a node has the leader release claims: []command.Hold → {}.
const callRelease = "release"

// releasesMax bounds the claims that one command releases.
const releasesMax = 1_000

// Release releases claims whose first answer could not be delivered, here or through the leader. A
// claim whose worker has learned of it by another answer is kept. Errors: those of Propose, or of a
// call.
func (pr *proposals) Release(ctx context.Context, holds []command.Hold) error {
	for len(holds) > 0 {
		some := holds[:min(len(holds), releasesMax)]
		holds = holds[len(some):]
		_, err := pr.Propose(ctx, releaseOf(some))
		if errors.Is(err, nodes.ErrNotLeader) {
			err = pr.releaseThere(ctx, some)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// releaseThere makes the leader release claims.
func (pr *proposals) releaseThere(ctx context.Context, holds []command.Hold) error {
	if pr.raft == nil {
		return nodes.ErrNoLeader
	}
	addr, id := pr.raft.LeaderWithID()
	if id == "" || string(id) == pr.uuid {
		return nodes.ErrNoLeader
	}
	if _, err := ask[struct{}](ctx, pr.core, string(addr), callRelease, holds); err != nil {
		return fmt.Errorf("ask the leader for a release: %w", err)
	}
	return nil
}

// answerRelease releases claims for another node, if this one leads. Each is named by its token,
// which only the node that answered its claim knows.
func (pr *proposals) answerRelease(ctx context.Context, body []byte) ([]byte, error) {
	holds, err := peer.ReadQuestion[[]command.Hold](body)
	switch {
	case err != nil:
		return nil, err
	case len(holds) == 0 || len(holds) > releasesMax:
		return nil, peer.QuestionError(fmt.Sprintf("%d claims, want 1 to %d", len(holds), releasesMax))
	}
	if _, err := pr.Propose(ctx, releaseOf(holds)); err != nil {
		return nil, err
	}
	return []byte("{}"), nil
}

// releaseOf returns the command that releases claims.
func releaseOf(holds []command.Hold) command.Command {
	ops := make([]command.Command, len(holds))
	for i, h := range holds {
		ops[i] = command.Release{Hold: h, Answer: command.FirstAnswer}
	}
	if len(ops) == 1 {
		return ops[0]
	}
	return command.Batch{Ops: ops}
}
