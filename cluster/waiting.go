package cluster

import (
	"context"
	"time"

	"github.com/claimq/claimq/cluster/batch"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Claim is Propose of a claim that waits up to wait until there is something to
// claim, in order of arrival. While it waits nothing is written. The same request
// (RequestID) without a wait ends those that wait, if there is nothing for it. caller ends
// when nobody wants the answer any more: a claim that waits then takes nothing;
// one that is in an entry already is answered all the same, so that its tasks
// can be given back. Errors: Propose's; fsm.ErrNotLeader and fsm.ErrNoLeader when
// the leadership ended meanwhile; caller's cause when it was given up.
func (n *Node) Claim(caller context.Context, cmd command.ClaimNext, wait time.Duration) (nodes.Proposed, error) {
	if n.closing.Load() {
		return nodes.Proposed{}, nodes.ErrShuttingDown
	}
	if err := n.checkLevel(cmd); err != nil {
		return nodes.Proposed{}, err
	}
	if wait <= 0 {
		p, err := n.claimNow(caller, cmd)
		n.endWaits(cmd, p, err)
		return p, err
	}
	l := n.leader.Load()
	if l == nil || !l.serves() {
		return nodes.Proposed{}, n.notServing()
	}
	p, timedOut, err := l.waiters.Wait(caller, cmd, wait)
	if timedOut {
		return n.claimNow(caller, cmd)
	}
	return p, err
}

// claimNow claims what is there now, or answers that nothing is, confirmed.
func (n *Node) claimNow(caller context.Context, cmd command.ClaimNext) (nodes.Proposed, error) {
	ctx, cancel := context.WithTimeout(caller, batch.OutcomeTimeout)
	defer cancel()
	p, done, err := n.claimNothing(ctx, cmd)
	switch {
	case caller.Err() != nil && err != nil:
		return nodes.Proposed{}, context.Cause(caller)
	case done:
		return p, err
	}
	p, err = n.batcher.ProposeToEnd(caller, cmd)
	n.tellRepeats(cmd, err)
	return p, err
}

// endWaits has the claims answered that wait and are of the same request as one that did
// not wait and found nothing.
func (n *Node) endWaits(cmd command.ClaimNext, p nodes.Proposed, err error) {
	if l := n.leader.Load(); l != nil && err == nil && cmd.RequestID != "" && len(p.Result.Claims) == 0 {
		l.waiters.EndWaits(cmd.RequestID)
	}
}

// tellRepeats tells those who wait that a claim was answered that did not wait:
// the same request, sent before or after it, has its answer now.
func (n *Node) tellRepeats(cmd command.ClaimNext, err error) {
	if l := n.leader.Load(); l != nil && err == nil && cmd.RequestID != "" {
		l.waiters.Answered(cmd.RequestID)
	}
}
