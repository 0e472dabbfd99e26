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

// writes proposes commands, and answers those that would change nothing without writing.
type writes struct{ *reads }

// Propose replicates cmd and returns the outcome once it is on a
// quorum's disks and applied here. ctx ends the caller's wait, not the command.
// Errors: nodes.ErrNotLeader, nodes.ErrNoLeader, nodes.ErrOverloaded,
// nodes.ErrShuttingDown, nodes.ErrTooLarge, nodes.ErrLevel (nothing was written);
// nodes.ErrOutcomeUnknown (it may be applied, now or later).
func (w *writes) Propose(ctx context.Context, cmd command.Command) (nodes.Proposed, error) {
	if w.closing.Load() {
		return nodes.Proposed{}, nodes.ErrShuttingDown
	}
	if err := w.checkLevel(cmd); err != nil {
		return nodes.Proposed{}, err
	}
	if err := w.space.Room(cmd); err != nil {
		return nodes.Proposed{}, err
	}
	switch c := cmd.(type) {
	case command.ClaimNext:
		if p, done, err := w.claimNothing(ctx, c); done {
			w.endWaits(c, p, err)
			return p, err
		}
		p, err := w.batcher.Propose(ctx, cmd)
		w.tellRepeats(c, err)
		return p, err
	}
	if fsm.IsJudged(cmd) {
		if p, done, err := w.judge(ctx, cmd); done {
			return p, err
		}
	}
	return w.batcher.Propose(ctx, w.space.Shorten(cmd))
}

// Claim is Propose for a claim that waits up to wait until there is something to claim, in
// order of arrival. Nothing is written while it waits. The same request (RequestID) without
// a wait ends the waiting ones if there is nothing for it. caller should end when the
// answer is no longer wanted: a waiting claim then takes nothing, but a claim that is
// already in an entry is still answered, so that its tasks can be given back. room, if not
// nil, takes memory for the result before the claim is proposed; give is called if the claim
// waits again. Errors: those of Propose and of room; nodes.ErrNotLeader and
// nodes.ErrNoLeader if the leadership ended meanwhile; caller's cause if the claim was given
// up.
func (w *writes) Claim(caller context.Context, cmd command.ClaimNext, wait time.Duration, room func(context.Context) (give func(), err error)) (nodes.Proposed, error) {
	if w.closing.Load() {
		return nodes.Proposed{}, nodes.ErrShuttingDown
	}
	if err := w.checkLevel(cmd); err != nil {
		return nodes.Proposed{}, err
	}
	if wait <= 0 {
		p, err := w.claimNow(caller, cmd, room)
		w.endWaits(cmd, p, err)
		return p, err
	}
	l := w.leader.Load()
	if l == nil || !l.serves() {
		return nodes.Proposed{}, w.notServing()
	}
	p, timedOut, err := l.waiters.Wait(caller, cmd, wait, room)
	if timedOut {
		return w.claimNow(caller, cmd, room)
	}
	return p, err
}

// claimNow claims what is there now, or answers, after confirming it, that there is
// nothing.
func (w *writes) claimNow(caller context.Context, cmd command.ClaimNext, room func(context.Context) (give func(), err error)) (nodes.Proposed, error) {
	ctx, cancel := context.WithTimeout(caller, batch.OutcomeTimeout)
	defer cancel()
	p, done, err := w.claimNothing(ctx, cmd)
	switch {
	case caller.Err() != nil && err != nil:
		return nodes.Proposed{}, context.Cause(caller)
	case done:
		return p, err
	}
	if room != nil {
		if _, err := room(caller); err != nil {
			return nodes.Proposed{}, err
		}
	}
	p, err = w.batcher.ProposeToEnd(caller, cmd)
	w.tellRepeats(cmd, err)
	return p, err
}

// endWaits ends the waiting claims of the same request as one that did not wait and found
// nothing.
func (w *writes) endWaits(cmd command.ClaimNext, p nodes.Proposed, err error) {
	if l := w.leader.Load(); l != nil && err == nil && cmd.RequestID != "" && len(p.Result.Claims) == 0 {
		l.waiters.EndWaits(cmd.RequestID)
	}
}

// tellRepeats tells waiting claims with the same request that it was answered without
// waiting, because their answer is known now.
func (w *writes) tellRepeats(cmd command.ClaimNext, err error) {
	if l := w.leader.Load(); l != nil && err == nil && cmd.RequestID != "" {
		l.waiters.Answered(cmd.RequestID)
	}
}

// claimNothing answers a claim that finds nothing, without writing. done is false if there
// seems to be something to claim, as far as this node can tell without a majority; the log
// decides whether the claim gets it.
func (w *writes) claimNothing(ctx context.Context, c command.ClaimNext) (p nodes.Proposed, done bool, err error) {
	claimable := false
	w.fsm.Read(func(m *fsm.Machine) { claimable = m.Claimable(c, w.fsm.Estimate(m)) })
	if claimable {
		return p, false, nil
	}
	p.Index, err = w.ReadLinearizable(ctx, 0, func(m *fsm.Machine, now fsm.Stamp) {
		claimable = m.Claimable(c, now)
		p.Stamp = now
	})
	if err != nil {
		return nodes.Proposed{}, true, unread(ctx, err)
	}
	return p, !claimable, nil
}

// judge answers a command that would change nothing, without writing. done is false if it
// would or might change something, as far as this node can tell without a majority.
//
// It also takes into account what is in this leader's log but not yet answered, for
// instance a claim that would make the command valid.
func (w *writes) judge(ctx context.Context, cmd command.Command) (p nodes.Proposed, done bool, err error) {
	w.fsm.Read(func(m *fsm.Machine) { _, done = m.Judge(cmd, m.Stamp()) })
	if !done {
		return p, false, nil
	}
	p.Index, err = w.ReadLinearizable(ctx, w.lastApplicable(w.lastIndex()), func(m *fsm.Machine, now fsm.Stamp) {
		p.Result, done = m.Judge(cmd, now)
		p.Stamp = now
	})
	if err != nil {
		return nodes.Proposed{}, true, unread(ctx, err)
	}
	return p, done, nil
}

// unread returns the error of a command that should have been answered by a read, which failed
// with err.
func unread(ctx context.Context, err error) error {
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
func (w *writes) Release(ctx context.Context, holds []command.Hold) error {
	for len(holds) > 0 {
		some := holds[:min(len(holds), releasesMax)]
		holds = holds[len(some):]
		_, err := w.Propose(ctx, releaseOf(some))
		if errors.Is(err, nodes.ErrNotLeader) {
			err = w.releaseThere(ctx, some)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// releaseThere makes the leader release claims.
func (w *writes) releaseThere(ctx context.Context, holds []command.Hold) error {
	if w.raft == nil {
		return nodes.ErrNoLeader
	}
	addr, id := w.raft.LeaderWithID()
	if id == "" || string(id) == w.uuid {
		return nodes.ErrNoLeader
	}
	if _, err := ask[struct{}](ctx, w.core, string(addr), callRelease, holds); err != nil {
		return fmt.Errorf("ask the leader for a release: %w", err)
	}
	return nil
}

// answerRelease releases claims for another node, if this one leads. Each is named by its token,
// which only the node that answered its claim knows.
func (w *writes) answerRelease(ctx context.Context, body []byte) ([]byte, error) {
	holds, err := peer.ReadQuestion[[]command.Hold](body)
	switch {
	case err != nil:
		return nil, err
	case len(holds) == 0 || len(holds) > releasesMax:
		return nil, peer.QuestionError(fmt.Sprintf("%d claims, want 1 to %d", len(holds), releasesMax))
	}
	if _, err := w.Propose(ctx, releaseOf(holds)); err != nil {
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
