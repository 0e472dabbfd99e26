package command

import (
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/wire"
)

// SetTrail bounds what is kept of the trail; what is over it goes by whole
// chunks, with this entry and, if that is very much, those that follow.
type SetTrail struct {
	Bytes int64 // 1 MiB to 64 GiB
	AgeMS int64 // 1 minute or more
}

func (SetTrail) kind() Kind { return KindSetTrail }

func (SetTrail) about() About { return About{} }

// Tell tells of an operator's act in the trail and changes nothing else. A Kind
// that is not one of event.MemberAdded to KeysReloaded or BackupBegun to RestoreBroken is not told.
type Tell struct {
	Kind event.Kind
	By   string // as in SetType
	What string // what was done with what, in a few words
}

func (Tell) kind() Kind { return KindTell }

func (Tell) about() About { return About{} }

// appendBody appends
//
//	message SetTrail {
//	  int64 bytes = 1;
//	  int64 age_ms = 2;
//	}
func (c SetTrail) appendBody(b []byte) []byte {
	b = wire.PutInt(b, 1, c.Bytes)
	return wire.PutInt(b, 2, c.AgeMS)
}

func (SetTrail) decode(r fieldReader) (Command, error) {
	var c SetTrail
	for r.Next() {
		switch r.Num {
		case 1:
			c.Bytes = r.Int64()
		case 2:
			c.AgeMS = r.Int64()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

// appendBody appends
//
//	message Tell {
//	  uint32 kind = 1;  // Kind of package event
//	  string by = 2;    // name of the operator's key
//	  string what = 3;
//	}
func (c Tell) appendBody(b []byte) []byte {
	if c.Kind <= event.Last { // another would make an entry that no node can read
		b = wire.PutUint(b, 1, uint64(c.Kind))
	}
	b = wire.PutString(b, 2, c.By)
	return wire.PutString(b, 3, c.What)
}

func (Tell) decode(r fieldReader) (Command, error) {
	var c Tell
	for r.Next() {
		switch r.Num {
		case 1:
			c.Kind = event.Kind(r.Enum(uint64(event.Last)))
		case 2:
			c.By = r.Text()
		case 3:
			c.What = r.Text()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}
