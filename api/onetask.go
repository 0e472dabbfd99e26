package api

import (
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/exchange"
)

// act answers a call whose answer is 200: it reads the body, proposes the
// command and says how it went.
func act(r *exchange.Request, c callbody.Body) {
	if bad := callbody.Decode(c, r.HTTP.Request.Body(), &r.Server.Cfg.Limits); bad != nil {
		r.Refuse(bad)
		return
	}
	if p, ok := r.ProposeTask(c.Command()); ok {
		r.Send(fasthttp.StatusOK, c.Answer(r.Body(), &p))
	}
}

// Complete answers POST /api/tasks/{id}/complete.
func Complete(r *exchange.Request) {
	c, bad := callbody.DecodeComplete(r.Target.ID, r.HTTP.Request.Body(), &r.Server.Cfg.Limits)
	if bad != nil {
		r.Refuse(bad)
		return
	}
	r.Trace(c.Submit)
	r.NarrowKeys(c.Submit)
	r.Narrow(c.Claim)
	p, ok := r.ProposeTask(c.Command())
	if !ok {
		return
	}
	if c.Claim != nil {
		r.HoldUntilSent(c.Claim.Cmd.RequestID, &p.Result)
	}
	r.Send(fasthttp.StatusOK, c.Answer(r.Body(), &p))
}

// actFinalization is act of a call about the finalization of a task.
func actFinalization(r *exchange.Request, c callbody.Body) {
	if bad := callbody.Decode(c, r.HTTP.Request.Body(), &r.Server.Cfg.Limits); bad != nil {
		r.Refuse(bad)
		return
	}
	cmd := c.Command()
	if p, ok := r.ProposeTask(cmd); ok {
		r.Send(fasthttp.StatusOK, c.Answer(r.Body(), &p))
		r.Server.Metrics.Finalizations.Observe(r.Start, cmd, p.Result.Parent)
	}
}

// Patch answers PATCH /api/tasks/{id}.
func Patch(r *exchange.Request) { act(r, callbody.NewPatch(r.Target.ID)) }

// Retry answers POST /api/tasks/{id}/retry.
func Retry(r *exchange.Request) { act(r, callbody.NewRetry(r.Target.ID)) }

// Cancel answers POST /api/tasks/{id}/cancel.
func Cancel(r *exchange.Request) { act(r, callbody.NewCancel(r.Target.ID)) }

// Fail answers POST /api/tasks/{id}/fail.
func Fail(r *exchange.Request) { act(r, callbody.NewFail(r.Target.ID)) }

// Extend answers POST /api/tasks/{id}/extend.
func Extend(r *exchange.Request) { act(r, callbody.NewExtend(r.Target.ID)) }

// Release answers POST /api/tasks/{id}/release.
func Release(r *exchange.Request) { act(r, callbody.NewRelease(r.Target.ID)) }

// ClaimFinalization answers POST /api/tasks/{id}/finalization/claim.
func ClaimFinalization(r *exchange.Request) {
	actFinalization(r, callbody.NewClaimFinalization(r.Target.ID))
}

// ExtendFinalization answers POST /api/tasks/{id}/finalization/extend.
func ExtendFinalization(r *exchange.Request) {
	actFinalization(r, callbody.NewExtendFinalization(r.Target.ID))
}

// ReleaseFinalization answers POST /api/tasks/{id}/finalization/release.
func ReleaseFinalization(r *exchange.Request) {
	actFinalization(r, callbody.NewReleaseFinalization(r.Target.ID))
}

// Finalize answers POST /api/tasks/{id}/finalize.
func Finalize(r *exchange.Request) { actFinalization(r, callbody.NewFinalize(r.Target.ID)) }
