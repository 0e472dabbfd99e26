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
}

func (SetLevel) kind() Kind { return KindSetLevel }

func (SetLevel) about() About { return About{} }

// needs asks for nothing of who raises to the level that knows the fields: who does not know
// them stops at it anyway.
func (c SetLevel) needs() uint32 {
	if c.Level < record.LevelActs && (c.By != "" || c.Defaults != record.Defaults{}) {
		return record.LevelActs
	}
	return 0
}

// appendBody appends
//
//	message SetNode {
//	  NodeRecord node = 1;
//	}
func (c SetNode) appendBody(b []byte) []byte {
	mark := len(b)
	b, start := wire.BeginMessage(b, 1)
	return wire.EndOptional(record.AppendNode(b, c.Node), mark, start)
}

func (SetNode) decode(r fieldReader) (Command, error) {
	var c SetNode
	for r.Next() {
		switch r.Num {
		case 1:
			in := record.ReaderOf(r.Single())
			c.Node = record.DecodeNode(&in)
			r.Within(in.Err)
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

// appendBody appends
//
//	message RemoveNode {
//	  string uuid = 1;
//	}
func (c RemoveNode) appendBody(b []byte) []byte { return wire.PutString(b, 1, c.UUID) }

func (RemoveNode) decode(r fieldReader) (Command, error) {
	var c RemoveNode
	for r.Next() {
		switch r.Num {
		case 1:
			c.UUID = r.Text()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

// appendBody appends
//
//	message SetLevel {
//	  uint32 level = 1;
//	  string by = 2;              // name of the operator's key
//	  TypeSettings defaults = 3;  // the server's, if there is no level yet; without pause and limits
//	}
func (c SetLevel) appendBody(b []byte) []byte {
	b = wire.PutUint(b, 1, uint64(c.Level))
	b = wire.PutString(b, 2, c.By)
	return c.Defaults.Append(b, 3)
}

// decode refuses a level that this version does not know: from there on
// the log may hold what it cannot apply.
func (SetLevel) decode(r fieldReader) (Command, error) {
	var c SetLevel
	for r.Next() {
		switch r.Num {
		case 1:
			c.Level = r.Uint32()
			if c.Level > record.FeatureLevel && r.Err == nil {
				r.Err = fmt.Errorf("%w: feature level %d, this one knows %d", wire.ErrUnknown, c.Level, record.FeatureLevel)
			}
		case 2:
			c.By = r.Text()
		case 3:
			c.Defaults = r.Defaults()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}
