package exchange

import (
	"context"
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/lasting"
	"github.com/claimq/claimq/api/port"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// callerConn is a connection of the peer port through which the other node reports that the caller of a request has
// gone.
type callerConn interface {
	// Caller returns a context that ends when no caller waits for the answer.
	Caller() context.Context
}

// caller returns a context for a request that may be held for long. It ends with port.ErrGone when the client, or the
// node that forwarded the request, no longer waits, with nodes.ErrShuttingDown when this server drains, and with a
// *lasting.Ended when the request's key is no longer valid. end must be called before the request is answered; it
// reports whether the caller has gone. ok is false if the request was already answered, because too many requests of
// the key are waiting.
func (r *Request) caller() (ctx context.Context, end func() (gone bool), ok bool) {
	ctx, cancel := context.WithCancelCause(r.Server.Serving)
	leave, bad := r.Server.Shares.Hold(lasting.Wait, r.Who, r.Source(), cancel)
	if bad != nil {
		cancel(nil)
		r.Refuse(bad)
		return nil, nil, false
	}
	var stop func()
	switch conn := r.HTTP.Conn().(type) {
	case callerConn:
		other := conn.Caller()
		unhook := context.AfterFunc(other, func() { cancel(port.ErrGone) })
		stop = func() {
			if unhook(); other.Err() != nil {
				cancel(port.ErrGone)
			}
		}
	case *port.Conn:
		stop = conn.Watch(cancel)
	}
	return ctx, func() bool {
		if stop != nil {
			stop()
		}
		leave()
		cancel(nil) // no effect if ctx has ended
		return errors.Is(context.Cause(ctx), port.ErrGone)
	}, true
}

// WaitLeft returns how much of wait_ms is left, because another node may have held the request before.
func (r *Request) WaitLeft(waitMS int64) time.Duration {
	wait := time.Duration(waitMS) * time.Millisecond
	if r.Forwarded {
		waited, err := fasthttp.ParseUint(r.HTTP.Request.Header.Peek(HeaderWaited))
		if err == nil {
			wait -= time.Duration(waited) * time.Millisecond
		}
	}
	return max(wait-time.Since(r.Start), 0)
}

// RefuseGone answers a caller that has gone. Only a client that has closed just its sending side will read this.
func (r *Request) RefuseGone() {
	r.Refuse(refuse.New(wire.CodeInvalidRequest, "The connection was closed while the request waited",
		"Nothing was done: keep the connection open in both directions until the answer has come"))
	r.Label = "gone"
	if r.Forwarded {
		r.HTTP.Response.Header.Set(HeaderGivenUp, "1")
		return
	}
	r.HTTP.Response.SetConnectionClose()
}

// ProposeWaiting is ProposeTask for a claim that waits. gone says that the caller no longer waits for the answer.
func (r *Request) ProposeWaiting(cmd command.ClaimNext, wait time.Duration) (p nodes.Proposed, gone, ok bool) {
	r.Server.AtWork.NoteClaim(cmd.WorkerID, cmd.Types, r.Start)
	caller, end, ok := r.caller()
	if !ok {
		return p, false, false
	}
	p, err := r.Server.Node.Claim(caller, cmd, wait, r.roomOf(cmd))
	gone = end()
	r.Asks = time.Now()
	r.Server.AtWork.NoteAsked(cmd.Types, r.Asks) // the worker has been asking until now
	switch {
	case errors.Is(err, port.ErrGone):
		r.RefuseGone()
		return p, gone, false
	case err != nil:
		r.RefuseError(err)
		return p, gone, false
	}
	r.release = p.Release
	r.SetIndex(p.Index)
	r.holdUntilSent(cmd, &p.Result)
	r.narrow(&p)
	if !r.roomForResult(&p.Result) {
		return p, gone, false
	}
	if p.Result.Code != "" {
		r.Refuse(r.RefuseResult(cmd, p.Result))
		return p, gone, false
	}
	return p, gone, true
}

// WaitEnded waits until the task has ended in this node's state, but at most for wait. ok is false if the request was
// already answered.
func (r *Request) WaitEnded(id uint64, wait time.Duration) (ok bool) {
	r.endTurn()
	caller, end, ok := r.caller()
	if !ok {
		return false
	}
	err := r.Server.Node.WaitEnded(caller, id, wait)
	gone := end()
	r.Asks = time.Now()
	switch {
	case gone:
		r.RefuseGone()
	case err != nil:
		r.RefuseError(err)
	}
	return !gone && err == nil
}
