package api

import (
	"strconv"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// finalizeBody is the body of POST /api/tasks/{id}/finalize.
type finalizeBody struct {
	processorBody
	cmd     fsm.Finalize
	outcome string // "" = none was given
	failed  bool   // error was given
}

// The outcomes of a finalization.
const (
	outcomeCompleted = "completed"
	outcomeFailed    = "failed"
	outcomeAllowed   = `"completed" or "failed"`
)

func newFinalize(id uint64) *finalizeBody { return &finalizeBody{cmd: fsm.Finalize{ID: id}} }

func (c *finalizeBody) field(d *decoder, name []byte) (bad *refusal) {
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
		bad = d.unknown(name)
	}
	return bad
}

// outcome reads an outcome, "" if it is null.
func (d *decoder) outcome() (string, *refusal) {
	s, ok, bad := d.text("outcome", outcomeAllowed)
	if !ok || bad != nil {
		return "", bad
	}
	switch string(s) {
	case outcomeCompleted:
		return outcomeCompleted, nil
	case outcomeFailed:
		return outcomeFailed, nil
	}
	return "", d.invalid("outcome", outcomeAllowed)
}

func (c *finalizeBody) check(d *decoder) *refusal {
	if bad := c.processorBody.check(d); bad != nil {
		return bad
	}
	wrong := func(field, outcome string) *refusal {
		return &refusal{
			code: d.code, field: field, text: field + " is only for the outcome " + outcome,
			advice: "Send result with the outcome completed, error with failed",
		}
	}
	c.cmd.Failed = c.outcome == outcomeFailed
	switch {
	case c.outcome == "":
		return d.missing("outcome")
	case c.cmd.Failed && c.cmd.Result != nil:
		return wrong("result", outcomeCompleted)
	case !c.cmd.Failed && c.failed:
		return wrong("error", outcomeFailed)
	}
	return nil
}

func (c *finalizeBody) command() fsm.Command {
	c.cmd.ProcessorID = c.processorID
	return c.cmd
}

func (c *finalizeBody) answer(b []byte, p *fsm.Proposed) []byte {
	b = append(b, `{"success":true,"action":"`...)
	b = append(b, p.Result.Task.Status.String()...)
	b = append(b, `","already_finalized":`...)
	b = strconv.AppendBool(b, p.Result.Parent != nil && p.Result.Parent.AlreadyFinalized)
	b = append(b, `,"task":`...)
	return append(appendResultTask(b, p), '}')
}

// refuseFinalize words the refusal of a finalize. Who stands against it is who has
// the claim.
func refuseFinalize(f *refusal, res *fsm.Result) {
	if res.Parent != nil {
		f.holder = res.Parent.Holder
	}
	switch f.code {
	case wire.CodeTaskNotClaimable:
		f.text, f.advice = "Task has no steps", "Settle it as any task: only a task with steps is finalized"
	case wire.CodeTaskAlreadyClaimed:
		f.text, f.advice = finalizationMessage(fsm.FinalizationAlreadyClaimed), "Leave it to the processor in worker_id, or wait until its claim has ended"
	}
}
