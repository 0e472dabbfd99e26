package command

import (
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// Expire ends the claims whose lease has run out. An item changes nothing
// unless its task is still claimed with that token and that sequence number:
// so duplicates, items of a deposed leader and items that crossed an extend
// are harmless.
type Expire struct{ Items []Lease }

func (Expire) kind() Kind { return KindExpire }

func (c Expire) about() About { return About{Changes: len(c.Items)} }

// Lease identifies one state of one claim's lease.
type Lease struct {
	TaskID uint64
	Token  uint64
	// Seq grows with every extend of the claim, from 1.
	Seq uint32
	// EndU is when the lease ends by the lease clock. It is not part of the
	// command; Apply and Machine.Leases fill it in for the leader's timers.
	EndU int64
}

// appendBody appends
//
//	message Expire {
//	  repeated Lease items = 1;
//	}
//
//	message Lease {
//	  uint64 task_id = 1;
//	  uint64 token = 2;
//	  uint32 seq = 3;  // grows with every extend, from 1
//	}
func (c Expire) appendBody(b []byte) []byte {
	for _, l := range c.Items {
		var start int
		b, start = wire.BeginMessage(b, 1)
		b = wire.PutID(b, 1, l.TaskID)
		b = wire.PutID(b, 2, l.Token)
		b = wire.EndLength(wire.PutUint(b, 3, uint64(l.Seq)), start)
	}
	return b
}

func (Expire) decode(r fieldReader) (Command, error) {
	var c Expire
	for r.Next() {
		switch r.Num {
		case 1:
			if c.Items == nil {
				c.Items = make([]Lease, 0, r.Run())
			}
			in := record.ReaderOf(r.Raw())
			c.Items = append(c.Items, decodeExpired(&in))
			r.Within(in.Err)
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

func decodeExpired(r *record.Reader) (l Lease) {
	for r.Next() {
		switch r.Num {
		case 1:
			l.TaskID = r.ID()
		case 2:
			l.Token = r.ID()
		case 3:
			l.Seq = r.Uint32()
		default:
			r.Unknown()
		}
	}
	return l
}
