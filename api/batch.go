package api

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// Batch answers POST /api/batch.
func Batch(r *request) {
	req, bad := readBatch(r)
	if bad != nil {
		r.refuse(bad)
		return
	}
	r.traceOps(&req)
	p, ok := r.propose(req.Command())
	if !ok {
		return
	}
	if p.Result.Code != "" {
		refuseBatch(r, &req, &p)
		return
	}
	b := append(r.body(), `{"success":true,"results":[`...)
	failed, done := 0, p // done is p as the op's own call would have it
	for i, body := range req.Ops {
		if i > 0 {
			b = append(b, ',')
		}
		done.Result = p.Result.Results[i]
		if code := callbody.OpCode(body, &done.Result); code != "" {
			failed++
			r.opRefused = true
			b = appendOpRefusal(r, b, body, code, &done.Result)
			continue
		}
		if claim := callbody.ClaimOf(body); claim != nil {
			r.holdUntilSent(claim.Cmd.RequestID, &done.Result)
		}
		if req.Minimal {
			b = callbody.AppendMinimal(b, body, &done)
		} else {
			b = body.Answer(b, &done)
		}
	}
	b = append(b, `],"failed":`...)
	b = strconv.AppendInt(b, int64(failed), 10)
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// readBatch reads the body, unless that was done when it was looked at, and
// keeps its claims and idempotency keys to the
// key's task types.
func readBatch(r *request) (req callbody.Batch, bad *refuse.Refusal) {
	if r.ops != nil {
		req = *r.ops
	} else if req, bad = callbody.DecodeBatch(r.http.Request.Body(), &r.server.cfg.Limits); bad != nil {
		return req, bad
	}
	if len(r.onlyTypes) > 0 {
		for _, op := range req.Ops {
			r.narrow(callbody.ClaimOf(op))
			switch c := op.(type) {
			case *callbody.One:
				c.KeyOfType = c.Key != ""
			case *callbody.Complete:
				r.narrowKeys(c.Submit)
			}
		}
	}
	return req, nil
}

// appendOpRefusal appends what an op's own call answers when it is refused.
func appendOpRefusal(r *request, b []byte, body callbody.Body, code wire.Code, res *fsm.Result) []byte {
	if claim, ok := body.(*callbody.Claim); ok && code == wire.CodeNoPendingTasks {
		return callbody.AppendNoTasks(b, claim, r.id)
	}
	return refuse.Append(b, r.refuseResult(body.Command(), *res), r.id)
}

// refuseBatch answers an atomic batch of which an op was refused: as the op's
// own call, with the op's place.
func refuseBatch(r *request, req *callbody.Batch, p *fsm.Proposed) {
	r.code = wire.Code(p.Result.Code)
	b := appendOpRefusal(r, r.body(), req.Ops[p.Result.FailedOp], r.code, &p.Result)
	b = append(b[:len(b)-1], `,"failed_op":`...)
	b = strconv.AppendInt(b, int64(p.Result.FailedOp), 10)
	r.send(r.code.Status(), append(b, '}'))
}
