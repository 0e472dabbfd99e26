package callbody

import (
	"math"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
)

// Retry is the body of POST /api/tasks/{id}/retry, which may be blank.
type Retry struct{ about[command.Retry] }

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
