package api

import (
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// ofTask answers a call about the task in the path, with a body of type B.
func ofTask[B any, P interface {
	*B
	callbody.OfTask
}](r *exchange.Request) {
	act(r, callbody.About(P(new(B)), r.Target.ID))
}

// finalizes is ofTask for calls about the finalization of a task.
func finalizes[B any, P interface {
	*B
	callbody.OfTask
}](r *exchange.Request) {
	if cmd, p, ok := act(r, callbody.About(P(new(B)), r.Target.ID)); ok {
		r.Server.Metrics.Finalizations.Observe(r.Start, cmd, p.Result.Parent)
	}
}

// act answers a call with status 200: it decodes the body, proposes the command and answers with its result. ok is
// false if it was refused.
func act(r *exchange.Request, c callbody.Body) (cmd command.Command, p nodes.Proposed, ok bool) {
	if bad := callbody.Decode(c, r.HTTP.Request.Body(), &r.Server.Cfg.Limits); bad != nil {
		r.Refuse(bad)
		return nil, p, false
	}
	cmd = c.Command()
	if p, ok = r.ProposeTask(cmd); ok {
		r.Send(fasthttp.StatusOK, c.Answer(r.Body(), &p))
	}
	return cmd, p, ok
}

// Complete answers POST /api/tasks/{id}/complete.
func Complete(r *exchange.Request) {
	c, bad := callbody.DecodeComplete(r.Target.ID, r.HTTP.Request.Body(), &r.Server.Cfg.Limits)
	if bad != nil {
		r.Refuse(bad)
		return
	}
	r.Trace(c.Cmd.Submit)
	r.NarrowKeys(c.Cmd.Submit)
	r.Narrow(c.Claim)
	p, ok := r.ProposeTask(c.Command())
	if !ok {
		return
	}
	r.Send(fasthttp.StatusOK, c.Answer(r.Body(), &p))
}
