package exchange

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/nodes"
)

// Elsewhere answers a request that only the leader can answer: it forwards it, once, or tells the client the leader's
// address.
func (r *Request) Elsewhere() {
	r.endTurn() // the leader gives turns
	r.Server.AtWork.NoteElsewhere(r.Start)
	switch {
	case r.Forwarded:
		r.Refuse(refuse.Because(wire.CodeNoLeader))
	case string(r.HTTP.Request.Header.Peek(headerRedirect)) == "1":
		r.redirect()
	default:
		r.forward()
	}
}

// redirect answers 307 with the same target at the leader's URL.
func (r *Request) redirect() {
	leader := r.Server.Node.LeaderHTTPAddr()
	switch {
	case leader == "" && r.Target.call.Has(Leaderless):
		r.Target.call.answer(r) // our own client asks for redirects, and operators want this answer from every node
		return
	case leader == "":
		r.Refuse(refuse.Because(wire.CodeNoLeader))
		return
	}
	path, query := SplitURI(r.HTTP.Request.Header.RequestURI())
	location := append([]byte(leader), path...)
	if len(query) > 0 {
		location = append(append(location, '?'), query...)
	}
	r.Label = "redirected"
	r.HTTP.Response.Header.SetBytesV("Location", location)
	r.HTTP.SetStatusCode(fasthttp.StatusTemporaryRedirect)
}

// forwardPath is the path of every forwarded request.
const forwardPath = "/api/forward"

// SetForward sets the method and target of a request to forward.
func SetForward(req *fasthttp.Request, method, target []byte) {
	req.Header.SetMethodBytes(method)
	// The client's target is sent only in a header. As a path it would be normalized, possibly into one that only
	// nodes may call.
	req.SetRequestURI(forwardPath)
	req.Header.SetHost("claimq")
	req.Header.SetBytesV(HeaderTarget, target)
	req.Header.SetContentType("application/json")
}

// forward forwards the request to the leader and passes on the answer.
func (r *Request) forward() {
	in := &r.HTTP.Request
	out := fasthttp.AcquireRequest()
	defer fasthttp.ReleaseRequest(out)
	method := in.Header.Method()
	if in.Header.IsHead() {
		method = []byte(fasthttp.MethodGet) // this node leaves the body out itself
	}
	SetForward(out, method, in.Header.RequestURI())
	out.Header.SetBytesV(HeaderRequestID, r.ID)
	if v := in.Header.Peek(headerMinIndex); len(v) > 0 {
		out.Header.SetBytesV(headerMinIndex, v)
	}
	if v := in.Header.Peek(headerTraceparent); len(v) > 0 && wire.ValidTraceparent(v) {
		out.Header.SetBytesV(headerTraceparent, v)
	}
	r.passKey(out)
	passSource(out, r.Source())
	out.SetBodyRaw(in.Body())
	if r.Asks.After(r.Start) {
		r.setWaited(out)
	}
	if held := r.Target.call.Held; held != nil {
		if wait := held(r); wait > 0 {
			r.forwardWaiting(wait, out)
			return
		}
	}
	ctx := r.Wait()
	if r.Target.call.Has(Slow) {
		var cancel context.CancelFunc
		ctx, cancel = r.ActionWait()
		defer cancel()
	}
	room := func(n int) error {
		r.Holds = ParseHolds(r.HTTP.Response.Header.Peek(HeaderHolds)) // in case the body does not arrive
		return r.roomForLeaders(ctx, n)
	}
	if err := r.Server.Node.Forward(ctx, out, &r.HTTP.Response, room); err != nil {
		r.GiveBack()
		r.ResetAnswer()
		r.forwardFailed(err)
		return
	}
	r.forwardDone()
}

// forwardDone turns the leader's answer into this node's.
func (r *Request) forwardDone() {
	r.Label = "forwarded"
	h := &r.HTTP.Response.Header
	if holds := h.Peek(HeaderHolds); len(holds) > 0 {
		r.Holds = ParseHolds(holds)
		h.Del(HeaderHolds)
	}
	if len(h.Peek(HeaderOpRefused)) > 0 {
		r.OpRefused = true
		h.Del(HeaderOpRefused)
	}
	h.ResetConnectionClose()
	h.Del(fasthttp.HeaderServer) // of the peer port
	h.SetCanonical(nameRequestID, r.ID)
}

// setWaited tells the leader how long the request has waited already.
func (r *Request) setWaited(out *fasthttp.Request) {
	out.Header.SetBytesV(HeaderWaited, strconv.AppendInt(nil, time.Since(r.Start).Milliseconds(), 10))
}

// forwardWaiting forwards a request that the leader may hold for wait. If the client goes, or this server drains, the
// leader is told.
func (r *Request) forwardWaiting(wait time.Duration, out *fasthttp.Request) {
	r.setWaited(out)
	caller, end, ok := r.caller()
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(caller, wait+r.Server.Cfg.Wait)
	defer cancel()
	resp := &r.HTTP.Response
	err := r.Server.Node.ForwardWaiting(ctx, out, resp)
	cause := context.Cause(ctx)
	if cause == nil {
		cause = nodes.ErrShuttingDown // the node is shutting down and has ended the wait
	}
	gone := end()
	givenUp := err == nil && len(resp.Header.Peek(HeaderGivenUp)) > 0
	if err == nil && !givenUp {
		r.forwardDone()
		if !gone || len(r.Holds) == 0 {
			return
		}
		r.GiveBack()
	}
	r.ResetAnswer()
	switch {
	case gone:
		r.RefuseGone()
	case givenUp:
		r.RefuseCode(cause)
	default:
		r.forwardFailed(err)
	}
}

// forwardFailed answers when the leader could not be reached or did not answer. Leaderless calls are answered by this
// node.
func (r *Request) forwardFailed(err error) {
	call := r.Target.call
	switch {
	case call.Has(Leaderless):
		call.answer(r)
	case errors.Is(err, errAnswersFull) && !call.Has(Mutation):
		r.Refuse(r.Server.Port.Answers.Full())
	case errors.Is(err, nodes.ErrOutcomeUnknown) && !call.Has(Mutation) && !timedOut(err):
		r.Refuse(refuse.Because(wire.CodeNoLeader))
	default:
		r.RefuseCode(err)
	}
}

// timedOut reports whether the wait for the leader's answer took all available time. Then the leader itself is about
// to answer overloaded.
func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// ActionWait returns the context for a slow call.
func (r *Request) ActionWait() (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Server.Waits.base, SlowTime+2*r.Server.Cfg.Wait)
}
