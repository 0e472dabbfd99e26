package api

import (
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// claim answers POST /api/tasks/claim.
func (r *request) claim() {
	req, bad := callbody.DecodeClaim(r.http.Request.Body(), &r.server.cfg.Limits)
	if bad != nil {
		r.refuse(bad)
		return
	}
	r.narrow(&req)
	p, gone, ok := r.proposeClaim(req.Cmd, r.waitLeft(req.WaitMS))
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

// proposeClaim is proposeTask of a claim that waits for as long as wait. gone
// says that meanwhile the client has gone.
func (r *request) proposeClaim(cmd fsm.ClaimNext, wait time.Duration) (p fsm.Proposed, gone, ok bool) {
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

// claimTask answers POST /api/tasks/{id}/claim.
func (r *request) claimTask() {
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
