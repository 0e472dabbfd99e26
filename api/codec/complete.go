package codec

import (
	"strconv"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Complete is the body of POST /api/tasks/{id}/complete.
type Complete struct {
	body[command.Complete]
	Claim *Claim // nil: none
}

func (c *Complete) setID(id uint64) { c.Cmd.ID = id }

// DecodeComplete is Decode for a complete. It is separate because each call through the interface would cost an
// allocation.
func DecodeComplete(id uint64, body []byte, limits *Limits) (c Complete, bad *refuse.Refusal) {
	c.setID(id)
	d := NewDecoder(body, limits)
	defer d.Free()
	if bad = d.Fields(func(name []byte) *refuse.Refusal { return c.field(d, name) }); bad == nil {
		bad = c.check(d)
	}
	return c, bad
}

func (c *Complete) field(d *Decoder, name []byte) *refuse.Refusal {
	ok, bad := d.holdField(name, &c.Cmd.Hold)
	if ok {
		return bad
	}
	switch string(name) {
	case "result":
		c.Cmd.Result, bad = d.raw("result", d.limits.ValueBytes)
	case "result_payload":
		if c.Cmd.ResultPayload, bad = d.base64("result_payload"); len(c.Cmd.ResultPayload) == 0 {
			c.Cmd.ResultPayload = nil // no bytes mean no result
		}
	case "submit":
		_, bad = d.taskArray("submit", func(t *draft, bad *refuse.Refusal) *refuse.Refusal {
			c.Cmd.Submit = append(c.Cmd.Submit, t.NewTask)
			return bad
		})
	case "claim":
		bad = c.readClaim(d)
	case "late":
		c.Cmd.Late, bad = d.Boolean("late")
	default:
		bad = d.unknownAmong(name, "worker_id", "claim_token", "result", "result_payload", "submit", "claim", "late")
	}
	return bad
}

// readClaim reads the claim of a complete, which cannot wait.
func (c *Complete) readClaim(d *Decoder) *refuse.Refusal {
	claim := newClaimRequest()
	claim.noWait = true
	ok, bad := d.object("claim", func(name []byte) *refuse.Refusal { return claim.field(d, name) })
	if ok {
		c.Claim = &claim
	}
	return bad
}

func (c *Complete) check(d *Decoder) *refuse.Refusal {
	n := changesOf(c)
	switch bad := d.needs("worker_id", c.Cmd.WorkerID); {
	case bad != nil:
		return bad
	case c.Cmd.Result != nil && c.Cmd.ResultPayload != nil:
		return d.refuse("result_payload", "result and result_payload are both given", "Send at most one of result and result_payload")
	case n > wire.ChangesMax:
		return d.refuse("submit", "The call changes up to "+strconv.Itoa(n)+" tasks, steps counted; at most "+strconv.Itoa(wire.ChangesMax)+" are allowed",
			"Submit fewer tasks, or claim fewer")
	case c.Claim == nil:
		return nil
	case c.Claim.Cmd.WorkerID == "":
		c.Claim.Cmd.WorkerID = c.Cmd.WorkerID
	}
	d.enter("claim", -1)
	defer d.leave()
	return c.Claim.check(d)
}

// Command implements Body.
func (c *Complete) Command() command.Command {
	cmd := c.Cmd
	if c.Claim != nil {
		cmd.Claim = &c.Claim.Cmd
	}
	return cmd
}

// Answer implements Body.
func (c *Complete) Answer(b []byte, p *nodes.Proposed) []byte {
	return c.appendRest(appendTaskAnswer(b, p), p)
}

// appendRest appends the answer's fields after the task.
func (c *Complete) appendRest(b []byte, p *nodes.Proposed) []byte {
	if len(c.Cmd.Submit) > 0 {
		b = appendSubmitted(b, p.Result.Submitted, p.Result.Repeated)
	}
	if c.Claim != nil {
		b = c.appendClaimed(b, p)
	}
	return appendRepeated(b, p.Result.Repeated)
}

// appendSubmitted appends the outcome of the follow-up tasks.
func appendSubmitted(b []byte, done []fsm.Submitted, repeated bool) []byte {
	return jsonout.List(b, `,"submitted":`, len(done), func(b []byte, i int) []byte {
		b = jsonout.UintField(b, `{"id":`, done[i].Task.ID)
		return append(appendCreated(b, &done[i], repeated), '}')
	})
}

// appendClaimed appends what the claim took: a task or null, or with a limit the tasks.
func (c *Complete) appendClaimed(b []byte, p *nodes.Proposed) []byte {
	claims := p.Result.Claims
	if c.Claim.Many {
		return append(appendClaimedTasks(b, `,"claimed":{"tasks":`, p, claimsRepeated(&p.Result), c.Claim.Dependencies), '}')
	}
	b = append(b, `,"claimed":{"task":`...)
	if len(claims) == 0 {
		return append(b, "null}"...)
	}
	return append(appendClaimed(b, &claims[0], claimsRepeated(&p.Result), p.Stamp, c.Claim.Dependencies), '}')
}

// appendClaimedTasks appends a field with the claimed tasks.
func appendClaimedTasks(b []byte, name string, p *nodes.Proposed, repeated bool, on map[uint64]*Dependencies) []byte {
	claims := p.Result.Claims
	return jsonout.List(b, name, len(claims), func(b []byte, i int) []byte {
		return appendClaimed(b, &claims[i], repeated, p.Stamp, on)
	})
}

// claimsRepeated reports whether the claims in a complete's answer were answered before, to the complete itself or to
// another request with their claim_request_id.
func claimsRepeated(res *fsm.Result) bool { return res.Repeated || res.ClaimsRepeated }
