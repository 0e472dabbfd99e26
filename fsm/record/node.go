package record

import (
	"crypto/sha256"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// NodeRecord describes a node of the cluster. It is replicated so that every
// node can find the others.
type NodeRecord struct {
	UUID     string // its identity, and its ServerID in Raft
	NodeID   string // the name given by the operator
	PeerAddr string // advertised host:port of the peer port
	HTTPAddr string // advertised URL of the API, as http://host:port
	Version  string // of the binary
	Level    uint32 // highest feature level that the binary knows
	// Nonvoter says that an operator wants the node to stay without a vote.
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

// Bounds of join tokens.
const (
	// JoinTokensMax bounds the tokens that have not expired.
	JoinTokensMax = 16
	// JoinTokenUsesMax bounds the nodes that may join with one.
	JoinTokenUsesMax = 32
	// JoinTokenLifeMax is the maximum lifetime in milliseconds: 30 days.
	JoinTokenLifeMax = 30 * 24 * 3_600_000

	// joinTokenIDBytes is the number of bytes of the hash in the id.
	joinTokenIDBytes = 6
)

// JoinToken lets nodes that present it join without a separate call by an operator. A
// *JoinToken from a Machine is read-only and never changes.
type JoinToken struct {
	Hash      []byte   // SHA-256 of the token, which itself is not stored
	CreatedAt int64    // by T
	ExpiresAt int64    // by T; then it is removed
	Uses      int32    // how many nodes may join, 1 to JoinTokenUsesMax
	UsedBy    []string // UUIDs of the nodes that joined, in order; at most Uses
}

// ID returns the token's id: the first 12 hex digits of its hash.
func (t *JoinToken) ID() string { return fmt.Sprintf("%x", t.Hash[:joinTokenIDBytes]) }

// joinTokens reads or writes the repeated field num.
func (f *Fields) joinTokens(num protowire.Number, tokens *[]*JoinToken) {
	for e := Each(); Next(&e, f, num, tokens, math.MaxInt); {
		if f.Reading {
			(*tokens)[e.At] = &JoinToken{}
		}
		t := (*tokens)[e.At]
		f.Bytes(1, &t.Hash)
		f.Int(2, &t.CreatedAt)
		f.Int(3, &t.ExpiresAt)
		f.Sint(4, &t.Uses)
		f.Strings(5, &t.UsedBy)
		if f.Reading && len(t.Hash) != sha256.Size {
			f.Fail("a join token without a hash")
		}
	}
}
