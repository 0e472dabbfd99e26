package api

import (
	"context"
	"errors"
	"os"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// elsewhere answers a request that only the leader can answer: by passing it
// on, once, or by saying where the leader is.
func (r *request) elsewhere() {
	switch {
	case r.forwarded:
		r.refuse(refuse(wire.CodeNoLeader))
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
	case leader == "" && r.target.call == callCluster:
		r.cluster() // our own client asks for redirects, and an operator wants to see this of all
		return
	case leader == "":
		r.refuse(refuse(wire.CodeNoLeader))
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

// forward passes the request on to the leader and answers what it answered.
func (r *request) forward() {
	in := &r.http.Request
	out := fasthttp.AcquireRequest()
	defer fasthttp.ReleaseRequest(out)
	method := in.Header.Method()
	if in.Header.IsHead() {
		method = []byte(fasthttp.MethodGet) // our own answer leaves the body out
	}
	out.Header.SetMethodBytes(method)
	// The client's target travels in a header only: as a path it would be
	// normalized, perhaps into one that only nodes may call.
	out.SetRequestURI(forwardPath)
	out.Header.SetHost("claimq")
	out.Header.SetBytesV(headerTarget, in.Header.RequestURI())
	out.Header.SetBytesV(headerRequestID, r.id)
	if v := in.Header.Peek(headerMinIndex); len(v) > 0 {
		out.Header.SetBytesV(headerMinIndex, v)
	}
	out.Header.SetContentType("application/json")
	out.SetBodyRaw(in.Body())

	resp := &r.http.Response
	err := r.server.node.Forward(r.wait(), out, resp)
	if err != nil {
		r.resetAnswer()
		r.forwardFailed(err)
		return
	}
	r.label = "forwarded"
	resp.Header.ResetConnectionClose()
	resp.Header.Del(fasthttp.HeaderServer) // the peer port's own
	resp.Header.SetCanonical(nameRequestID, r.id)
}

// forwardFailed answers for a leader that could not be reached or did not
// answer. What this node sees of the cluster it can always tell.
func (r *request) forwardFailed(err error) {
	call := r.target.call
	switch {
	case call == callCluster:
		r.cluster()
	case errors.Is(err, fsm.ErrOutcomeUnknown) && !call.mutation() && !timedOut(err):
		r.refuse(refuse(wire.CodeNoLeader))
	default:
		r.refuseCode(err)
	}
}

// timedOut reports whether the wait for the leader's answer took all the time
// that there was. The leader itself is then about to answer overloaded.
func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}
