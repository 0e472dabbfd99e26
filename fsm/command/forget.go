package command

import "github.com/claimq/claimq/fsm/wire"

// Forget forgets what is remembered of removed tasks and of claim requests before its
// time, a bounded number: those whose time would come first, until all that is
// remembered takes no more than Bytes by the machine's estimate. A claim request that
// has a claim which lives stays.
type Forget struct{ Bytes int64 }

func (Forget) kind() Kind { return KindForget }

func (Forget) about() About { return About{} }

// appendBody appends
//
//	message Forget {
//	  int64 bytes = 1;  // what is remembered of removed tasks and of claim requests may take
//	}
func (c Forget) appendBody(b []byte) []byte { return wire.PutInt(b, 1, c.Bytes) }

func (Forget) decode(r fieldReader) (Command, error) {
	var c Forget
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
