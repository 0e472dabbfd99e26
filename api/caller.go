package api

import (
	"context"
	"errors"
	"time"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// caller returns a context for a request that may be held for wait. It ends with door.ErrGone when the client, or the
// node that forwarded the request, no longer waits, with nodes.ErrShuttingDown when this server drains, and with a
// *door.KeyEnded when the request's key is no longer valid. end must be called before the request is answered; it
// reports whether the caller has gone. bad refuses the request, because too many of its key are waiting.
func (r *request) caller(wait time.Duration) (ctx context.Context, end func() (gone bool), bad *refuse.Refusal) {
	ctx, cancel := context.WithCancelCause(r.core.serving)
	leave, bad := r.core.shares.Hold(door.ShareWait, r.who.key, r.source(), cancel)
	if bad != nil {
		cancel(nil)
		return nil, nil, bad
	}
	var stop func()
	switch conn := r.http.Conn().(type) {
	case passedConn:
		other := conn.Hold(wait)
		unhook := context.AfterFunc(other, func() { cancel(door.ErrGone) })
		stop = func() {
			if unhook(); other.Err() != nil {
				cancel(door.ErrGone)
			}
		}
	case *door.Conn:
		stop = conn.Watch(cancel)
	}
	return ctx, func() bool {
		if stop != nil {
			stop()
		}
		leave()
		cancel(nil) // no effect if ctx has ended
		return errors.Is(context.Cause(ctx), door.ErrGone)
	}, nil
}

// waitLeft returns how much of wait_ms is left, because another node may have held the request before.
func (r *request) waitLeft(waitMS int64) time.Duration {
	wait := time.Duration(waitMS) * time.Millisecond
	return max(wait-r.hop.passing.Waited-time.Since(r.timing.start), 0)
}

// refuseGone answers a caller that has gone. Only a client that has closed just its sending side will read this; a node
// that forwarded the request is told instead.
func (r *request) refuseGone() {
	r.refuse(refuse.New(wire.CodeInvalidRequest, "The connection was closed while the request waited",
		"Nothing was done: keep the connection open in both directions until the answer has come"))
	r.outcome.label = "gone"
	if conn, ok := r.http.Conn().(passedConn); ok {
		conn.Passed().GivenUp = true
	}
	r.http.Response.SetConnectionClose()
}

// proposeWaiting is proposeTask for a claim that waits. gone says that the caller no longer waits for the answer.
func (r *request) proposeWaiting(cmd command.ClaimNext, wait time.Duration) (p nodes.Proposed, gone, ok bool) {
	r.core.presence.noteClaim(cmd.WorkerID, cmd.Types, r.timing.start)
	caller, end, bad := r.caller(wait)
	if bad != nil {
		r.refuse(bad)
		return p, false, false
	}
	p, err := r.node().Claim(caller, cmd, wait, r.resultReserver(cmd))
	gone = end()
	r.restartDeadline()
	r.core.presence.noteAsked(cmd.Types, r.timing.node) // the worker has been asking until now
	switch {
	case errors.Is(err, door.ErrGone):
		r.refuseGone()
		return p, gone, false
	case err != nil:
		r.refuseError(err)
		return p, gone, false
	}
	if !r.applied(cmd, &p) {
		return p, gone, false
	}
	if p.Result.Code != "" {
		r.refuse(r.refuseResult(cmd, p.Result))
		return p, gone, false
	}
	return p, gone, true
}

// waitEnded waits until the task has ended in this node's state, but at most for wait. ok is false if the request was
// already answered.
func (r *request) waitEnded(id uint64, wait time.Duration) (ok bool) {
	r.endTurn()
	caller, end, bad := r.caller(wait)
	if bad != nil {
		r.refuse(bad)
		return false
	}
	err := r.node().WaitEnded(caller, id, wait)
	gone := end()
	r.restartDeadline()
	switch {
	case gone:
		r.refuseGone()
	case err != nil:
		r.refuseError(err)
	}
	return !gone && err == nil
}

// If the answer to a claim cannot be written, the task would stay claimed without a worker until its lease ends. If
// the worker sent no claim_request_id, with which it could ask again, the claim is released at once by the node that
// answered it, the leader. A node that passed the request on tells the leader whether the answer reached the worker.
//
// The worker may have learned of the claim from another answer meanwhile, if it sent the same request twice. Only the
// log knows which answer came first, so the release is for the first answer, and does nothing if there was another.

// delivery says what to do if the answer cannot be delivered.
type delivery struct {
	holds  []command.Hold // the claims to release
	report func(ok bool)  // tells the leader whether its answer was delivered; nil: it does not ask
}

// noteClaims notes the claims that a command has made without a claim_request_id, so that they are released if the
// answer cannot be delivered.
func (r *request) noteClaims(cmd command.Command, res *fsm.Result) {
	requestID := ""
	switch c := cmd.(type) {
	case command.ClaimNext:
		requestID = c.RequestID
	case command.ClaimTask:
		requestID = c.RequestID
	case command.Complete:
		if c.Claim != nil {
			requestID = c.Claim.RequestID
		}
	case command.Batch:
		if c.RequestID != "" {
			return // each of its claims has an id
		}
		for i := range res.Results {
			r.noteClaims(c.Ops[i], &res.Results[i])
		}
	}
	if requestID != "" || res.Repeated {
		return
	}
	for i := range res.Claims {
		c := &res.Claims[i]
		r.delivery.holds = append(r.delivery.holds, command.Hold{ID: c.Task.ID, WorkerID: c.Task.WorkerID, Token: c.Token})
	}
}

// watchDelivery has the connection report whether the answer is delivered. If it is not, this node releases the claims,
// or tells the leader, which made them.
func (r *request) watchDelivery() {
	report := r.delivery.report
	if holds := r.delivery.holds; len(holds) > 0 {
		s := r.core
		report = func(ok bool) {
			if !ok {
				s.releaseUnsent(holds)
			}
		}
	}
	if r.delivery.report = nil; report == nil {
		return
	}
	switch conn := r.http.Conn().(type) {
	case *door.Conn:
		conn.OnDelivered(report)
	case passedConn:
		conn.Passed().Delivered = report
	}
}

// releaseClaims releases the claims of an answer that will not be delivered, because the caller no longer waits for it
// or there is no memory for it.
func (r *request) releaseClaims() {
	r.core.releaseUnsent(r.delivery.holds)
	r.delivery.holds = nil
	if r.delivery.report != nil {
		r.delivery.report(false)
		r.delivery.report = nil
	}
}

// previousWritten notes that the previous answer on the connection was delivered, because this request came after it.
func (r *request) previousWritten() {
	if conn, ok := r.http.Conn().(*door.Conn); ok {
		conn.Answered()
	}
}

// releaseUnsent releases claims in order. If that fails, they end with their leases.
func (s *core) releaseUnsent(holds []command.Hold) {
	if len(holds) == 0 {
		return
	}
	if err := s.node.Release(s.waits.at(time.Now()), holds); err != nil {
		s.logger.Debug("claims whose answer could not be written were not released", "task_id", holds[0].ID, "count", len(holds), "error", err)
	}
}
