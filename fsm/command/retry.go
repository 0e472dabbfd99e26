package command

import (
	"github.com/claimq/claimq/fsm/wire"
)

// Retry makes a failed, cancelled or claimed task pending. AddAttempts is
// added to a limited MaxAttempts first. Token 0 means none was sent. Of a parent
// it retries the steps that failed or were cancelled, all of them or none.
type Retry struct {
	ID          uint64
	Token       uint64
	AddAttempts int32
}

func (Retry) kind() Kind { return KindRetry }

func (c Retry) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// Delete removes an ended task and frees its key. A parent takes its steps along.
type Delete struct{ ID uint64 }

func (Delete) kind() Kind { return KindDelete }

func (c Delete) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// appendBody appends
//
//	message Retry {
//	  uint64 id = 1;
//	  uint64 token = 2;
//	  int32 add_attempts = 3;
//	}
func (c Retry) appendBody(b []byte) []byte {
	b = wire.PutID(b, 1, c.ID)
	b = wire.PutID(b, 2, c.Token)
	return wire.PutInt(b, 3, int64(c.AddAttempts))
}

func (Retry) decode(r fieldReader) (Command, error) {
	var c Retry
	for r.Next() {
		switch r.Num {
		case 1:
			c.ID = r.ID()
		case 2:
			c.Token = r.ID()
		case 3:
			c.AddAttempts = r.Int32()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

// appendBody appends
//
//	message Delete {
//	  uint64 id = 1;
//	}
func (c Delete) appendBody(b []byte) []byte { return wire.PutID(b, 1, c.ID) }

func (Delete) decode(r fieldReader) (Command, error) {
	var c Delete
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
