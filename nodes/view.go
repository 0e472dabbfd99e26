package nodes

import "github.com/claimq/claimq/fsm"

// ClusterView is what one node sees of the cluster now.
type ClusterView struct {
	Leader       string // node id, "" = none known
	Term         uint64
	FeatureLevel uint32
	Nodes        []NodeView     // sorted by node id
	Restoring    *fsm.Restoring // what goes through the log of a restore; nil = none is under way
}

// NodeView is what the answering node sees of one node now.
type NodeView struct {
	fsm.NodeRecord
	Suffrage      string // "voter" or "nonvoter"
	State         string // "leader", "follower", "candidate", "unknown"
	LastContactMS int64  // -1 = never; 0 for the node itself
	ClockAheadMS  *int64 // of what most voters' wall clocks show; nil: not known
	AppliedIndex  uint64 // 0 = unknown
	// Room is what it has left; nil: it does not answer, or its version does not say.
	Room *NodeRoom
	// Zones are the time zones that it goes by; nil: it does not answer, or its version does
	// not say.
	Zones *Zones
	// TakesPart: it answers, hears a leader and has caught up, so it counts towards
	// a majority.
	TakesPart bool
	// Healthy: it takes part, and nothing is about to end that.
	Healthy bool
	// Problem is in words what keeps it from being healthy, or what a healthy node
	// needs all the same; "" if nothing.
	Problem string
}

// NodeRoom is what a node's state takes, and what is free on its disk, in bytes, each with
// the bound past which it takes no submits while it leads.
type NodeRoom struct {
	State, StateMax   int64
	DiskFree, DiskMin int64 // both 0: it does not know
}

// Zones are a release of the time zones: its name, as 2026f, and the beginning of the hash of
// all of them.
type Zones struct {
	Version string `json:"version"`
	Sum     string `json:"sum"`
}

// HashView is what the nodes' states hash to, at one index of the log.
type HashView struct {
	Index uint64 // 0 = no checkpoint yet
	Agree bool   // all nodes that answered have the same hash
	Nodes []NodeHash
}

// NodeHash is one node's; Hash is 32 digits of hex, "" if it has none at that
// index or does not answer.
type NodeHash struct {
	NodeID string
	Hash   string
}

// Operator is who asks a node for an act: the name of an API key, and the key itself, by
// which another node finds out for itself who that is. The zero value is nobody, where
// there are no keys. It is never part of a command.
type Operator struct {
	Name string
	Key  string
}
