package api

import (
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// claim answers POST /api/tasks/claim.
func (r *request) claim() {
	req, bad := decodeClaim(r.http.Request.Body(), &r.server.cfg.Limits)
	if bad != nil {
		r.refuse(bad)
		return
	}
	r.narrow(&req)
	p, gone, ok := r.proposeClaim(req.cmd, r.waitLeft(req.waitMS))
	if !ok {
		return
	}
	r.holdUntilSent(req.cmd.RequestID, &p.Result)
	switch {
	case gone && len(r.holds) > 0:
		r.giveBack()
		r.refuseGone()
	case req.many:
		r.send(fasthttp.StatusOK, appendClaims(r.body(), &p))
	case len(p.Result.Claims) == 0:
		r.code = wire.CodeNoPendingTasks
		r.send(fasthttp.StatusNotFound, appendNoTasks(r.body(), &req, r.id))
	default:
		r.send(fasthttp.StatusOK, appendClaim(r.body(), &p))
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
	cmd, bad := decodeClaimTask(r.target.id, r.http.Request.Body(), &r.server.cfg.Limits)
	if bad != nil {
		r.refuse(bad)
		return
	}
	cmd.RequestID = r.narrowRequestID(cmd.RequestID)
	if p, ok := r.proposeTask(cmd); ok {
		r.holdUntilSent(cmd.RequestID, &p.Result)
		r.send(fasthttp.StatusOK, appendClaim(r.body(), &p))
	}
}

const claimedMessage = `,"message":"Task claimed successfully"`

// appendClaim appends the answer to a claim that took one task.
func appendClaim(b []byte, p *fsm.Proposed) []byte {
	b = append(b, `{"success":true,"task":`...)
	b = appendClaimed(b, &p.Result.Claims[0], p.Result.Repeated, p.Stamp)
	b = append(b, claimedMessage...)
	return appendRepeated(b, p.Result.Repeated)
}

// appendClaims appends the answer to a claim with limit.
func appendClaims(b []byte, p *fsm.Proposed) []byte {
	b = append(b, `{"success":true,"tasks":[`...)
	for i := range p.Result.Claims {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendClaimed(b, &p.Result.Claims[i], p.Result.Repeated, p.Stamp)
	}
	b = append(b, ']')
	if len(p.Result.Claims) > 0 {
		b = append(b, claimedMessage...)
	} else {
		b = append(b, `,"message":"No pending tasks available"`...)
	}
	return appendRepeated(b, p.Result.Repeated)
}

// appendRepeated ends an answer that may be a repeated one.
func appendRepeated(b []byte, repeated bool) []byte {
	if repeated {
		b = append(b, `,"repeated":true`...)
	}
	return append(b, '}')
}

// appendNoTasks appends the answer to a claim that found nothing, with the
// filters that were sent, as they were sent.
func appendNoTasks(b []byte, req *claimRequest, requestID []byte) []byte {
	b = appendRefusalOpen(b, refuse(wire.CodeNoPendingTasks), requestID)
	b = append(b, `,"filters":{`...)
	start := len(b)
	for _, f := range []struct {
		name string
		raw  []byte
	}{{`,"task_types":`, req.rawTypes}, {`,"max_attempts_remaining":`, req.rawMoreAttempts}, {`,"sort_by":`, req.rawSortBy}, {`,"sort_order":`, req.rawSortOrder}} {
		name := f.name
		if len(b) == start {
			name = name[1:] // the first has no comma
		}
		b = appendRaw(b, name, f.raw)
	}
	return append(b, '}', '}')
}
