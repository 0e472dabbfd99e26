package nodes

import "github.com/claimq/claimq/fsm"

// ClusterView is one node's current view of the cluster.
type ClusterView struct {
	Leader       string // node id, "": unknown
	Term         uint64
	FeatureLevel uint32
	Nodes        []NodeView     // sorted by node id
	Restoring    *fsm.Restoring // the restore under way, or nil
}

// NodeView is the answering node's current view of one node.
type NodeView struct {
	fsm.NodeRecord
	Suffrage      string // "voter" or "nonvoter"
	State         string // "leader", "follower", "candidate", "unknown"
	LastContactMS int64  // -1: never; 0 for the node itself
	ClockAheadMS  *int64 // relative to most voters' wall clocks; nil: unknown
	AppliedIndex  uint64 // 0: unknown
	// Room is its remaining room; nil: it does not answer, or its version does not report it.
	Room *NodeRoom
	// Zones are its time zones; nil: it does not answer, or its version does not report them.
	Zones *Zones
	// TakesPart says that it answers, hears a leader and has caught up, so that it counts for a majority.
	TakesPart bool
	// Healthy says that it takes part, and nothing is about to end that.
	Healthy bool
	// Problem says why it is not healthy, or what a healthy node still needs; "" if nothing.
	Problem string
}

// NodeRoom is the size of a node's state and the free space on its disk, in bytes, each with the bound beyond which
// it accepts no submits as leader.
type NodeRoom struct {
	State, StateMax   int64
	DiskFree, DiskMin int64 // both 0: unknown
}

// Zones identify a release of the time zones: its name, such as 2026f, and the beginning of a hash of all of them.
type Zones struct {
	Version string `json:"version"`
	Sum     string `json:"sum"`
}

// HashView has the hashes of the nodes' states at one index of the log.
type HashView struct {
	Index uint64 // 0: no checkpoint yet
	Agree bool   // all nodes that answered have the same hash
	Nodes []NodeHash
}

// NodeHash is the hash of one node, 32 digits of hex; "" if it has none at that index or does not answer.
type NodeHash struct {
	NodeID string
	Hash   string
}

// Operator is the operator of a call: the name of an API key, and the key itself, so that another node can check it.
// The zero value is used where there are no keys. It is never part of a command.
type Operator struct {
	Name string
	Key  string
}
