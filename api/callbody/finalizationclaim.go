package callbody

import (
	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/encode"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// The bounds of timeout_seconds.
const (
	timeoutSecondsMin     = 1
	timeoutSecondsMax     = 3_600
	timeoutSecondsDefault = 30
)

// processor has the field that all calls about a finalization have.
type processor struct{ processorID string }

// processorID reads a processor_id, "" if it is null. Anything but a well-formed
// one has the contract's own words.
func (d *Decoder) processorID() (string, *refuse.Refusal) {
	s, ok, bad := d.Text("processor_id", "")
	switch {
	case bad != nil && bad.Syntax:
		return "", bad
	case bad != nil, ok && !bound.ValidProcessorID(s):
		return "", &refuse.Refusal{
			Code: d.code, Field: d.path("processor_id"), Text: "Invalid processor_id format",
			Advice: "Send a processor_id of 1 to 128 of A-Z a-z 0-9 _ . : -",
		}
	}
	return string(s), nil
}

func (c *processor) check(d *Decoder) *refuse.Refusal {
	if c.processorID == "" {
		return d.Missing("processor_id")
	}
	return nil
}

// timeout reads a timeout_seconds, in milliseconds, as it was before if it is
// null.
func (d *Decoder) timeout(before int64) (ms int64, bad *refuse.Refusal) {
	n, ok, bad := d.Integer("timeout_seconds", timeoutSecondsMin, timeoutSecondsMax)
	if !ok {
		return before, bad
	}
	return n * 1_000, nil
}

// ClaimFinalization is the body of POST /api/tasks/{id}/finalization/claim.
type ClaimFinalization struct {
	processor
	id        uint64
	timeoutMS int64
}

// NewClaimFinalization returns an empty body of that call about the task id, for Decode.
func NewClaimFinalization(id uint64) *ClaimFinalization {
	return &ClaimFinalization{id: id, timeoutMS: timeoutSecondsDefault * 1_000}
}

func (c *ClaimFinalization) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	switch string(name) {
	case "processor_id":
		c.processorID, bad = d.processorID()
	case "timeout_seconds":
		c.timeoutMS, bad = d.timeout(c.timeoutMS)
	default:
		bad = unknownOf[wire.FinalizationClaim](d, name)
	}
	return bad
}

// Command is that of Body.
func (c *ClaimFinalization) Command() command.Command {
	return command.ClaimFinalization{ID: c.id, ProcessorID: c.processorID, TimeoutMS: c.timeoutMS}
}

// Answer is that of Body.
func (c *ClaimFinalization) Answer(b []byte, p *nodes.Proposed) []byte {
	done := p.Result.Parent
	b = jsonout.BoolField(b, `{"success":true,"claimed":`, done.Outcome.Claimed())
	b = jsonout.StringOrNull(b, `,"already_claimed_by":`, done.Holder)
	b = jsonout.WordField(b, `,"task_state":`, done.State.String())
	b = jsonout.WordField(b, `,"message":`, encode.FinalizationMessage(done.Outcome))
	return append(jsonout.UintOrNull(b, `,"claim_token":`, done.Token), '}')
}

// FinalizationReason says why a claim was not got, "" if it was.
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

// ExtendFinalization is the body of POST .../finalization/extend.
type ExtendFinalization struct {
	processor
	id        uint64
	timeoutMS int64 // 0: the claim's own
}

// NewExtendFinalization returns an empty body of that call about the task id, for Decode.
func NewExtendFinalization(id uint64) *ExtendFinalization {
	return &ExtendFinalization{id: id}
}

func (c *ExtendFinalization) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	switch string(name) {
	case "processor_id":
		c.processorID, bad = d.processorID()
	case "timeout_seconds":
		c.timeoutMS, bad = d.timeout(0)
	default:
		bad = d.unknownAmong(name, "processor_id", "claim_token", "timeout_seconds")
	}
	return bad
}

// Command is that of Body.
func (c *ExtendFinalization) Command() command.Command {
	return command.ExtendFinalization{ID: c.id, ProcessorID: c.processorID, TimeoutMS: c.timeoutMS}
}

// Answer is that of Body.
func (c *ExtendFinalization) Answer(b []byte, p *nodes.Proposed) []byte {
	return append(jsonout.BoolField(b, `{"success":true,"extended":`, p.Result.Parent.Done), '}')
}

// ReleaseFinalization is the body of POST .../finalization/release.
type ReleaseFinalization struct {
	processor
	id uint64
}

// NewReleaseFinalization returns an empty body of that call about the task id, for Decode.
func NewReleaseFinalization(id uint64) *ReleaseFinalization {
	return &ReleaseFinalization{id: id}
}

func (c *ReleaseFinalization) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	if string(name) != "processor_id" {
		return d.Unknown(name)
	}
	c.processorID, bad = d.processorID()
	return bad
}

// Command is that of Body.
func (c *ReleaseFinalization) Command() command.Command {
	return command.ReleaseFinalization{ID: c.id, ProcessorID: c.processorID}
}

// Answer is that of Body.
func (c *ReleaseFinalization) Answer(b []byte, p *nodes.Proposed) []byte {
	return append(jsonout.BoolField(b, `{"success":true,"released":`, p.Result.Parent.Done), '}')
}
