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

// SetLevel raises the feature level. A level that is not higher changes nothing.
type SetLevel struct {
	Level uint32
	By    string // as in SetType; needs a level that knows the field
	// Defaults are the server's defaults. They apply only to a cluster without a level,
	// because one that has data keeps its own. Needs a level that knows the field.
	Defaults record.Defaults
	// Place is a lower bound for trail places and schedule versions from this entry on; 0
	// means none. A new cluster uses it to stay above the numbers of another cluster whose
	// backup it may restore. Needs a level that knows the field.
	Place uint64
}

func (SetLevel) kind() Kind { return KindSetLevel }

func (SetLevel) about() About { return About{} }

// needs returns 0 when the new level itself knows the fields, because nodes that do not know
// them stop at that level anyway.
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
	if f.Reading && c.Level > record.FeatureLevel { // beyond it the log may hold what this node cannot apply
		f.Refuse(fmt.Errorf("%w: feature level %d, this one knows %d", wire.ErrUnknown, c.Level, record.FeatureLevel))
	}
	f.Text(2, &c.By)
	c.Defaults.Code(&f.Fields, 3)
	f.ID(4, &c.Place)
	return done(c, &f)
}
