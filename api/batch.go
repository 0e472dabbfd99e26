package api

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/nodes"
)

// Batch answers POST /api/batch.
func Batch(r *exchange.Request) {
	req, bad := readBatch(r)
	if bad != nil {
		r.Refuse(bad)
		return
	}
	r.TraceOps(&req)
	if r.Forwarded && len(r.HTTP.Request.Header.Peek(exchange.HeaderUnsent)) > 0 {
		req.Unsent()
	}
	p, ok := r.Propose(req.Command())
	if !ok {
		return
	}
	if p.Result.Code != "" {
		refuseBatch(r, &req, &p)
		return
	}
	failed, done := 0, p // done is p as the op's own call would have it
	b := jsonout.List(batchBody(r, &req, &p.Result), `{"success":true,"results":`, len(req.Ops), func(b []byte, i int) []byte {
		body := req.Ops[i]
		done.Result = p.Result.Results[i]
		if code := callbody.OpCode(body, &done.Result); code != "" {
			failed++
			r.OpRefused = true
			return appendOpRefusal(r, b, body, code, &done.Result)
		}
		if req.Minimal {
			return callbody.AppendMinimal(b, body, &done)
		}
		return body.Answer(b, &done)
	})
	b = jsonout.IntField(b, `,"failed":`, int64(failed))
	r.Send(fasthttp.StatusOK, append(b, '}'))
}

// readBatch decodes the body, unless that was done before, and restricts its claims and idempotency keys to the key's
// task types.
func readBatch(r *exchange.Request) (req callbody.Batch, bad *refuse.Refusal) {
	if r.Ops != nil {
		req = *r.Ops
	} else if req, bad = callbody.DecodeBatch(r.HTTP.Request.Body(), &r.Server.Cfg.Limits); bad != nil {
		return req, bad
	}
	if r.Narrowed() {
		for _, op := range req.Ops {
			r.Narrow(callbody.ClaimOf(op))
			switch c := op.(type) {
			case *callbody.One:
				c.KeyOfType = c.Key != ""
			case *callbody.Complete:
				r.NarrowKeys(c.Cmd.Submit)
			}
		}
	}
	return req, nil
}

// batchBody returns the buffer for the answer.
func batchBody(r *exchange.Request, req *callbody.Batch, res *fsm.Result) []byte {
	if req.Minimal {
		return r.BodyOf(res)
	}
	return r.BodyOfAll(res)
}

// appendOpRefusal appends the answer that the op's own call would get when it is refused.
func appendOpRefusal(r *exchange.Request, b []byte, body callbody.Body, code wire.Code, res *fsm.Result) []byte {
	if claim, ok := body.(*callbody.Claim); ok && code == wire.CodeNoPendingTasks {
		return callbody.AppendNoTasks(b, claim, r.ID)
	}
	return refuse.Append(b, r.RefuseResult(body.Command(), *res), r.ID)
}

// refuseBatch answers an atomic batch with the refusal of one op, as its own call would be, plus its index.
func refuseBatch(r *exchange.Request, req *callbody.Batch, p *nodes.Proposed) {
	r.Code = wire.Code(p.Result.Code)
	b := appendOpRefusal(r, r.Body(), req.Ops[p.Result.FailedOp], r.Code, &p.Result)
	b = append(b[:len(b)-1], `,"failed_op":`...)
	b = strconv.AppendInt(b, int64(p.Result.FailedOp), 10)
	r.Send(r.Code.Status(), append(b, '}'))
}
