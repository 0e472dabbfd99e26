package record

// NodeRecord describes a node of the cluster. It is replicated so that every
// node can find the others.
type NodeRecord struct {
	UUID     string // its identity, and its ServerID in Raft
	NodeID   string // the name given by the operator
	PeerAddr string // advertised host:port of the peer port
	HTTPAddr string // advertised URL of the API, as http://host:port
	Version  string // of the binary
	Level    uint32 // highest feature level that the binary knows
	// Nonvoter says that an operator wants the node to stay without a vote. It is set from
	// level 5 on.
	Nonvoter bool
}

// AppendNode appends the record.
func AppendNode(b []byte, n NodeRecord) []byte {
	f := To(b)
	n.Code(&f)
	return f.Out
}

// ReadNode reads the record.
func ReadNode(f *Fields) (n NodeRecord) {
	n.Code(f)
	_ = f.End() // the caller checks f.Err
	return n
}

// Code reads or writes the fields.
func (n *NodeRecord) Code(f *Fields) {
	f.Text(1, &n.UUID)
	f.Text(2, &n.NodeID)
	f.Text(3, &n.PeerAddr)
	f.Text(4, &n.HTTPAddr)
	f.Text(5, &n.Version)
	f.Uint32(6, &n.Level)
	f.Bool(7, &n.Nonvoter)
}
