package command

import (
	"fmt"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// SetNode records what the cluster knows of a node.
type SetNode struct{ Node record.NodeRecord }

func (SetNode) kind() Kind { return KindSetNode }

func (SetNode) about() About { return About{} }

func (c SetNode) needs() uint32 {
	if c.Node.Nonvoter {
		return record.LevelActs
	}
	return 0
}

// RemoveNode forgets a node.
type RemoveNode struct{ UUID string }

func (RemoveNode) kind() Kind { return KindRemoveNode }

func (RemoveNode) about() About { return About{} }

// SetLevel raises the feature level. A lower level than the current changes
// nothing.
type SetLevel struct {
	Level uint32
	By    string // as in SetType; of a Level that knows it
	// Defaults are the server's of a cluster that has no level yet, else nothing: one that
	// has data keeps its own. Of a Level that knows them.
	Defaults record.Defaults
	// Place is the least that places of the trail and versions of schedules are from
	// this entry on, 0 for no least: with it a new cluster's are above those that another
	// one has given out, whose backup it may get. Of a Level that knows it.
	Place uint64
}

func (SetLevel) kind() Kind { return KindSetLevel }

func (SetLevel) about() About { return About{} }

// needs asks for nothing of who raises to the level that knows the fields: who does not know
// them stops at it anyway.
func (c SetLevel) needs() uint32 {
	if c.Level < record.LevelPlaces && c.Place != 0 {
		return record.LevelPlaces
	}
	if c.Level < record.LevelActs && (c.By != "" || c.Defaults != record.Defaults{}) {
		return record.LevelActs
	}
	return 0
}

// code goes through the fields of
//
//	message SetNode {
//	  NodeRecord node = 1;
//	}
func (c SetNode) code(f fields) (Command, []byte, error) {
	if m, ok := f.Message(1, true); ok {
		c.Node.Code(&f.Fields)
		f.EndMessage(m)
	}
	return done(c, &f)
}

// code goes through the fields of
//
//	message RemoveNode {
//	  string uuid = 1;
//	}
func (c RemoveNode) code(f fields) (Command, []byte, error) {
	f.Text(1, &c.UUID)
	return done(c, &f)
}

// code goes through the fields of
//
//	message SetLevel {
//	  uint32 level = 1;
//	  string by = 2;              // name of the operator's key
//	  TypeSettings defaults = 3;  // the server's, if there is no level yet; without pause and limits
//	  uint64 place = 4;           // the least of the trail's places from then on
//	}
func (c SetLevel) code(f fields) (Command, []byte, error) {
	f.Uint32(1, &c.Level)
	if f.Reading && c.Level > record.FeatureLevel { // from there on the log may hold what it cannot apply
		f.Refuse(fmt.Errorf("%w: feature level %d, this one knows %d", wire.ErrUnknown, c.Level, record.FeatureLevel))
	}
	f.Text(2, &c.By)
	c.Defaults.Code(&f.Fields, 3)
	f.ID(4, &c.Place)
	return done(c, &f)
}
