package codec

import (
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Bounds of timeout_seconds.
const (
	timeoutSecondsMin     = 1
	timeoutSecondsMax     = 3_600
	timeoutSecondsDefault = 30
)

// timeout reads timeout_seconds as milliseconds, 0 if it is null.
func (d *Decoder) timeout() (ms int64, bad *refuse.Refusal) {
	n, _, bad := d.Integer("timeout_seconds", timeoutSecondsMin, timeoutSecondsMax)
	return n * 1_000, bad
}

// ClaimFinalization is the body of POST /api/tasks/{id}/finalization/claim.
type ClaimFinalization struct {
	body[command.ClaimFinalization]
}

func (c *ClaimFinalization) setID(id uint64) { c.Cmd.ID = id }

func (c *ClaimFinalization) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	switch string(name) {
	case "processor_id":
		c.Cmd.ProcessorID, bad = d.processorID()
	case "timeout_seconds":
		c.Cmd.TimeoutMS, bad = d.timeout()
	default:
		bad = unknownOf[wire.FinalizationClaim](d, name)
	}
	return bad
}

func (c *ClaimFinalization) check(d *Decoder) *refuse.Refusal {
	if c.Cmd.TimeoutMS == 0 {
		c.Cmd.TimeoutMS = timeoutSecondsDefault * 1_000
	}
	return d.needs("processor_id", c.Cmd.ProcessorID)
}

// Answer implements Body.
func (c *ClaimFinalization) Answer(b []byte, p *nodes.Proposed) []byte {
	done := p.Result.Parent
	b = jsonout.BoolField(b, `{"success":true,"claimed":`, done.Outcome.Claimed())
	b = jsonout.StringOrNull(b, `,"already_claimed_by":`, done.Holder)
	b = jsonout.WordField(b, `,"task_state":`, done.State.String())
	b = jsonout.WordField(b, `,"message":`, FinalizationMessage(done.Outcome))
	return append(jsonout.UintOrNull(b, `,"claim_token":`, done.Token), '}')
}

// FinalizationReason returns why a claim was not granted, "" if it was.
func FinalizationReason(o fsm.FinalizationOutcome) string {
	switch o {
	case fsm.FinalizationClaimed, fsm.FinalizationExtended:
		return ""
	case fsm.FinalizationAlreadyClaimed:
		return "already_claimed"
	case fsm.FinalizationAlreadyDone:
		return "already_complete"
	case fsm.FinalizationNotReady:
		return "not_ready"
	}
	return "other"
}

// ExtendFinalization is the body of POST .../finalization/extend. Without timeout_seconds the claim's own timeout
// applies.
type ExtendFinalization struct {
	body[command.ExtendFinalization]
}

func (c *ExtendFinalization) setID(id uint64) { c.Cmd.ID = id }

func (c *ExtendFinalization) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	switch string(name) {
	case "processor_id":
		c.Cmd.ProcessorID, bad = d.processorID()
	case "timeout_seconds":
		c.Cmd.TimeoutMS, bad = d.timeout()
	default:
		bad = unknownOf[wire.FinalizationClaim](d, name)
	}
	return bad
}

func (c *ExtendFinalization) check(d *Decoder) *refuse.Refusal {
	return d.needs("processor_id", c.Cmd.ProcessorID)
}

// Answer implements Body.
func (c *ExtendFinalization) Answer(b []byte, p *nodes.Proposed) []byte {
	return append(jsonout.BoolField(b, `{"success":true,"extended":`, p.Result.Parent.Done), '}')
}

// ReleaseFinalization is the body of POST .../finalization/release.
type ReleaseFinalization struct {
	body[command.ReleaseFinalization]
}

func (c *ReleaseFinalization) setID(id uint64) { c.Cmd.ID = id }

func (c *ReleaseFinalization) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	if string(name) != "processor_id" {
		return d.Unknown(name)
	}
	c.Cmd.ProcessorID, bad = d.processorID()
	return bad
}

func (c *ReleaseFinalization) check(d *Decoder) *refuse.Refusal {
	return d.needs("processor_id", c.Cmd.ProcessorID)
}

// Answer implements Body.
func (c *ReleaseFinalization) Answer(b []byte, p *nodes.Proposed) []byte {
	return append(jsonout.BoolField(b, `{"success":true,"released":`, p.Result.Parent.Done), '}')
}

// Finalize is the body of POST /api/tasks/{id}/finalize.
type Finalize struct {
	body[command.Finalize]
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

// FinalizationMessage returns the contract's message for the outcome of a claim.
func FinalizationMessage(o fsm.FinalizationOutcome) string {
	switch o {
	case fsm.FinalizationClaimed:
		return "Successfully claimed for finalization"
	case fsm.FinalizationExtended:
		return "Claim extended"
	case fsm.FinalizationAlreadyClaimed:
		return refuse.AlreadyFinalizing
	case fsm.FinalizationAlreadyDone:
		return "Task already complete"
	case fsm.FinalizationNotReady:
		return "Task has no completed or failed steps"
	}
	return "Task not found"
}
