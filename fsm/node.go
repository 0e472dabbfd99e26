package fsm

import "github.com/claimq/claimq/fsm/wire"

// NodeRecord is what the cluster knows of one of its nodes. It is replicated,
// so that every node can tell where another one is.
type NodeRecord struct {
	UUID     string // identity; the ServerID of Raft
	NodeID   string // the operator's name for it
	PeerAddr string // advertised host:port of the peer port
	HTTPAddr string // advertised URL of the API, as http://host:port
	Version  string // of the binary
	Level    uint32 // highest feature level that the binary knows
	// Nonvoter says that an operator wants it to stay without a vote. It is set
	// from level 5 on.
	Nonvoter bool
}

// FeatureLevel is the highest feature level that this binary knows. A new
// command type, or a field that changes what Apply does, raises it.
const FeatureLevel uint32 = 5

// ClusterView is what one node sees of the cluster now.
type ClusterView struct {
	Leader       string // node id, "" = none known
	Term         uint64
	FeatureLevel uint32
	Nodes        []NodeView // sorted by node id
	Restoring    *Restoring // what goes through the log of a restore; nil = none is under way
}

// NodeView is what the answering node sees of one node now.
type NodeView struct {
	NodeRecord
	Suffrage      string // "voter" or "nonvoter"
	State         string // "leader", "follower", "candidate", "unknown"
	LastContactMS int64  // -1 = never; 0 for the node itself
	ClockAheadMS  *int64 // of what most voters' wall clocks show; nil: not known
	AppliedIndex  uint64 // 0 = unknown
	// TakesPart: it answers, hears a leader and has caught up, so it counts towards
	// a majority.
	TakesPart bool
	// Healthy: it takes part, and nothing is about to end that.
	Healthy bool
	// Problem is in words what keeps it from being healthy, or what a healthy node
	// needs all the same; "" if nothing.
	Problem string
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

func appendNodeRecord(b []byte, n NodeRecord) []byte {
	b = wire.PutString(b, 1, n.UUID)
	b = wire.PutString(b, 2, n.NodeID)
	b = wire.PutString(b, 3, n.PeerAddr)
	b = wire.PutString(b, 4, n.HTTPAddr)
	b = wire.PutString(b, 5, n.Version)
	b = wire.PutUint(b, 6, uint64(n.Level))
	return wire.PutBool(b, 7, n.Nonvoter)
}

func decodeNodeRecord(r *fieldReader) (n NodeRecord) {
	for r.Next() {
		switch r.Num {
		case 1:
			n.UUID = r.Text()
		case 2:
			n.NodeID = r.Text()
		case 3:
			n.PeerAddr = r.Text()
		case 4:
			n.HTTPAddr = r.Text()
		case 5:
			n.Version = r.Text()
		case 6:
			n.Level = r.Uint32()
		case 7:
			n.Nonvoter = r.Bool()
		default:
			r.Unknown()
		}
	}
	return n
}

// Operator is who asks a node for an act: the name of an API key, and the key itself, by
// which another node finds out for itself who that is. The zero value is nobody, where
// there are no keys. It is never part of a command.
type Operator struct {
	Name string
	Key  string
}
