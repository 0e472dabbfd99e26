package confirm

import (
	"bytes"

	"github.com/hashicorp/raft"
)

// Raft keeps a vote by the candidate's address alone: whoever asks from that address in
// the same term has the vote, too, and without a look at its log. But an address may have
// been another member's a moment ago. So Raft is told of a candidate's address with its
// identity behind it, and keeps both. What it makes of a candidate's address else goes by
// DecodePeer.

// behindAddr stands between an address and an identity. No address has it.
const behindAddr = 0

// named returns args with the candidate's identity behind its address.
func named(args *raft.RequestVoteRequest) *raft.RequestVoteRequest {
	if len(args.Addr) == 0 || len(args.ID) == 0 {
		return args
	}
	judged := *args
	judged.Addr = append(append(bytes.Clone(args.Addr), behindAddr), args.ID...)
	return &judged
}

// DecodePeer returns the address of a peer, which may have its identity behind it.
func (c *Confirmer) DecodePeer(peer []byte) raft.ServerAddress {
	addr, _, _ := bytes.Cut(peer, []byte{behindAddr})
	return c.Transport.DecodePeer(addr)
}
