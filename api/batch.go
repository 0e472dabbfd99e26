package api

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/nodes"
)

// runBatch answers POST /api/batch.
func runBatch(r *request) {
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
	used := 0
	for i, op := range req.Ops {
		r.includeDependencies(&p, codec.ClaimOf(op), p.Result.Results[i].Claims, &used)
	}
	failed, done := 0, p // done is p as the op's own call would have it
	b := jsonout.List(batchBody(r, &req, &p.Result), `{"success":true,"results":`, len(req.Ops), func(b []byte, i int) []byte {
		body := req.Ops[i]
		done.Result = p.Result.Results[i]
		if code := codec.OpCode(body, &done.Result); code != "" {
			failed++
			r.rate.opRefused = true
			return appendOpRefusal(r, b, body, code, &done.Result)
		}
		if req.Minimal {
			return codec.AppendMinimal(b, body, &done)
		}
		return body.Answer(b, &done)
	})
	b = jsonout.IntField(b, `,"failed":`, int64(failed))
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// readBatch decodes the body, unless that was done before, and restricts its claims and idempotency keys to the key's
// task types.
func readBatch(r *request) (req codec.Batch, bad *refuse.Refusal) {
	if r.asked.ops != nil {
		req = *r.asked.ops
	} else if req, bad = codec.DecodeBatch(r.input(), r.limits()); bad != nil {
		return req, bad
	}
	if r.narrowed() {
		req.RequestID = r.narrowRequestID(req.RequestID)
		for _, op := range req.Ops {
			r.narrowClaim(codec.ClaimOf(op))
			switch c := op.(type) {
			case *codec.SubmitOne:
				c.KeyOfType = c.Key != ""
			case *codec.Complete:
				r.narrowKeys(c.Cmd.Submit)
			}
		}
	}
	return req, nil
}

// batchBody returns the buffer for the answer.
func batchBody(r *request, req *codec.Batch, res *fsm.Result) []byte {
	if req.Minimal {
		return r.bufferFor(res)
	}
	return r.bufferForAll(res)
}

// appendOpRefusal appends the answer that the op's own call would get when it is refused.
func appendOpRefusal(r *request, b []byte, body codec.Body, code wire.Code, res *fsm.Result) []byte {
	if claim, ok := body.(*codec.Claim); ok && code == wire.CodeNoPendingTasks {
		return codec.AppendNoTasks(b, claim, r.id)
	}
	return refuse.Append(b, r.refuseResult(body.Command(), *res), r.id)
}

// refuseBatch answers an atomic batch with the refusal of one op, as its own call would be, plus its index.
func refuseBatch(r *request, req *codec.Batch, p *nodes.Proposed) {
	r.outcome.code = wire.Code(p.Result.Code)
	b := appendOpRefusal(r, r.buffer(), req.Ops[p.Result.FailedOp], r.outcome.code, &p.Result)
	b = append(b[:len(b)-1], `,"failed_op":`...)
	b = strconv.AppendInt(b, int64(p.Result.FailedOp), 10)
	r.send(r.outcome.code.Status(), append(b, '}'))
}
