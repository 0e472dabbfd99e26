package callbody

import (
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Cancel is the body of POST /api/tasks/{id}/cancel: it has no fields, and
// may be blank.
type Cancel struct{ id uint64 }

// NewCancel returns an empty body of that call about the task id, for Decode.
func NewCancel(id uint64) *Cancel { return &Cancel{id: id} }

func (c *Cancel) setID(id uint64) { c.id = id }

func (c *Cancel) field(d *Decoder, name []byte) *refuse.Refusal { return d.Unknown(name) }

func (c *Cancel) check(*Decoder) *refuse.Refusal { return nil }

// Command is that of Body.
func (c *Cancel) Command() command.Command { return command.Cancel{ID: c.id} }

// Answer is that of Body.
func (c *Cancel) Answer(b []byte, p *nodes.Proposed) []byte { return taskAnswer(b, p) }
