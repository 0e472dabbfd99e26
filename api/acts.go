package api

import (
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/callbody"
)

// act answers a call whose answer is 200: it reads the body, proposes the
// command and says what became of it.
func (r *request) act(c callbody.Body) {
	if bad := callbody.Decode(c, r.http.Request.Body(), &r.server.cfg.Limits); bad != nil {
		r.refuse(bad)
		return
	}
	if p, ok := r.proposeTask(c.Command()); ok {
		r.send(fasthttp.StatusOK, c.Answer(r.body(), &p))
	}
}

// complete answers POST /api/tasks/{id}/complete.
func (r *request) complete() {
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
func (r *request) actFinalization(c callbody.Body) {
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
