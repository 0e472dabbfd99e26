package api

import (
	"bytes"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Claim answers POST /api/tasks/claim.
func Claim(r *exchange.Request) {
	req, bad := callbody.DecodeClaim(r.HTTP.Request.Body(), &r.Server.Cfg.Limits)
	if bad != nil {
		r.Refuse(bad)
		return
	}
	r.Narrow(&req)
	p, gone, ok := proposeClaim(r, req.Cmd, r.WaitLeft(req.WaitMS))
	if !ok {
		return
	}
	switch {
	case gone && len(r.Holds) > 0:
		r.GiveBack()
		r.RefuseGone()
	case req.Many:
		r.Send(fasthttp.StatusOK, callbody.AppendClaims(r.BodyOf(&p.Result), &p))
	case len(p.Result.Claims) == 0:
		r.Code = wire.CodeNoPendingTasks
		r.Send(fasthttp.StatusNotFound, callbody.AppendNoTasks(r.Body(), &req, r.ID))
	default:
		r.Send(fasthttp.StatusOK, callbody.AppendClaim(r.Body(), &p))
	}
}

// waitName is the field that makes the leader hold a claim.
var waitName = []byte("wait_ms")

// HeldClaim returns how long a claim may be held.
func HeldClaim(r *exchange.Request) time.Duration {
	body := r.HTTP.Request.Body()
	// The name may be written with escapes.
	if !bytes.Contains(body, waitName) && bytes.IndexByte(body, '\\') < 0 {
		return 0
	}
	req, bad := callbody.DecodeClaim(body, &r.Server.Cfg.Limits)
	if bad != nil {
		return 0
	}
	return r.WaitLeft(req.WaitMS)
}

// proposeClaim proposes a claim that may wait for up to wait. gone says that the client disconnected meanwhile.
func proposeClaim(r *exchange.Request, cmd command.ClaimNext, wait time.Duration) (p nodes.Proposed, gone, ok bool) {
	if wait > 0 {
		if bad := r.Permit(cmd); bad != nil {
			r.Refuse(bad)
			return p, false, false
		}
		return r.ProposeWaiting(cmd, wait)
	}
	p, ok = r.ProposeTask(cmd)
	return p, false, ok
}

// ClaimTask answers POST /api/tasks/{id}/claim.
func ClaimTask(r *exchange.Request) {
	cmd, bad := callbody.DecodeClaimTask(r.Target.ID, r.HTTP.Request.Body(), &r.Server.Cfg.Limits)
	if bad != nil {
		r.Refuse(bad)
		return
	}
	cmd.RequestID = r.NarrowRequestID(cmd.RequestID)
	if p, ok := r.ProposeTask(cmd); ok {
		r.Send(fasthttp.StatusOK, callbody.AppendClaim(r.Body(), &p))
	}
}
