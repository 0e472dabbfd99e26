package command

import (
	"math"

	"github.com/claimq/claimq/fsm/record"
)

// Tick advances the clocks and does a bounded amount of what is due.
type Tick struct{}

func (Tick) kind() Kind { return KindTick }

func (Tick) about() About { return About{} }

// code reads or writes the fields of
//
//	message Tick {}
func (c Tick) code(f fields) (Command, fields) {
	return done(c, &f)
}

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

// code reads or writes the fields of
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
func (c Expire) code(f fields) (Command, fields) {
	for e := record.Each(); record.Next(&e, &f.Fields, 1, &c.Items, math.MaxInt); {
		l := &c.Items[e.At]
		f.ID(1, &l.TaskID)
		f.ID(2, &l.Token)
		f.Uint32(3, &l.Seq)
	}
	return done(c, &f)
}

// Evict removes a bounded number of ended tasks until the rest take no more than Bytes by
// the machine's estimate: the oldest completed and cancelled ones first, then the oldest
// failed ones.
type Evict struct{ Bytes int64 }

func (Evict) kind() Kind { return KindEvict }

func (Evict) about() About { return About{} }

// code reads or writes the fields of
//
//	message Evict {
//	  int64 bytes = 1;  // what ended tasks may take
//	}
func (c Evict) code(f fields) (Command, fields) {
	f.Int(1, &c.Bytes)
	return done(c, &f)
}

// Forget drops remembered claim requests and removed tasks before their time until they
// take no more than Bytes by the machine's estimate. It drops a bounded number, those due
// first. A request with a live claim stays.
type Forget struct{ Bytes int64 }

func (Forget) kind() Kind { return KindForget }

func (Forget) about() About { return About{} }

// code reads or writes the fields of
//
//	message Forget {
//	  int64 bytes = 1;  // what is remembered of removed tasks and of claim requests may take
//	}
func (c Forget) code(f fields) (Command, fields) {
	f.Int(1, &c.Bytes)
	return done(c, &f)
}

// Checkpoint changes nothing. Each node records the hash of its state at the entry's index,
// so that the leader can compare them.
type Checkpoint struct{}

func (Checkpoint) kind() Kind { return KindCheckpoint }

func (Checkpoint) about() About { return About{} }

// code reads or writes the fields of
//
//	message Checkpoint {}
func (c Checkpoint) code(f fields) (Command, fields) {
	return done(c, &f)
}
