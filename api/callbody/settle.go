package callbody

import (
	"bytes"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/encode"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// held has the fields that all settling calls have.
type held struct{ hold command.Hold }

func holdOf(id uint64) held { return held{hold: command.Hold{ID: id}} }

// setID says which task the call is about.
func (h *held) setID(id uint64) { h.hold.ID = id }

// holdField reads worker_id and claim_token. ok is false for any other name.
func (h *held) holdField(d *Decoder, name []byte) (ok bool, bad *refuse.Refusal) {
	switch string(name) {
	case "worker_id":
		h.hold.WorkerID, bad = d.workerID()
	case "claim_token":
		h.hold.Token, bad = d.token()
	default:
		return false, nil
	}
	return true, bad
}

func (h *held) check(d *Decoder) *refuse.Refusal {
	if h.hold.WorkerID == "" {
		return d.Missing("worker_id")
	}
	return nil
}

// token reads a claim_token, 0 if it is null.
func (d *Decoder) token() (uint64, *refuse.Refusal) {
	n, _, bad := d.Integer("claim_token", 1, bound.IDMax)
	return uint64(n), bad
}

// Release is the body of POST /api/tasks/{id}/release.
type Release struct {
	held
	delayMS int64
}

// NewRelease returns an empty body of that call about the task id, for Decode.
func NewRelease(id uint64) *Release { return &Release{held: holdOf(id)} }

func (c *Release) field(d *Decoder, name []byte) *refuse.Refusal {
	ok, bad := c.holdField(d, name)
	switch {
	case ok:
		return bad
	case string(name) != "delay_ms":
		return d.unknownAmong(name, "worker_id", "claim_token", "delay_ms")
	}
	c.delayMS, _, bad = d.Integer("delay_ms", 0, bound.DelayMSMax)
	return bad
}

// Command is that of Body.
func (c *Release) Command() command.Command {
	return command.Release{Hold: c.hold, DelayMS: c.delayMS}
}

// Answer is that of Body.
func (c *Release) Answer(b []byte, p *nodes.Proposed) []byte { return taskAnswer(b, p) }

// Extend is the body of POST /api/tasks/{id}/extend.
type Extend struct {
	held
	leaseMS  int64
	progress []byte
}

// NewExtend returns an empty body of that call about the task id, for Decode.
func NewExtend(id uint64) *Extend { return &Extend{held: holdOf(id)} }

func (c *Extend) field(d *Decoder, name []byte) *refuse.Refusal {
	ok, bad := c.holdField(d, name)
	if ok {
		return bad
	}
	switch string(name) {
	case "lease_ms":
		c.leaseMS, _, bad = d.Integer("lease_ms", bound.LeaseMSMin, bound.LeaseMSMax)
	case "progress":
		c.progress, bad = d.raw("progress", bound.ProgressBytes)
	default:
		bad = d.unknownAmong(name, "worker_id", "claim_token", "lease_ms", "progress")
	}
	return bad
}

// Command is that of Body.
func (c *Extend) Command() command.Command {
	return command.Extend{Hold: c.hold, LeaseMS: c.leaseMS, Progress: c.progress}
}

// Answer is that of Body.
func (c *Extend) Answer(b []byte, p *nodes.Proposed) []byte { return c.rest(appendTaskAnswer(b, p), p) }

// rest appends what the answer has after the task.
func (c *Extend) rest(b []byte, p *nodes.Proposed) []byte {
	b = jsonout.IntField(b, `,"lease_remaining_ms":`, encode.LeaseLeft(p.Result.Task, p.Stamp))
	b = jsonout.BoolField(b, `,"cancel_requested":`, p.Result.Task.CancelRequested)
	return appendRepeated(b, p.Result.Repeated)
}

// Fail is the body of POST /api/tasks/{id}/fail.
type Fail struct {
	held
	Cmd   command.Fail
	given bool // error
}

// NewFail returns an empty body of that call about the task id, for Decode.
func NewFail(id uint64) *Fail { return &Fail{held: holdOf(id)} }

func (c *Fail) field(d *Decoder, name []byte) *refuse.Refusal {
	ok, bad := c.holdField(d, name)
	if ok {
		return bad
	}
	switch string(name) {
	case "error":
		c.Cmd.Error, c.given, bad = d.errorText()
	case "retry_in_ms":
		c.Cmd.RetryInMS, c.Cmd.RetryIn, bad = d.Integer("retry_in_ms", 0, bound.DelayMSMax)
	case "permanent":
		c.Cmd.Permanent, bad = d.Boolean("permanent")
	default:
		bad = d.unknownAmong(name, "worker_id", "claim_token", "error", "retry_in_ms", "permanent")
	}
	return bad
}

// errorText reads error, cut at the limit. given is false if it is null.
func (d *Decoder) errorText() (text string, given bool, bad *refuse.Refusal) {
	const allowed = "a string without U+0000"
	b, given, bad := d.Text("error", allowed)
	if bad != nil {
		return "", false, bad
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return "", false, d.Invalid("error", allowed)
	}
	return string(jsonout.Cut(b, d.limits.ErrorBytes)), given, nil
}

func (c *Fail) check(d *Decoder) *refuse.Refusal {
	if bad := c.held.check(d); bad != nil {
		return bad
	}
	switch {
	case !c.given:
		return d.Missing("error")
	case c.Cmd.Permanent && c.Cmd.RetryIn:
		return &refuse.Refusal{
			Code: wire.CodeInvalidRequest, Field: d.path("retry_in_ms"), Text: "permanent and retry_in_ms are both given",
			Advice: "Send retry_in_ms for a failure that may pass, permanent for one that will not",
		}
	}
	return nil
}

// Command is that of Body.
func (c *Fail) Command() command.Command {
	c.Cmd.Hold = c.hold
	return c.Cmd
}

// Answer is that of Body.
func (c *Fail) Answer(b []byte, p *nodes.Proposed) []byte { return taskAnswer(b, p) }
