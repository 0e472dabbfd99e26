package api

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// elsewhere answers a request that only the leader can answer: by passing it
// on, once, or by saying where the leader is.
func (r *request) elsewhere() {
	r.server.atWork.NoteElsewhere(r.start)
	switch {
	case r.forwarded:
		r.refuse(refuse.Because(wire.CodeNoLeader))
	case string(r.http.Request.Header.Peek(headerRedirect)) == "1":
		r.redirect()
	default:
		r.forward()
	}
}

// redirect answers 307 with the leader's URL for the same target.
func (r *request) redirect() {
	leader := r.server.node.LeaderHTTPAddr()
	switch {
	case leader == "" && r.target.call.has(leaderless):
		r.target.call.answer(r) // our own client asks for redirects, and an operator wants to see this of all
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
	r.label = "redirected"
	r.http.Response.Header.SetBytesV("Location", location)
	r.http.SetStatusCode(fasthttp.StatusTemporaryRedirect)
}

// forwardPath is the path of every request passed on.
const forwardPath = "/api/forward"

// setForward makes req one that is passed on.
func setForward(req *fasthttp.Request, method, target []byte) {
	req.Header.SetMethodBytes(method)
	// The client's target travels in a header only: as a path it would be
	// normalized, perhaps into one that only nodes may call.
	req.SetRequestURI(forwardPath)
	req.Header.SetHost("claimq")
	req.Header.SetBytesV(headerTarget, target)
	req.Header.SetContentType("application/json")
}

// forward passes the request on to the leader and answers what it answered.
func (r *request) forward() {
	in := &r.http.Request
	out := fasthttp.AcquireRequest()
	defer fasthttp.ReleaseRequest(out)
	method := in.Header.Method()
	if in.Header.IsHead() {
		method = []byte(fasthttp.MethodGet) // our own answer leaves the body out
	}
	setForward(out, method, in.Header.RequestURI())
	out.Header.SetBytesV(headerRequestID, r.id)
	if v := in.Header.Peek(headerMinIndex); len(v) > 0 {
		out.Header.SetBytesV(headerMinIndex, v)
	}
	if v := in.Header.Peek(headerTraceparent); len(v) > 0 && wire.ValidTraceparent(v) {
		out.Header.SetBytesV(headerTraceparent, v)
	}
	r.passKey(out)
	passSource(out, r.source())
	out.SetBodyRaw(in.Body())
	if r.asks.After(r.start) {
		r.setWaited(out)
	}
	if held := r.target.call.held; held != nil {
		if wait := held(r); wait > 0 {
			r.forwardWaiting(wait, out)
			return
		}
	}
	ctx := r.wait()
	if r.target.call.has(slow) {
		var cancel context.CancelFunc
		ctx, cancel = r.actionWait()
		defer cancel()
	}
	room := func(n int) error { return r.roomForLeaders(ctx, n) }
	if err := r.server.node.Forward(ctx, out, &r.http.Response, room); err != nil {
		r.resetAnswer()
		r.forwardFailed(err)
		return
	}
	r.forwardDone()
}

// forwardDone makes the leader's answer this node's.
func (r *request) forwardDone() {
	r.label = "forwarded"
	h := &r.http.Response.Header
	if holds := h.Peek(headerHolds); len(holds) > 0 {
		r.holds = parseHolds(holds)
		h.Del(headerHolds)
	}
	if len(h.Peek(headerOpRefused)) > 0 {
		r.opRefused = true
		h.Del(headerOpRefused)
	}
	h.ResetConnectionClose()
	h.Del(fasthttp.HeaderServer) // the peer port's own
	h.SetCanonical(nameRequestID, r.id)
}

// setWaited tells the leader how long the request has waited already.
func (r *request) setWaited(out *fasthttp.Request) {
	out.Header.SetBytesV(headerWaited, strconv.AppendInt(nil, time.Since(r.start).Milliseconds(), 10))
}

// forwardWaiting passes on a request that the leader may hold for wait. When
// the client goes, or this server drains, the leader is told.
func (r *request) forwardWaiting(wait time.Duration, out *fasthttp.Request) {
	r.setWaited(out)
	caller, end, ok := r.caller()
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(caller, wait+r.server.cfg.Wait)
	defer cancel()
	resp := &r.http.Response
	err := r.server.node.ForwardWaiting(ctx, out, resp)
	cause := context.Cause(ctx)
	if cause == nil {
		cause = fsm.ErrShuttingDown // of the node, which had the wait given up
	}
	gone := end()
	givenUp := err == nil && len(resp.Header.Peek(headerGivenUp)) > 0
	if err == nil && !givenUp {
		r.forwardDone()
		if !gone || len(r.holds) == 0 {
			return
		}
		r.giveBack()
	}
	r.resetAnswer()
	switch {
	case gone:
		r.refuseGone()
	case givenUp:
		r.refuseCode(cause)
	default:
		r.forwardFailed(err)
	}
}

// forwardFailed answers for a leader that could not be reached or did not
// answer. What this node sees of the cluster it can always tell.
func (r *request) forwardFailed(err error) {
	call := r.target.call
	switch {
	case call.has(leaderless):
		call.answer(r)
	case errors.Is(err, errAnswersFull) && !call.has(mutation):
		r.refuse(r.server.port.Answers.Full())
	case errors.Is(err, fsm.ErrOutcomeUnknown) && !call.has(mutation) && !timedOut(err):
		r.refuse(refuse.Because(wire.CodeNoLeader))
	default:
		r.refuseCode(err)
	}
}

// timedOut reports whether the wait for the leader's answer took all the time
// that there was. The leader itself is then about to answer overloaded.
func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// actionWait returns the context of a call that is slow.
func (r *request) actionWait() (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.server.waits.base, slowTime+2*r.server.cfg.Wait)
}
