package fsm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// SetNode records what the cluster knows of a node.
type SetNode struct{ Node record.NodeRecord }

func (SetNode) kind() kind   { return kindSetNode }
func (SetNode) about() About { return About{} }

func (c SetNode) needs() uint32 {
	if c.Node.Nonvoter {
		return record.LevelActs
	}
	return 0
}

func (c SetNode) applyTo(m *Machine) (Result, error) { return m.setNode(c), nil }

// RemoveNode forgets a node.
type RemoveNode struct{ UUID string }

func (RemoveNode) kind() kind                           { return kindRemoveNode }
func (RemoveNode) about() About                         { return About{} }
func (c RemoveNode) applyTo(m *Machine) (Result, error) { return m.removeNode(c), nil }

// SetLevel raises the feature level. A lower level than the current changes
// nothing.
type SetLevel struct {
	Level uint32
	By    string // as in SetType; of a Level that knows it
	// Defaults are the server's of a cluster that has no level yet, else nothing: one that
	// has data keeps its own. Of a Level that knows them.
	Defaults record.Defaults
}

func (SetLevel) kind() kind   { return kindSetLevel }
func (SetLevel) about() About { return About{} }

// needs asks for nothing of who raises to the level that knows the fields: who does not know
// them stops at it anyway.
func (c SetLevel) needs() uint32 {
	if c.Level < record.LevelActs && (c.By != "" || c.Defaults != record.Defaults{}) {
		return record.LevelActs
	}
	return 0
}

func (c SetLevel) applyTo(m *Machine) (Result, error) { return m.setLevel(c), nil }

// setNode records a node. The slice is replaced, never changed: a snapshot may
// share it.
func (m *Machine) setNode(c SetNode) Result {
	at, known := m.findNode(c.Node.UUID)
	if known && m.nodes[at] == c.Node {
		return Result{}
	}
	nodes := slices.Clone(m.nodes)
	if known {
		nodes[at] = c.Node
	} else {
		nodes = slices.Insert(nodes, at, c.Node)
	}
	m.nodes = nodes
	m.tellAct(event.NodeSet, c.Node.NodeID)
	return Result{}
}

// removeNode forgets a node. An unknown one changes nothing.
func (m *Machine) removeNode(c RemoveNode) Result {
	if at, known := m.findNode(c.UUID); known {
		nodeID := m.nodes[at].NodeID
		m.nodes = slices.Delete(slices.Clone(m.nodes), at, at+1)
		m.tellAct(event.NodeRemoved, nodeID)
	}
	return Result{}
}

// setLevel raises the feature level, never lowers it. The first one sets the defaults, too.
func (m *Machine) setLevel(c SetLevel) Result {
	if c.Level > m.header.Level {
		if m.header.Level == 0 {
			m.header.Defaults = c.Defaults
		}
		m.header.Level = c.Level
		m.tellBy(event.LevelRaised, strconv.FormatUint(uint64(c.Level), 10), c.By)
	}
	return Result{}
}

// Node returns what is recorded of the node, ok false if nothing is.
func (m *Machine) Node(uuid string) (n record.NodeRecord, ok bool) {
	at, known := m.findNode(uuid)
	if !known {
		return record.NodeRecord{}, false
	}
	return m.nodes[at], true
}

// Nodes returns the node records, sorted by UUID. The caller owns the slice.
func (m *Machine) Nodes() []record.NodeRecord { return slices.Clone(m.nodes) }

func (m *saved) findNode(uuid string) (at int, known bool) {
	return slices.BinarySearchFunc(m.nodes, uuid, func(n record.NodeRecord, uuid string) int {
		return strings.Compare(n.UUID, uuid)
	})
}

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
				r.Err = fmt.Errorf("%w: feature level %d, this one knows %d", ErrUnknownCommand, c.Level, record.FeatureLevel)
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
