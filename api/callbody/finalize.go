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
	processor
	cmd     command.Finalize
	outcome string // "" = none was given
	failed  bool   // error was given
}

// The outcomes of a finalization.
const (
	outcomeCompleted = "completed"
	outcomeFailed    = "failed"
	outcomeAllowed   = `"completed" or "failed"`
)

// NewFinalize returns an empty body of that call about the task id, for Decode.
func NewFinalize(id uint64) *Finalize { return &Finalize{cmd: command.Finalize{ID: id}} }

func (c *Finalize) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	switch string(name) {
	case "processor_id":
		c.processorID, bad = d.processorID()
	case "claim_token":
		c.cmd.Token, bad = d.token()
	case "outcome":
		c.outcome, bad = d.outcome()
	case "result":
		c.cmd.Result, bad = d.raw("result", d.limits.ValueBytes)
	case "error":
		c.cmd.Error, c.failed, bad = d.errorText()
	default:
		bad = unknownOf[wire.Finalize](d, name)
	}
	return bad
}

// outcome reads an outcome, "" if it is null.
func (d *Decoder) outcome() (string, *refuse.Refusal) {
	s, ok, bad := d.Text("outcome", outcomeAllowed)
	if !ok || bad != nil {
		return "", bad
	}
	switch string(s) {
	case outcomeCompleted:
		return outcomeCompleted, nil
	case outcomeFailed:
		return outcomeFailed, nil
	}
	return "", d.Invalid("outcome", outcomeAllowed)
}

func (c *Finalize) check(d *Decoder) *refuse.Refusal {
	if bad := c.processor.check(d); bad != nil {
		return bad
	}
	wrong := func(field, outcome string) *refuse.Refusal {
		return &refuse.Refusal{
			Code: d.code, Field: field, Text: field + " is only for the outcome " + outcome,
			Advice: "Send result with the outcome completed, error with failed",
		}
	}
	c.cmd.Failed = c.outcome == outcomeFailed
	switch {
	case c.outcome == "":
		return d.Missing("outcome")
	case c.cmd.Failed && c.cmd.Result != nil:
		return wrong("result", outcomeCompleted)
	case !c.cmd.Failed && c.failed:
		return wrong("error", outcomeFailed)
	}
	return nil
}

// Command is that of Body.
func (c *Finalize) Command() command.Command {
	c.cmd.ProcessorID = c.processorID
	return c.cmd
}

// Answer is that of Body.
func (c *Finalize) Answer(b []byte, p *nodes.Proposed) []byte {
	b = jsonout.WordField(b, `{"success":true,"action":`, p.Result.Task.Status.String())
	b = jsonout.BoolField(b, `,"already_finalized":`, p.Result.Parent != nil && p.Result.Parent.AlreadyFinalized)
	b = append(b, `,"task":`...)
	return append(appendResultTask(b, p), '}')
}
