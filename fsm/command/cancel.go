package command

import (
	"github.com/claimq/claimq/fsm/wire"
)

// Cancel ends a task that is not claimed as cancelled; of a claimed one it is
// noted that this was asked. Of a parent it does so with each step, and ends the
// parent with the last.
type Cancel struct{ ID uint64 }

func (Cancel) kind() Kind { return KindCancel }

func (c Cancel) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// appendBody appends
//
//	message Cancel {
//	  uint64 id = 1;
//	}
func (c Cancel) appendBody(b []byte) []byte { return wire.PutID(b, 1, c.ID) }

func (Cancel) decode(r fieldReader) (Command, error) {
	var c Cancel
	for r.Next() {
		switch r.Num {
		case 1:
			c.ID = r.ID()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}
