package record

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

// AppendNode appends the record.
func AppendNode(b []byte, n NodeRecord) []byte {
	b = wire.PutString(b, 1, n.UUID)
	b = wire.PutString(b, 2, n.NodeID)
	b = wire.PutString(b, 3, n.PeerAddr)
	b = wire.PutString(b, 4, n.HTTPAddr)
	b = wire.PutString(b, 5, n.Version)
	b = wire.PutUint(b, 6, uint64(n.Level))
	return wire.PutBool(b, 7, n.Nonvoter)
}

// DecodeNode reads the record.
func DecodeNode(r *Reader) (n NodeRecord) {
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
