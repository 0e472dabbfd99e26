package codec

import (
	"bytes"
	"math"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Cancel is the body of POST /api/tasks/{id}/cancel, which has no fields and may be blank.
type Cancel struct{ body[command.Cancel] }

func (c *Cancel) setID(id uint64)                               { c.Cmd.ID = id }
func (c *Cancel) field(d *Decoder, name []byte) *refuse.Refusal { return d.Unknown(name) }

// Delete is the op of a batch that deletes a task; the call by itself has no body.
type Delete struct{ body[command.Delete] }

func (c *Delete) setID(id uint64)                               { c.Cmd.ID = id }
func (c *Delete) field(d *Decoder, name []byte) *refuse.Refusal { return d.Unknown(name) }

// Answer implements Body.
func (c *Delete) Answer(b []byte, _ *nodes.Proposed) []byte {
	return append(b, `{"success":true,"deleted":1}`...)
}

// Retry is the body of POST /api/tasks/{id}/retry, which may be blank.
type Retry struct{ body[command.Retry] }

func (c *Retry) setID(id uint64) { c.Cmd.ID = id }

func (c *Retry) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	var n int64
	switch string(name) {
	case "claim_token":
		c.Cmd.Token, bad = d.token()
	case "add_attempts":
		n, _, bad = d.Integer("add_attempts", 0, math.MaxInt32)
		c.Cmd.AddAttempts = int32(n)
	default:
		bad = unknownOf[wire.Retry](d, name)
	}
	return bad
}

// Signal is the body of POST /api/tasks/{id}/signal, which may be blank.
type Signal struct{ body[command.Signal] }

func (c *Signal) setID(id uint64) { c.Cmd.ID = id }

func (c *Signal) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	switch string(name) {
	case "signal":
		c.Cmd.Body, bad = d.raw("signal", wire.SignalBytes)
	default:
		bad = d.unknownAmong(name, "signal")
	}
	return bad
}

// Answer implements Body.
func (c *Signal) Answer(b []byte, p *nodes.Proposed) []byte {
	b = appendTaskAnswer(b, p)
	if p.Result.Repeated && !bytes.Equal(p.Result.Task.Opts().Signal, c.Cmd.Body) {
		b = append(b, `,"same_signal":false`...)
	}
	return appendRepeated(b, p.Result.Repeated)
}

// Patch is the body of PATCH /api/tasks/{id}. null clears a field.
type Patch struct{ body[command.Patch] }

func (c *Patch) setID(id uint64) { c.Cmd.ID = id }

func (c *Patch) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	var n int64
	switch string(name) {
	case "priority":
		n, _, bad = d.Integer("priority", math.MinInt32, math.MaxInt32)
		c.Cmd.Priority, c.Cmd.SetPriority = int32(n), true
	case "run_at":
		c.Cmd.RunAt, _, bad = d.instant("run_at")
		c.Cmd.SetRunAt = true
	case "labels":
		c.Cmd.Labels, bad = d.labels()
		c.Cmd.SetLabels = true
	case "share_key":
		c.Cmd.ShareKey, _, bad = d.key("share_key", wire.ShareKeyMax)
		c.Cmd.SetShareKey = true
	default:
		bad = d.unknownAmong(name, "priority", "run_at", "labels", "share_key")
	}
	return bad
}

func (c *Patch) check(d *Decoder) *refuse.Refusal {
	return d.changes(c.Cmd.SetPriority || c.Cmd.SetRunAt || c.Cmd.SetLabels || c.Cmd.SetShareKey, "priority, run_at, labels and share_key")
}
