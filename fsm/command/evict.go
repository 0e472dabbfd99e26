package command

import (
	"github.com/claimq/claimq/fsm/wire"
)

// Evict removes ended tasks, a bounded number: the oldest completed and
// cancelled ones, then the oldest failed ones, until the ended tasks take no
// more than Bytes by the machine's estimate.
type Evict struct{ Bytes int64 }

func (Evict) kind() Kind { return KindEvict }

func (Evict) about() About { return About{} }

// appendBody appends
//
//	message Evict {
//	  int64 bytes = 1;  // what ended tasks may take
//	}
func (c Evict) appendBody(b []byte) []byte { return wire.PutInt(b, 1, c.Bytes) }

func (Evict) decode(r fieldReader) (Command, error) {
	var c Evict
	for r.Next() {
		switch r.Num {
		case 1:
			c.Bytes = r.Int64()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}
