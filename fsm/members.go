package fsm

import (
	"slices"
	"strconv"
	"strings"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// setNode records a node. The slice is replaced, never changed: a snapshot may
// share it.
func (m *Machine) setNode(c command.SetNode) Result {
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
func (m *Machine) removeNode(c command.RemoveNode) Result {
	if at, known := m.findNode(c.UUID); known {
		nodeID := m.nodes[at].NodeID
		m.nodes = slices.Delete(slices.Clone(m.nodes), at, at+1)
		m.tellAct(event.NodeRemoved, nodeID)
	}
	return Result{}
}

// setLevel raises the feature level, never lowers it. The first one sets the defaults, too.
func (m *Machine) setLevel(c command.SetLevel) Result {
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
