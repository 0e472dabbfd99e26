package command

import (
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// ClaimFinalization claims the finalization of the parent ID for ProcessorID, or
// extends the claim that it has. It is accepted whatever the outcome, which is in
// Result.Parent.
type ClaimFinalization struct {
	ID          uint64
	ProcessorID string
	TimeoutMS   int64 // 1 s to 3,600 s
}

func (ClaimFinalization) kind() Kind { return KindClaimFinalization }

func (c ClaimFinalization) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// ExtendFinalization lets the claim of ProcessorID last TimeoutMS (0: its own
// length) from now, or longer if it does already.
type ExtendFinalization struct {
	ID          uint64
	ProcessorID string
	TimeoutMS   int64
}

func (ExtendFinalization) kind() Kind { return KindExtendFinalization }

func (c ExtendFinalization) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// ReleaseFinalization gives back the claim of ProcessorID.
type ReleaseFinalization struct {
	ID          uint64
	ProcessorID string
}

func (ReleaseFinalization) kind() Kind { return KindReleaseFinalization }

func (c ReleaseFinalization) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// Finalize ends the parent whose steps have ended, as completed or, if Failed, as
// failed. A claim is not needed, but another's stands against it. Token 0 means
// that none was sent.
type Finalize struct {
	ID          uint64
	ProcessorID string
	Token       uint64
	Failed      bool
	Result      []byte // JSON as given; nil = none
	Error       string // of Failed
}

func (Finalize) kind() Kind { return KindFinalize }

func (c Finalize) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// appendBody appends
//
//	message ClaimFinalization {
//	  uint64 id = 1;
//	  string processor_id = 2;
//	  int64 timeout_ms = 3;
//	}
func (c ClaimFinalization) appendBody(b []byte) []byte {
	b = wire.PutID(b, 1, c.ID)
	b = wire.PutString(b, 2, c.ProcessorID)
	return wire.PutInt(b, 3, c.TimeoutMS)
}

func (ClaimFinalization) decode(r fieldReader) (Command, error) {
	c := readFinalizationClaim(&r.Reader)
	return c, r.Err
}

// appendBody appends
//
//	message ExtendFinalization {
//	  uint64 id = 1;
//	  string processor_id = 2;
//	  int64 timeout_ms = 3;  // 0 the claim's own
//	}
func (c ExtendFinalization) appendBody(b []byte) []byte {
	b = wire.PutID(b, 1, c.ID)
	b = wire.PutString(b, 2, c.ProcessorID)
	return wire.PutInt(b, 3, c.TimeoutMS)
}

func (ExtendFinalization) decode(r fieldReader) (Command, error) {
	c := readFinalizationClaim(&r.Reader)
	return ExtendFinalization(c), r.Err
}

func readFinalizationClaim(r *record.Reader) (c ClaimFinalization) {
	for r.Next() {
		switch r.Num {
		case 1:
			c.ID = r.ID()
		case 2:
			c.ProcessorID = r.Text()
		case 3:
			c.TimeoutMS = r.Int64()
		default:
			r.Unknown()
		}
	}
	return c
}

// appendBody appends
//
//	message ReleaseFinalization {
//	  uint64 id = 1;
//	  string processor_id = 2;
//	}
func (c ReleaseFinalization) appendBody(b []byte) []byte {
	b = wire.PutID(b, 1, c.ID)
	return wire.PutString(b, 2, c.ProcessorID)
}

func (ReleaseFinalization) decode(r fieldReader) (Command, error) {
	var c ReleaseFinalization
	for r.Next() {
		switch r.Num {
		case 1:
			c.ID = r.ID()
		case 2:
			c.ProcessorID = r.Text()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

// appendBody appends
//
//	message Finalize {
//	  uint64 id = 1;
//	  string processor_id = 2;
//	  uint64 token = 3;   // 0 none was sent
//	  bool failed = 4;
//	  bytes result = 5;   // JSON as given
//	  string error = 6;
//	}
func (c Finalize) appendBody(b []byte) []byte {
	b = wire.PutID(b, 1, c.ID)
	b = wire.PutString(b, 2, c.ProcessorID)
	b = wire.PutID(b, 3, c.Token)
	b = wire.PutBool(b, 4, c.Failed)
	b = wire.PutBytes(b, 5, c.Result)
	return wire.PutString(b, 6, c.Error)
}

func (Finalize) decode(r fieldReader) (Command, error) {
	var c Finalize
	for r.Next() {
		switch r.Num {
		case 1:
			c.ID = r.ID()
		case 2:
			c.ProcessorID = r.Text()
		case 3:
			c.Token = r.ID()
		case 4:
			c.Failed = r.Bool()
		case 5:
			c.Result = r.Bytes()
		case 6:
			c.Error = r.Text()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}
