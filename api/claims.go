package api

import (
	"bytes"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// Claim answers POST /api/tasks/claim.
func Claim(r *request) {
	req, bad := callbody.DecodeClaim(r.http.Request.Body(), &r.server.cfg.Limits)
	if bad != nil {
		r.refuse(bad)
		return
	}
	r.narrow(&req)
	p, gone, ok := proposeClaim(r, req.Cmd, r.waitLeft(req.WaitMS))
	if !ok {
		return
	}
	r.holdUntilSent(req.Cmd.RequestID, &p.Result)
	switch {
	case gone && len(r.holds) > 0:
		r.giveBack()
		r.refuseGone()
	case req.Many:
		r.send(fasthttp.StatusOK, callbody.AppendClaims(r.body(), &p))
	case len(p.Result.Claims) == 0:
		r.code = wire.CodeNoPendingTasks
		r.send(fasthttp.StatusNotFound, callbody.AppendNoTasks(r.body(), &req, r.id))
	default:
		r.send(fasthttp.StatusOK, callbody.AppendClaim(r.body(), &p))
	}
}

// waitName is the field that makes the leader hold a claim. It is never changed.
var waitName = []byte("wait_ms")

// HeldClaim returns for how long a claim may be held.
func HeldClaim(r *request) time.Duration {
	body := r.http.Request.Body()
	// The name may be spelled with escapes.
	if !bytes.Contains(body, waitName) && bytes.IndexByte(body, '\\') < 0 {
		return 0
	}
	req, bad := callbody.DecodeClaim(body, &r.server.cfg.Limits)
	if bad != nil {
		return 0
	}
	return r.waitLeft(req.WaitMS)
}

// proposeClaim is proposeTask of a claim that waits for as long as wait. gone
// says that meanwhile the client has gone.
func proposeClaim(r *request, cmd fsm.ClaimNext, wait time.Duration) (p fsm.Proposed, gone, ok bool) {
	if wait > 0 {
		if bad := r.permit(cmd); bad != nil {
			r.refuse(bad)
			return p, false, false
		}
		return r.proposeWaiting(cmd, wait)
	}
	p, ok = r.proposeTask(cmd)
	return p, false, ok
}

// ClaimTask answers POST /api/tasks/{id}/claim.
func ClaimTask(r *request) {
	cmd, bad := callbody.DecodeClaimTask(r.target.id, r.http.Request.Body(), &r.server.cfg.Limits)
	if bad != nil {
		r.refuse(bad)
		return
	}
	cmd.RequestID = r.narrowRequestID(cmd.RequestID)
	if p, ok := r.proposeTask(cmd); ok {
		r.holdUntilSent(cmd.RequestID, &p.Result)
		r.send(fasthttp.StatusOK, callbody.AppendClaim(r.body(), &p))
	}
}
