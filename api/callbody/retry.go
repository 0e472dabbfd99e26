package callbody

import (
	"math"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Retry is the body of POST /api/tasks/{id}/retry, which may be blank.
type Retry struct{ cmd command.Retry }

// NewRetry returns an empty body of that call about the task id, for Decode.
func NewRetry(id uint64) *Retry { return &Retry{cmd: command.Retry{ID: id}} }

func (c *Retry) setID(id uint64) { c.cmd.ID = id }

func (c *Retry) field(d *Decoder, name []byte) (bad *refuse.Refusal) {
	var n int64
	switch string(name) {
	case "claim_token":
		c.cmd.Token, bad = d.token()
	case "add_attempts":
		n, _, bad = d.Integer("add_attempts", 0, math.MaxInt32)
		c.cmd.AddAttempts = int32(n)
	default:
		bad = unknownOf[wire.Retry](d, name)
	}
	return bad
}

func (c *Retry) check(*Decoder) *refuse.Refusal { return nil }

// Command is that of Body.
func (c *Retry) Command() command.Command { return c.cmd }

// Answer is that of Body.
func (c *Retry) Answer(b []byte, p *nodes.Proposed) []byte { return taskAnswer(b, p) }

// Delete is a batch's op that deletes a task; the call itself has no body.
type Delete struct{ id uint64 }

func (c *Delete) setID(id uint64) { c.id = id }

func (c *Delete) field(d *Decoder, name []byte) *refuse.Refusal { return d.Unknown(name) }

func (c *Delete) check(*Decoder) *refuse.Refusal { return nil }

// Command is that of Body.
func (c *Delete) Command() command.Command { return command.Delete{ID: c.id} }

// Answer is that of Body.
func (c *Delete) Answer(b []byte, _ *nodes.Proposed) []byte {
	return append(b, `{"success":true,"deleted":1}`...)
}
