package record

import (
	"crypto/sha256"
	"fmt"

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

// appendJoinTokens appends the field 24 of the header's record, repeated.
func appendJoinTokens(b []byte, tokens []*JoinToken) []byte {
	for _, t := range tokens {
		var start int
		b, start = wire.BeginMessage(b, 24)
		b = wire.PutBytes(b, 1, t.Hash)
		b = wire.PutInt(b, 2, t.CreatedAt)
		b = wire.PutInt(b, 3, t.ExpiresAt)
		b = wire.PutSint(b, 4, t.Uses)
		for _, uuid := range t.UsedBy {
			b = wire.PutElement(b, 5, uuid)
		}
		b = wire.EndLength(b, start)
	}
	return b
}

// joinToken reads the field, a message JoinToken.
func (r *Reader) joinToken() *JoinToken {
	in := ReaderOf(r.Raw())
	t := &JoinToken{}
	for in.Next() {
		switch in.Num {
		case 1:
			t.Hash = in.Bytes()
		case 2:
			t.CreatedAt = in.Int64()
		case 3:
			t.ExpiresAt = in.Int64()
		case 4:
			t.Uses = in.Sint32()
		case 5:
			t.UsedBy = in.Strings(nil)
		default:
			in.Unknown()
		}
	}
	if len(t.Hash) != sha256.Size {
		in.Fail("a join token without a hash")
	}
	r.Within(in.Err)
	return t
}
