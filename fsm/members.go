package fsm

import (
	"slices"
	"strconv"
	"strings"
)

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
	m.tellAct(EventNodeSet, c.Node.NodeID)
	return Result{}
}

// removeNode forgets a node. An unknown one changes nothing.
func (m *Machine) removeNode(c RemoveNode) Result {
	if at, known := m.findNode(c.UUID); known {
		nodeID := m.nodes[at].NodeID
		m.nodes = slices.Delete(slices.Clone(m.nodes), at, at+1)
		m.tellAct(EventNodeRemoved, nodeID)
	}
	return Result{}
}

// setLevel raises the feature level, never lowers it.
func (m *Machine) setLevel(c SetLevel) Result {
	if c.Level > m.header.Level {
		m.header.Level = c.Level
		m.tellBy(EventLevelRaised, strconv.FormatUint(uint64(c.Level), 10), c.By)
	}
	return Result{}
}

// Node returns what is recorded of the node, ok false if nothing is.
func (m *Machine) Node(uuid string) (n NodeRecord, ok bool) {
	at, known := m.findNode(uuid)
	if !known {
		return NodeRecord{}, false
	}
	return m.nodes[at], true
}

// Nodes returns the node records, sorted by UUID. The caller owns the slice.
func (m *Machine) Nodes() []NodeRecord { return slices.Clone(m.nodes) }

func (m *Machine) findNode(uuid string) (at int, known bool) {
	return slices.BinarySearchFunc(m.nodes, uuid, func(n NodeRecord, uuid string) int {
		return strings.Compare(n.UUID, uuid)
	})
}
