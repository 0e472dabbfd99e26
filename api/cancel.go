package api

import "github.com/claimq/claimq/fsm"

// cancelBody is the body of POST /api/tasks/{id}/cancel: it has no fields, and
// may be blank.
type cancelBody struct{ id uint64 }

func newCancel(id uint64) *cancelBody { return &cancelBody{id: id} }

func (c *cancelBody) setID(id uint64) { c.id = id }

func (c *cancelBody) field(d *decoder, name []byte) *refusal { return d.unknown(name) }

func (c *cancelBody) check(*decoder) *refusal { return nil }

func (c *cancelBody) command() fsm.Command { return fsm.Cancel{ID: c.id} }

func (c *cancelBody) answer(b []byte, p *fsm.Proposed) []byte { return taskAnswer(b, p) }
