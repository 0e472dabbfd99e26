package api

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// batch answers POST /api/batch.
func (r *request) batch() {
	req, bad := r.readBatch()
	if bad != nil {
		r.refuse(bad)
		return
	}
	req.trace(r)
	p, ok := r.propose(req.command())
	if !ok {
		return
	}
	if p.Result.Code != "" {
		r.refuseBatch(&req, &p)
		return
	}
	b := append(r.body(), `{"success":true,"results":[`...)
	failed, done := 0, p // done is p as the op's own call would have it
	for i, body := range req.ops {
		if i > 0 {
			b = append(b, ',')
		}
		done.Result = p.Result.Results[i]
		if code := opCode(body, &done.Result); code != "" {
			failed++
			r.opRefused = true
			b = r.appendOpRefusal(b, body, code, &done.Result)
			continue
		}
		if claim := claimOf(body); claim != nil {
			r.holdUntilSent(claim.cmd.RequestID, &done.Result)
		}
		b = body.answer(b, &done)
	}
	b = append(b, `],"failed":`...)
	b = strconv.AppendInt(b, int64(failed), 10)
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// readBatch reads the body, unless that was done when it was looked at, and
// keeps its claims and idempotency keys to the
// key's task types.
func (r *request) readBatch() (req batchRequest, bad *refusal) {
	if r.ops != nil {
		req = *r.ops
	} else if req, bad = decodeBatch(r.http.Request.Body(), &r.server.cfg.Limits); bad != nil {
		return req, bad
	}
	if len(r.onlyTypes) > 0 {
		for _, op := range req.ops {
			r.narrow(claimOf(op))
			switch c := op.(type) {
			case *submitBody:
				c.KeyOfType = c.Key != ""
			case *completeBody:
				r.narrowKeys(c.submit)
			}
		}
	}
	return req, nil
}

// opCode returns the code with which an op's own call is refused, "" if it is
// not.
func opCode(body callBody, res *fsm.Result) wire.Code {
	if claim, ok := body.(*claimRequest); ok && res.Code == "" && !claim.many && len(res.Claims) == 0 {
		return wire.CodeNoPendingTasks
	}
	return wire.Code(res.Code)
}

// appendOpRefusal appends what an op's own call answers when it is refused.
func (r *request) appendOpRefusal(b []byte, body callBody, code wire.Code, res *fsm.Result) []byte {
	if claim, ok := body.(*claimRequest); ok && code == wire.CodeNoPendingTasks {
		return appendNoTasks(b, claim, r.id)
	}
	return appendRefusal(b, r.refuseResult(body.command(), *res), r.id)
}

// refuseBatch answers an atomic batch of which an op was refused: as the op's
// own call, with the op's place.
func (r *request) refuseBatch(req *batchRequest, p *fsm.Proposed) {
	r.code = wire.Code(p.Result.Code)
	b := r.appendOpRefusal(r.body(), req.ops[p.Result.FailedOp], r.code, &p.Result)
	b = append(b[:len(b)-1], `,"failed_op":`...)
	b = strconv.AppendInt(b, int64(p.Result.FailedOp), 10)
	r.send(r.code.Status(), append(b, '}'))
}

// batchRequest is the body of POST /api/batch.
type batchRequest struct {
	atomic bool
	ops    []callBody
}

func (req *batchRequest) command() fsm.Batch {
	cmd := fsm.Batch{Atomic: req.atomic, Ops: make([]fsm.Command, len(req.ops))}
	for i, body := range req.ops {
		cmd.Ops[i] = body.command()
	}
	return cmd
}

// claimOf returns the claim that an op makes, nil if it makes none.
func claimOf(body callBody) *claimRequest {
	switch c := body.(type) {
	case *claimRequest:
		return c
	case *completeBody:
		return c.claim
	}
	return nil
}

// decodeBatch reads the body of POST /api/batch. What is wrong with one op is
// wrong with all.
func decodeBatch(body []byte, limits *Limits) (batchRequest, *refusal) {
	var req batchRequest
	d := newDecoder(body, limits)
	defer d.free()
	changes := 0
	bad := d.fields(func(name []byte) (bad *refusal) {
		switch string(name) {
		case "atomic":
			req.atomic, bad = d.boolean("atomic")
		case "ops":
			_, bad = d.array("ops", "ops", d.limits.Items, func() *refusal {
				op, bad := d.op()
				if bad == nil {
					changes += changesOf(op)
					req.ops = append(req.ops, op)
				}
				return bad
			})
		default:
			bad = d.unknown(name)
		}
		return bad
	})
	switch {
	case bad != nil:
	case len(req.ops) == 0:
		bad = d.missing("ops")
	case changes > changesMax:
		bad = &refusal{
			code: d.code, field: "ops", text: "The ops change up to " + strconv.Itoa(changes) + " tasks; at most " + strconv.Itoa(changesMax) + " are allowed",
			advice: "Send several batches",
		}
	}
	return req, bad
}

// changesOf returns how many tasks an op changes at most.
func changesOf(op callBody) int {
	n := 1
	switch op := op.(type) {
	case *submitBody:
		n = fsm.CountTasks([]fsm.NewTask{op.NewTask})
	case *completeBody:
		n += fsm.CountTasks(op.submit)
	case *claimRequest:
		n = 0
	}
	if claim := claimOf(op); claim != nil {
		n += int(claim.cmd.Limit)
	}
	return n
}

const opsAllowed = `"submit", "claim", "complete", "fail", "extend", "release", "retry", "cancel" or "delete"`

// newOp returns the body of an op of that name; setID takes its id, nil if it
// has none. The body is nil if there is no such op.
func newOp(name string) (body callBody, setID func(id uint64)) {
	switch name {
	case "submit":
		return &submitBody{draft: newDraft()}, nil
	case "claim":
		claim := newClaimRequest()
		claim.noWait = true
		return &claim, nil
	}
	var op interface {
		callBody
		setID(id uint64)
	}
	switch name {
	case "complete":
		op = &completeBody{}
	case "fail":
		op = &failBody{}
	case "extend":
		op = &extendBody{}
	case "release":
		op = &releaseBody{}
	case "retry":
		op = &retryBody{}
	case "cancel":
		op = &cancelBody{}
	case "delete":
		op = &deleteBody{}
	default:
		return nil, nil
	}
	return op, op.setID
}

// op reads one op of a batch.
func (d *decoder) op() (callBody, *refusal) {
	ok, bad := d.beginItem()
	if bad != nil {
		return nil, bad
	}
	if !ok {
		return nil, d.invalid("", "an object")
	}
	name, given := d.ahead("op")
	if !given {
		if bad := d.skipObject(); bad != nil {
			return nil, bad
		}
		return nil, d.missing("op")
	}
	body, setID := newOp(name)
	if body == nil {
		return nil, d.invalid("op", opsAllowed)
	}
	if _, ok := body.(*submitBody); ok {
		if bad := d.countTask(); bad != nil {
			return nil, bad
		}
		d.code = wire.CodeInvalidTask
		defer func() { d.code = wire.CodeInvalidRequest }()
	}
	if bad := d.opFields(body, setID); bad != nil {
		return nil, bad
	}
	return body, body.check(d)
}

// opFields reads the fields of an op: those of its own call, and id if that has
// one in its path.
func (d *decoder) opFields(body callBody, setID func(id uint64)) *refusal {
	given := setID == nil
	for {
		name, more, bad := d.next()
		switch {
		case bad != nil:
			return bad
		case !more && !given:
			return d.missing("id")
		case !more:
			return nil
		case string(name) == "op":
			bad = d.skip()
		case string(name) == "id" && setID != nil:
			var id int64
			if id, given, bad = d.integer("id", 1, idMax); given {
				setID(uint64(id))
			}
		default:
			bad = body.field(d, name)
		}
		if bad != nil {
			return bad
		}
	}
}
