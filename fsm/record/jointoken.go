package record

import (
	"crypto/sha256"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/wire"
)

// Bounds of join tokens.
const (
	// JoinTokensMax bounds those that have not expired.
	JoinTokensMax = 16
	// JoinTokenUsesMax bounds the nodes that may come by one.
	JoinTokenUsesMax = 32
	// JoinTokenLifeMax is how long one lives at most, in milliseconds: 30 days.
	JoinTokenLifeMax = 30 * 24 * 3_600_000

	// joinTokenIDBytes is how much of the hash names a token.
	joinTokenIDBytes = 6
)

// JoinToken lets nodes that show it join without an operator's call for each. A
// *JoinToken that a Machine hands out is read-only, and never changed.
type JoinToken struct {
	Hash      []byte   // SHA-256 of the token, which no node keeps
	CreatedAt int64    // by T
	ExpiresAt int64    // by T; it is forgotten then
	Uses      int32    // nodes that may come by it, 1 to JoinTokenUsesMax
	UsedBy    []string // UUIDs of those that came, the first one first; at most Uses
}

// ID returns what the token is called: the first 12 digits of its hash, in hex.
func (t *JoinToken) ID() string { return fmt.Sprintf("%x", t.Hash[:joinTokenIDBytes]) }

// joinTokens is the repeated field num.
func (f *Fields) joinTokens(num protowire.Number, tokens *[]*JoinToken) {
	for e := wire.Each(); wire.Next(&e, &f.Fields, num, tokens, math.MaxInt); {
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
