package command

import (
	"github.com/claimq/claimq/fsm/event"
)

// SetTrail bounds the trail. Older chunks beyond the bound are dropped with this entry and, if
// there are many, with the entries that follow.
type SetTrail struct {
	Bytes int64 // 1 MiB to 64 GiB
	AgeMS int64 // 1 minute or more
}

func (SetTrail) kind() Kind { return KindSetTrail }

func (SetTrail) about() About { return About{} }

// Tell records an operator's action in the trail and changes nothing else. Only kinds from
// event.MemberAdded to KeysReloaded and from BackupBegun to RestoreBroken are recorded.
type Tell struct {
	Kind event.Kind
	By   string // as in SetType
	What string // what was done, in a few words
}

func (Tell) kind() Kind { return KindTell }

func (Tell) about() About { return About{} }

// code reads or writes the fields of
//
//	message SetTrail {
//	  int64 bytes = 1;
//	  int64 age_ms = 2;
//	}
func (c SetTrail) code(f fields) (Command, fields) {
	f.Int(1, &c.Bytes)
	f.Int(2, &c.AgeMS)
	return done(c, &f)
}

// code reads or writes the fields of
//
//	message Tell {
//	  uint32 kind = 1;  // Kind of package event
//	  string by = 2;    // name of the operator's key
//	  string what = 3;
//	}
func (c Tell) code(f fields) (Command, fields) {
	if c.Kind > event.Last { // another value would make an entry that no node can read
		c.Kind = 0
	}
	f.Enum(1, (*uint8)(&c.Kind), uint8(event.Last))
	f.Text(2, &c.By)
	f.Text(3, &c.What)
	return done(c, &f)
}
