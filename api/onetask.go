package api

import (
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/callbody"
)

// act answers a call whose answer is 200: it reads the body, proposes the
// command and says how it went.
func act(r *request, c callbody.Body) {
	if bad := callbody.Decode(c, r.http.Request.Body(), &r.server.cfg.Limits); bad != nil {
		r.refuse(bad)
		return
	}
	if p, ok := r.proposeTask(c.Command()); ok {
		r.send(fasthttp.StatusOK, c.Answer(r.body(), &p))
	}
}

// Complete answers POST /api/tasks/{id}/complete.
func Complete(r *request) {
	c, bad := callbody.DecodeComplete(r.target.id, r.http.Request.Body(), &r.server.cfg.Limits)
	if bad != nil {
		r.refuse(bad)
		return
	}
	r.trace(c.Submit)
	r.narrowKeys(c.Submit)
	r.narrow(c.Claim)
	p, ok := r.proposeTask(c.Command())
	if !ok {
		return
	}
	if c.Claim != nil {
		r.holdUntilSent(c.Claim.Cmd.RequestID, &p.Result)
	}
	r.send(fasthttp.StatusOK, c.Answer(r.body(), &p))
}

// actFinalization is act of a call about the finalization of a task.
func actFinalization(r *request, c callbody.Body) {
	if bad := callbody.Decode(c, r.http.Request.Body(), &r.server.cfg.Limits); bad != nil {
		r.refuse(bad)
		return
	}
	cmd := c.Command()
	if p, ok := r.proposeTask(cmd); ok {
		r.send(fasthttp.StatusOK, c.Answer(r.body(), &p))
		r.server.metrics.Finalizations.Observe(r.start, cmd, p.Result.Parent)
	}
}

// Patch answers PATCH /api/tasks/{id}.
func Patch(r *request) { act(r, callbody.NewPatch(r.target.id)) }

// Retry answers POST /api/tasks/{id}/retry.
func Retry(r *request) { act(r, callbody.NewRetry(r.target.id)) }

// Cancel answers POST /api/tasks/{id}/cancel.
func Cancel(r *request) { act(r, callbody.NewCancel(r.target.id)) }

// Fail answers POST /api/tasks/{id}/fail.
func Fail(r *request) { act(r, callbody.NewFail(r.target.id)) }

// Extend answers POST /api/tasks/{id}/extend.
func Extend(r *request) { act(r, callbody.NewExtend(r.target.id)) }

// Release answers POST /api/tasks/{id}/release.
func Release(r *request) { act(r, callbody.NewRelease(r.target.id)) }

// ClaimFinalization answers POST /api/tasks/{id}/finalization/claim.
func ClaimFinalization(r *request) { actFinalization(r, callbody.NewClaimFinalization(r.target.id)) }

// ExtendFinalization answers POST /api/tasks/{id}/finalization/extend.
func ExtendFinalization(r *request) { actFinalization(r, callbody.NewExtendFinalization(r.target.id)) }

// ReleaseFinalization answers POST /api/tasks/{id}/finalization/release.
func ReleaseFinalization(r *request) {
	actFinalization(r, callbody.NewReleaseFinalization(r.target.id))
}

// Finalize answers POST /api/tasks/{id}/finalize.
func Finalize(r *request) { actFinalization(r, callbody.NewFinalize(r.target.id)) }
