package command

import (
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// Hold names a claim as its worker does. Token 0 means that the worker sent
// none: then only WorkerID is checked.
type Hold struct {
	ID       uint64
	WorkerID string
	Token    uint64
}

// about is what the commands of a claim's worker are about.
func (h Hold) about() About {
	return About{Known: true, ID: h.ID, WorkerID: h.WorkerID, Changes: 1}
}

// Fail ends the attempt: the task becomes pending when it has attempts left,
// else failed.
type Fail struct {
	Hold
	Error string // at most 16 KiB, cut by the caller
	// RetryInMS, if RetryIn is set, is how long the task waits in place of its
	// backoff.
	RetryIn   bool
	RetryInMS int64
	Permanent bool // failed, whatever attempts are left
}

func (Fail) kind() Kind { return KindFail }

func (c Fail) needs() uint32 {
	if c.RetryIn || c.RetryInMS != 0 || c.Permanent {
		return record.LevelLife
	}
	return 0
}

// Extend moves the lease's end to LeaseMS (0: the claim's own length) from
// now, never to an earlier time.
type Extend struct {
	Hold
	LeaseMS  int64
	Progress []byte // JSON as given; nil leaves the last one
}

func (Extend) kind() Kind { return KindExtend }

func (c Extend) needs() uint32 {
	if c.Progress != nil {
		return record.LevelLife
	}
	return 0
}

// Release gives the task back; the attempt is not counted. It is not claimable
// for DelayMS.
type Release struct {
	Hold
	DelayMS int64
}

func (Release) kind() Kind { return KindRelease }

func (c Release) needs() uint32 {
	if c.DelayMS != 0 {
		return record.LevelLife
	}
	return 0
}

// appendHold appends what the commands of a claim's worker begin with.
func appendHold(b []byte, h Hold) []byte {
	b = wire.PutID(b, 1, h.ID)
	b = wire.PutString(b, 2, h.WorkerID)
	return wire.PutID(b, 3, h.Token)
}

// hold reads the field into h if it is one of Hold's, and reports whether it is.
func (r *fieldReader) hold(h *Hold) bool {
	switch r.Num {
	case 1:
		h.ID = r.ID()
	case 2:
		h.WorkerID = r.Name()
	case 3:
		h.Token = r.ID()
	default:
		return false
	}
	return true
}

// appendBody appends
//
//	message Fail {
//	  uint64 id = 1;
//	  string worker_id = 2;
//	  uint64 token = 3;
//	  string error = 4;
//	  bool retry_in = 5;
//	  int64 retry_in_ms = 6;  // in place of the backoff
//	  bool permanent = 7;
//	}
func (c Fail) appendBody(b []byte) []byte {
	b = appendHold(b, c.Hold)
	b = wire.PutString(b, 4, c.Error)
	b = wire.PutBool(b, 5, c.RetryIn)
	b = wire.PutInt(b, 6, c.RetryInMS)
	return wire.PutBool(b, 7, c.Permanent)
}

func (Fail) decode(r fieldReader) (Command, error) {
	var c Fail
	for r.Next() {
		switch {
		case r.hold(&c.Hold):
		case r.Num == 4:
			c.Error = r.Text()
		case r.Num == 5:
			c.RetryIn = r.Bool()
		case r.Num == 6:
			c.RetryInMS = r.Int64()
		case r.Num == 7:
			c.Permanent = r.Bool()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

// appendBody appends
//
//	message Extend {
//	  uint64 id = 1;
//	  string worker_id = 2;
//	  uint64 token = 3;
//	  int64 lease_ms = 4;  // 0 the claim's own
//	  bytes progress = 5;  // JSON as given
//	}
func (c Extend) appendBody(b []byte) []byte {
	b = appendHold(b, c.Hold)
	b = wire.PutInt(b, 4, c.LeaseMS)
	return wire.PutBytes(b, 5, c.Progress)
}

func (Extend) decode(r fieldReader) (Command, error) {
	var c Extend
	for r.Next() {
		switch {
		case r.hold(&c.Hold):
		case r.Num == 4:
			c.LeaseMS = r.Int64()
		case r.Num == 5:
			c.Progress = r.Bytes()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

// appendBody appends
//
//	message Release {
//	  uint64 id = 1;
//	  string worker_id = 2;
//	  uint64 token = 3;
//	  int64 delay_ms = 4;
//	}
func (c Release) appendBody(b []byte) []byte {
	b = appendHold(b, c.Hold)
	return wire.PutInt(b, 4, c.DelayMS)
}

func (Release) decode(r fieldReader) (Command, error) {
	var c Release
	for r.Next() {
		switch {
		case r.hold(&c.Hold):
		case r.Num == 4:
			c.DelayMS = r.Int64()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}
