package codec

import (
	"strconv"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// OpCode returns the code with which the op's own call would be refused, or "".
func OpCode(body Body, res *fsm.Result) wire.Code {
	if claim, ok := body.(*Claim); ok && res.Code == "" && !claim.Many && len(res.Claims) == 0 {
		return wire.CodeNoPendingTasks
	}
	return wire.Code(res.Code)
}

// Batch is the body of POST /api/batch.
type Batch struct {
	atomic bool
	// Minimal says that the answer needs only ids and statuses of the tasks that ops are about.
	Minimal   bool
	RequestID string // claim_request_id
	Ops       []Body
}

// Command returns the command of the whole batch.
func (req *Batch) Command() command.Batch {
	cmd := command.Batch{Atomic: req.atomic, RequestID: req.RequestID, Ops: make([]command.Command, len(req.Ops))}
	for i, body := range req.Ops {
		cmd.Ops[i] = body.Command()
	}
	return cmd
}

// ClaimOf returns the claim that an op makes, or nil.
func ClaimOf(body Body) *Claim {
	switch c := body.(type) {
	case *Claim:
		return c
	case *Complete:
		return c.Claim
	}
	return nil
}

// DecodeBatch decodes the body of POST /api/batch. An invalid op makes the whole batch invalid.
func DecodeBatch(body []byte, limits *Limits) (Batch, *refuse.Refusal) {
	var req Batch
	d := NewDecoder(body, limits)
	defer d.Free()
	changes := 0
	bad := d.Fields(func(name []byte) (bad *refuse.Refusal) {
		switch string(name) {
		case "atomic":
			req.atomic, bad = d.Boolean("atomic")
		case "return":
			req.Minimal, bad = d.choice("return", wire.ReturnAll, wire.ReturnMinimal)
		case "claim_request_id":
			req.RequestID, _, bad = d.key("claim_request_id", wire.RequestMax)
		case "ops":
			_, bad = d.array("ops", "ops", d.limits.Items, func() *refuse.Refusal {
				op, bad := d.op()
				if bad == nil {
					changes += changesOf(op)
					req.Ops = append(req.Ops, op)
				}
				return bad
			})
		default:
			bad = unknownOf[wire.Batch](d, name)
		}
		return bad
	})
	switch {
	case bad != nil:
	case len(req.Ops) == 0:
		bad = d.Missing("ops")
	case changes > wire.ChangesMax:
		bad = d.refuse("ops", "The ops change up to "+strconv.Itoa(changes)+" tasks; at most "+strconv.Itoa(wire.ChangesMax)+" are allowed", "Send several batches")
	}
	return req, bad
}

// changesOf returns how many tasks an op can change.
func changesOf(op Body) int {
	n := 1
	switch op := op.(type) {
	case *SubmitOne:
		n = fsm.CountTasks([]fsm.NewTask{op.NewTask})
	case *Complete:
		n += fsm.CountTasks(op.Cmd.Submit)
	case *Claim:
		n = 0
	}
	if claim := ClaimOf(op); claim != nil {
		n += int(claim.Cmd.Limit)
	}
	return n
}

// newOp returns an empty body for an op of that name, or nil if there is no such op. setID takes its id; nil if it
// has none.
func newOp(name string) (body Body, setID func(id uint64)) {
	switch name {
	case "submit":
		return &SubmitOne{draft: newDraft()}, nil
	case "claim":
		claim := newClaimRequest()
		claim.noWait = true
		return &claim, nil
	}
	var op TaskBody
	switch name {
	case "complete":
		op = &Complete{}
	case "fail":
		op = &Fail{}
	case "extend":
		op = &Extend{}
	case "release":
		op = &Release{}
	case "retry":
		op = &Retry{}
	case "cancel":
		op = &Cancel{}
	case "delete":
		op = &Delete{}
	default:
		return nil, nil
	}
	return op, op.setID
}

// op reads one op of a batch.
func (d *Decoder) op() (Body, *refuse.Refusal) {
	if bad := d.beginItem(); bad != nil {
		return nil, bad
	}
	name, given := d.ahead("op")
	if !given {
		if bad := d.skipObject(); bad != nil {
			return nil, bad
		}
		return nil, d.Missing("op")
	}
	body, setID := newOp(name)
	if body == nil {
		return nil, d.Invalid("op", opsAllowed)
	}
	if _, ok := body.(*SubmitOne); ok {
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

// opFields reads the fields of an op: the fields of its call, and id if that call has one in its path.
func (d *Decoder) opFields(body Body, setID func(id uint64)) *refuse.Refusal {
	given := setID == nil
	for {
		name, more, bad := d.next()
		switch {
		case bad != nil:
			return bad
		case !more && !given:
			return d.Missing("id")
		case !more:
			return nil
		case string(name) == "op":
			bad = d.skip()
		case string(name) == "id" && setID != nil:
			var id int64
			if id, given, bad = d.Integer("id", 1, wire.IDMax); given {
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

const opsAllowed = `"submit", "claim", "complete", "fail", "extend", "release", "retry", "cancel" or "delete"`
