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
