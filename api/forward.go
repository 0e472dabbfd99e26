package api

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/nodes"
)

// A follower is a pipe: it checks what protects itself, which is the origin, the key, its rate, and the bounds of body
// and connection, and passes the request on unchanged. What the two nodes say to each other about it, as
// nodes.Passing and nodes.Passed, is not part of the request, so that no client can say it.

// hop says how a request reached this node.
type hop struct {
	forwarded bool          // another node forwarded it
	passing   nodes.Passing // what that node says of it
}

// passedConn is the connection of a request that another node has passed on.
type passedConn interface {
	net.Conn
	// Passing returns what the other node says of the request.
	Passing() nodes.Passing
	// Passed returns what to say to it about the answer; the request fills it in.
	Passed() *nodes.Passed
	// Hold tells the other node that the request may be held for wait, and returns a context that ends when no caller
	// waits for the answer.
	Hold(wait time.Duration) context.Context
	// OnWritten calls fn once the answer is written, or will never be.
	OnWritten(fn func())
}

// forwardOrRedirect answers a request that only the leader can answer: it forwards it, once, or tells the client the
// leader's address.
func (r *request) forwardOrRedirect() {
	r.endTurn() // the leader gives turns
	r.core.presence.noteElsewhere(r.timing.start)
	switch {
	case r.hop.forwarded:
		r.refuse(refuse.Because(wire.CodeNoLeader))
	case string(r.header(headerRedirect)) == "1":
		r.redirect()
	default:
		r.forward()
	}
}

// redirect answers 307 with the same target at the leader's URL.
func (r *request) redirect() {
	leader := r.node().LeaderHTTPAddr()
	switch {
	case leader == "" && r.target.call.has(withoutLeader):
		r.target.call.run(r) // our own client asks for redirects, and operators want this answer from every node
		return
	case leader == "":
		r.refuse(refuse.Because(wire.CodeNoLeader))
		return
	}
	path, query := splitURI(r.http.Request.Header.RequestURI())
	location := append([]byte(leader), path...)
	if len(query) > 0 {
		location = append(append(location, '?'), query...)
	}
	r.outcome.label = "redirected"
	r.http.Response.Header.SetBytesV("Location", location)
	r.http.SetStatusCode(fasthttp.StatusTemporaryRedirect)
}

// forward forwards the request to the leader and passes on the answer.
func (r *request) forward() {
	in := &r.http.Request
	in.Header.SetBytesV(headerRequestID, r.id)
	h := hold{r: r}
	pass := func() (nodes.Passed, error) {
		ctx := r.ctx()
		if r.target.call.has(extraTime) {
			var cancel context.CancelFunc
			ctx, cancel = r.slowCtx()
			defer cancel()
		}
		passed, err := r.node().Forward(ctx, nodes.Passing{
			From: r.source(), Known: r.who.key != nil, Waited: time.Since(r.timing.start),
			Reserve: func(n int) error { return r.reserveLeadersAnswer(ctx, n) }, Held: h.begin,
		}, in, &r.http.Response)
		if err == nil && r.target.call.sqs && unserved(&r.http.Response) {
			err = nodes.ErrNoLeader
		}
		return passed, err
	}
	passed, err := pass()
	for h.ctx == nil && r.mayAwaitLeader() && errors.Is(err, nodes.ErrNoLeader) && !errors.Is(err, nodes.ErrOutcomeUnknown) {
		if h.bad, err = r.awaitLeader(); err != nil {
			break
		}
		if r.node().IsLeader() {
			r.resetAnswer()
			r.target.call.run(r)
			return
		}
		passed, err = pass()
	}
	gone, cause := h.end()
	gone = gone || errors.Is(err, door.ErrGone)
	r.delivery.report = passed.Delivered
	if gone && r.delivery.report != nil {
		r.releaseClaims()
		passed.GivenUp = true
	}
	switch {
	case err == nil && !passed.GivenUp:
		r.rate.opRefused = passed.OpRefused
		r.forwardDone()
	case gone:
		r.resetAnswer()
		r.refuseGone()
	case h.bad != nil:
		r.resetAnswer()
		r.refuse(h.bad)
	case err == nil:
		r.resetAnswer()
		r.refuseCode(cause)
	default:
		r.resetAnswer()
		r.forwardFailed(err)
	}
}

// forwardDone turns the leader's answer into this node's.
func (r *request) forwardDone() {
	r.outcome.label = "forwarded"
	r.http.Response.Header.SetCanonical(nameRequestID, r.id)
}

// hold is the part of a forwarded request during which the leader may hold it.
type hold struct {
	r      *request
	ctx    context.Context // nil: the leader does not hold it
	cancel context.CancelFunc
	gone   func() bool
	bad    *refuse.Refusal // why it may not wait here
}

// begin counts the request for its key's waits, and watches the client. The context ends when the answer is no longer
// wanted.
func (h *hold) begin(wait time.Duration) context.Context {
	caller, end, bad := h.r.caller(wait)
	if bad != nil {
		h.bad = bad
		caller, end = endedContext, func() bool { return false }
	}
	h.gone = end
	h.ctx, h.cancel = context.WithTimeout(caller, wait+h.r.core.cfg.Wait)
	return h.ctx
}

// end reports whether the client has gone, and otherwise why its answer was no longer wanted.
func (h *hold) end() (gone bool, cause error) {
	if h.ctx == nil {
		return false, nodes.ErrShuttingDown
	}
	if cause = context.Cause(h.ctx); cause == nil {
		cause = nodes.ErrShuttingDown // the node is shutting down and has ended the wait
	}
	h.cancel()
	return h.gone(), cause
}

// endedContext has ended.
var endedContext = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// forwardFailed answers when the leader could not be reached or did not answer. Leaderless calls are answered by this
// node.
func (r *request) forwardFailed(err error) {
	call := r.target.call
	switch {
	case call.has(withoutLeader):
		call.answer(r)
	case errors.Is(err, errAnswersFull) && !call.has(mutation):
		r.refuse(r.core.port.Answers.Full())
	case errors.Is(err, nodes.ErrOutcomeUnknown) && !call.has(mutation) && !timedOut(err):
		r.refuse(refuse.Because(wire.CodeNoLeader))
	default:
		r.refuseCode(err)
	}
}

// timedOut reports whether the wait for the leader's answer took all available time. Then the leader itself is about
// to answer overloaded.
func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// slowCtx returns the context for a slow call.
func (r *request) slowCtx() (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.core.waits.base, slowTime+2*r.core.cfg.Wait)
}
