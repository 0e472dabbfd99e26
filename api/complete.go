package api

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// complete answers POST /api/tasks/{id}/complete.
func (r *request) complete() {
	c, bad := decodeComplete(r.target.id, r.http.Request.Body(), &r.server.cfg.Limits)
	if bad != nil {
		r.refuse(bad)
		return
	}
	r.trace(c.submit)
	r.narrowKeys(c.submit)
	r.narrow(c.claim)
	p, ok := r.proposeTask(c.command())
	if !ok {
		return
	}
	if c.claim != nil {
		r.holdUntilSent(c.claim.cmd.RequestID, &p.Result)
	}
	r.send(fasthttp.StatusOK, c.answer(r.body(), &p))
}

// completeBody is the body of POST /api/tasks/{id}/complete.
type completeBody struct {
	holdBody
	result, payload []byte
	submit          []fsm.NewTask
	claim           *claimRequest // nil: none
}

// decodeComplete is decodeCall of a complete: through the interface, each of
// them would cost an allocation more.
func decodeComplete(id uint64, body []byte, limits *Limits) (c completeBody, bad *refusal) {
	c.hold.ID = id
	d := newDecoder(body, limits)
	defer d.free()
	if bad = d.fields(func(name []byte) *refusal { return c.field(d, name) }); bad == nil {
		bad = c.check(d)
	}
	return c, bad
}

func (c *completeBody) field(d *decoder, name []byte) *refusal {
	ok, bad := c.holdField(d, name)
	if ok {
		return bad
	}
	switch string(name) {
	case "result":
		c.result, bad = d.raw("result", d.limits.ValueBytes)
	case "result_payload":
		if c.payload, bad = d.base64("result_payload"); len(c.payload) == 0 {
			c.payload = nil // no bytes are no result
		}
	case "submit":
		_, bad = d.taskArray("submit", func(t *draft, bad *refusal) *refusal {
			c.submit = append(c.submit, t.NewTask)
			return bad
		})
	case "claim":
		bad = c.readClaim(d)
	default:
		bad = d.unknown(name)
	}
	return bad
}

// readClaim reads the claim that follows, which does not wait.
func (c *completeBody) readClaim(d *decoder) *refusal {
	claim := newClaimRequest()
	claim.noWait = true
	ok, bad := d.object("claim", func(name []byte) *refusal { return d.claimField(name, &claim) })
	if ok {
		c.claim = &claim
	}
	return bad
}

func (c *completeBody) check(d *decoder) *refusal {
	if bad := c.holdBody.check(d); bad != nil {
		return bad
	}
	if c.result != nil && c.payload != nil {
		return &refusal{
			code: wire.CodeInvalidRequest, field: d.path("result_payload"), text: "result and result_payload are both given",
			advice: "Send at most one of result and result_payload",
		}
	}
	if n := changesOf(c); n > changesMax {
		return &refusal{
			code: wire.CodeInvalidRequest, field: d.path("submit"),
			text:   "The call changes up to " + strconv.Itoa(n) + " tasks, steps counted; at most " + strconv.Itoa(changesMax) + " are allowed",
			advice: "Submit fewer tasks, or claim fewer",
		}
	}
	if c.claim == nil {
		return nil
	}
	if c.claim.cmd.WorkerID == "" {
		c.claim.cmd.WorkerID = c.hold.WorkerID
	}
	d.enter("claim", -1)
	defer d.leave()
	return d.checkClaim(c.claim)
}

func (c *completeBody) command() fsm.Command {
	cmd := fsm.Complete{Hold: c.hold, Result: c.result, ResultPayload: c.payload, Submit: c.submit}
	if c.claim != nil {
		cmd.Claim = &c.claim.cmd
	}
	return cmd
}

func (c *completeBody) answer(b []byte, p *fsm.Proposed) []byte {
	b = appendTaskAnswer(b, p)
	if len(c.submit) > 0 {
		b = appendSubmitted(b, p.Result.Submitted, p.Result.Repeated)
	}
	if c.claim != nil {
		b = c.appendClaimed(b, p)
	}
	return appendRepeated(b, p.Result.Repeated)
}

// appendSubmitted appends what became of the follow-up tasks. A repeated answer
// does not know any more what a task was compared with.
func appendSubmitted(b []byte, done []fsm.Submitted, repeated bool) []byte {
	b = append(b, `,"submitted":[`...)
	for i := range done {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"id":`...)
		b = strconv.AppendUint(b, done[i].Task.ID, 10)
		b = appendCreated(b, done[i].Created, done[i].SameRequest || repeated)
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendClaimed appends what the claim took: a task or null, or with limit the
// tasks.
func (c *completeBody) appendClaimed(b []byte, p *fsm.Proposed) []byte {
	claims := p.Result.Claims
	if c.claim.many {
		b = append(b, `,"claimed":{"tasks":[`...)
		b = appendClaimedTasks(b, claims, p)
		return append(b, "]}"...)
	}
	b = append(b, `,"claimed":{"task":`...)
	if len(claims) == 0 {
		return append(b, "null}"...)
	}
	return append(appendClaimed(b, &claims[0], claimsRepeated(&p.Result), p.Stamp), '}')
}

// appendClaimedTasks appends tasks that were claimed, with commas between them.
func appendClaimedTasks(b []byte, claims []fsm.Claim, p *fsm.Proposed) []byte {
	for i := range claims {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendClaimed(b, &claims[i], claimsRepeated(&p.Result), p.Stamp)
	}
	return b
}

// claimsRepeated reports whether the claims in a complete's answer were answered
// before: to the complete, or to another request with their claim_request_id.
func claimsRepeated(res *fsm.Result) bool { return res.Repeated || res.ClaimsRepeated }
