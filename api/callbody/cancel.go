package callbody

import (
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Cancel is the body of POST /api/tasks/{id}/cancel, which has no fields and may be blank.
type Cancel struct{ about[command.Cancel] }

func (c *Cancel) setID(id uint64)                               { c.Cmd.ID = id }
func (c *Cancel) field(d *Decoder, name []byte) *refuse.Refusal { return d.Unknown(name) }

// Delete is the op of a batch that deletes a task; the call by itself has no body.
type Delete struct{ about[command.Delete] }

func (c *Delete) setID(id uint64)                               { c.Cmd.ID = id }
func (c *Delete) field(d *Decoder, name []byte) *refuse.Refusal { return d.Unknown(name) }

// Answer implements Body.
func (c *Delete) Answer(b []byte, _ *nodes.Proposed) []byte {
	return append(b, `{"success":true,"deleted":1}`...)
}
