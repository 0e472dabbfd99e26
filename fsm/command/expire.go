package command

import (
	"math"

	"github.com/claimq/claimq/fsm/wire"
)

// Expire ends claims whose lease has run out. An item takes effect only if its task is
// still claimed with that token and sequence number, so duplicates, items of a deposed
// leader and items that crossed an extend are harmless.
type Expire struct{ Items []Lease }

func (Expire) kind() Kind { return KindExpire }

func (c Expire) about() About { return About{Changes: len(c.Items)} }

// Lease identifies one state of one claim's lease.
type Lease struct {
	TaskID uint64
	Token  uint64
	// Seq grows with every extend of the claim, from 1.
	Seq uint32
	// EndU is when the lease ends by the lease clock. It is not encoded; Apply and
	// Machine.Leases set it for the leader's timers.
	EndU int64
}

// code goes through the fields of
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
func (c Expire) code(f fields) (Command, []byte, error) {
	for e := wire.Each(); wire.Next(&e, &f.Fields.Fields, 1, &c.Items, math.MaxInt); {
		l := &c.Items[e.At]
		f.ID(1, &l.TaskID)
		f.ID(2, &l.Token)
		f.Uint32(3, &l.Seq)
	}
	return done(c, &f)
}
