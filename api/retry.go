package api

import (
	"math"

	"github.com/claimq/claimq/fsm"
)

// retryBody is the body of POST /api/tasks/{id}/retry, which may be blank.
type retryBody struct{ cmd fsm.Retry }

func newRetry(id uint64) *retryBody { return &retryBody{cmd: fsm.Retry{ID: id}} }

func (c *retryBody) setID(id uint64) { c.cmd.ID = id }

func (c *retryBody) field(d *decoder, name []byte) (bad *refusal) {
	var n int64
	switch string(name) {
	case "claim_token":
		c.cmd.Token, bad = d.token()
	case "add_attempts":
		n, _, bad = d.integer("add_attempts", 0, math.MaxInt32)
		c.cmd.AddAttempts = int32(n)
	default:
		bad = d.unknown(name)
	}
	return bad
}

func (c *retryBody) check(*decoder) *refusal { return nil }

func (c *retryBody) command() fsm.Command { return c.cmd }

func (c *retryBody) answer(b []byte, p *fsm.Proposed) []byte { return taskAnswer(b, p) }

// deleteBody is a batch's op that deletes a task; the call itself has no body.
type deleteBody struct{ id uint64 }

func (c *deleteBody) setID(id uint64) { c.id = id }

func (c *deleteBody) field(d *decoder, name []byte) *refusal { return d.unknown(name) }

func (c *deleteBody) check(*decoder) *refusal { return nil }

func (c *deleteBody) command() fsm.Command { return fsm.Delete{ID: c.id} }

func (c *deleteBody) answer(b []byte, _ *fsm.Proposed) []byte {
	return append(b, `{"success":true,"deleted":1}`...)
}
