package codec

import (
	"bytes"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// holdField reads the fields of all settling calls, worker_id and claim_token. ok is false for any other name.
func (d *Decoder) holdField(name []byte, hold *command.Hold) (ok bool, bad *refuse.Refusal) {
	switch string(name) {
	case "worker_id":
		hold.WorkerID, bad = d.workerID()
	case "claim_token":
		hold.Token, bad = d.token()
	default:
		return false, nil
	}
	return true, bad
}

// token reads a claim_token, 0 if it is null.
func (d *Decoder) token() (uint64, *refuse.Refusal) {
	n, _, bad := d.Integer("claim_token", 1, wire.IDMax)
	return uint64(n), bad
}

// Release is the body of POST /api/tasks/{id}/release.
type Release struct{ body[command.Release] }

func (c *Release) setID(id uint64) { c.Cmd.ID = id }

func (c *Release) field(d *Decoder, name []byte) *refuse.Refusal {
	ok, bad := d.holdField(name, &c.Cmd.Hold)
	switch {
	case ok:
		return bad
	case string(name) != "delay_ms":
		return d.unknownAmong(name, "worker_id", "claim_token", "delay_ms")
	}
	c.Cmd.DelayMS, _, bad = d.Integer("delay_ms", 0, wire.DelayMSMax)
	return bad
}

func (c *Release) check(d *Decoder) *refuse.Refusal { return d.needs("worker_id", c.Cmd.WorkerID) }

// Extend is the body of POST /api/tasks/{id}/extend.
type Extend struct{ body[command.Extend] }

func (c *Extend) setID(id uint64) { c.Cmd.ID = id }

func (c *Extend) field(d *Decoder, name []byte) *refuse.Refusal {
	ok, bad := d.holdField(name, &c.Cmd.Hold)
	if ok {
		return bad
	}
	switch string(name) {
	case "lease_ms":
		c.Cmd.LeaseMS, _, bad = d.Integer("lease_ms", wire.LeaseMSMin, wire.LeaseMSMax)
	case "progress":
		c.Cmd.Progress, bad = d.raw("progress", wire.ProgressBytes)
	case "exact":
		c.Cmd.Exact, bad = d.Boolean("exact")
	default:
		bad = d.unknownAmong(name, "worker_id", "claim_token", "lease_ms", "progress", "exact")
	}
	return bad
}

func (c *Extend) check(d *Decoder) *refuse.Refusal { return d.needs("worker_id", c.Cmd.WorkerID) }

// Answer implements Body.
func (c *Extend) Answer(b []byte, p *nodes.Proposed) []byte {
	return c.appendRest(appendTaskAnswer(b, p), p)
}

// appendRest appends the answer's fields after the task.
func (c *Extend) appendRest(b []byte, p *nodes.Proposed) []byte {
	b = jsonout.IntField(b, `,"lease_remaining_ms":`, leaseLeft(p.Result.Task, p.Stamp))
	b = jsonout.BoolField(b, `,"cancel_requested":`, p.Result.Task.CancelRequested)
	return appendRepeated(b, p.Result.Repeated)
}

// Fail is the body of POST /api/tasks/{id}/fail.
type Fail struct {
	body[command.Fail]
	given bool // error was given
}

func (c *Fail) setID(id uint64) { c.Cmd.ID = id }

func (c *Fail) field(d *Decoder, name []byte) *refuse.Refusal {
	ok, bad := d.holdField(name, &c.Cmd.Hold)
	if ok {
		return bad
	}
	switch string(name) {
	case "error":
		c.Cmd.Error, c.given, bad = d.errorText()
	case "retry_in_ms":
		c.Cmd.RetryInMS, c.Cmd.RetryIn, bad = d.Integer("retry_in_ms", 0, wire.DelayMSMax)
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
	switch bad := d.needs("worker_id", c.Cmd.WorkerID); {
	case bad != nil:
		return bad
	case !c.given:
		return d.Missing("error")
	case c.Cmd.Permanent && c.Cmd.RetryIn:
		return d.refuse("retry_in_ms", "permanent and retry_in_ms are both given", "Send retry_in_ms for a failure that may pass, permanent for one that will not")
	}
	return nil
}
