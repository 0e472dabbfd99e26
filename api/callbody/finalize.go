package callbody

import (
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Finalize is the body of POST /api/tasks/{id}/finalize.
type Finalize struct {
	about[command.Finalize]
	outcome string // "" = not given
	failed  bool   // error was given
}

// Outcomes of a finalization.
const (
	outcomeCompleted = "completed"
	outcomeFailed    = "failed"
	outcomeAllowed   = `"completed" or "failed"`
)

func (c *Finalize) setID(id uint64) { c.Cmd.ID = id }

func (c *Finalize) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	switch string(name) {
	case "processor_id":
		c.Cmd.ProcessorID, bad = d.processorID()
	case "claim_token":
		c.Cmd.Token, bad = d.token()
	case "outcome":
		c.outcome, bad = parsed(d, "outcome", outcomeAllowed, func(s string) (string, bool) {
			return s, s == outcomeCompleted || s == outcomeFailed
		})
	case "result":
		c.Cmd.Result, bad = d.raw("result", d.limits.ValueBytes)
	case "error":
		c.Cmd.Error, c.failed, bad = d.errorText()
	default:
		bad = unknownOf[wire.Finalize](d, name)
	}
	return bad
}

func (c *Finalize) check(d *Decoder) *refuse.Refusal {
	wrong := func(field, outcome string) *refuse.Refusal {
		return d.refuse(field, field+" is only for the outcome "+outcome, "Send result with the outcome completed, error with failed")
	}
	c.Cmd.Failed = c.outcome == outcomeFailed
	switch bad := d.needs("processor_id", c.Cmd.ProcessorID); {
	case bad != nil:
		return bad
	case c.outcome == "":
		return d.Missing("outcome")
	case c.Cmd.Failed && c.Cmd.Result != nil:
		return wrong("result", outcomeCompleted)
	case !c.Cmd.Failed && c.failed:
		return wrong("error", outcomeFailed)
	}
	return nil
}

// Answer implements Body.
func (c *Finalize) Answer(b []byte, p *nodes.Proposed) []byte {
	b = jsonout.WordField(b, `{"success":true,"action":`, p.Result.Task.Status.String())
	b = jsonout.BoolField(b, `,"already_finalized":`, p.Result.Parent != nil && p.Result.Parent.AlreadyFinalized)
	b = append(b, `,"task":`...)
	return append(appendResultTask(b, p), '}')
}
