package confirm

import (
	"bytes"

	"github.com/hashicorp/raft"
)

// Raft identifies the candidate that it voted for by its address alone, and would grant the
// vote again to any node that asks from that address in the same term, without comparing
// logs. But the address may have belonged to another member before. So the candidate's
// identity is appended to its address for Raft, which stores both. DecodePeer removes it
// again for other uses.

// behindAddr separates address and identity. No address contains it.
const behindAddr = 0

// withIdentity returns args with the candidate's identity appended to its address.
func withIdentity(args *raft.RequestVoteRequest) *raft.RequestVoteRequest {
	if len(args.Addr) == 0 || len(args.ID) == 0 {
		return args
	}
	extended := *args
	extended.Addr = append(append(bytes.Clone(args.Addr), behindAddr), args.ID...)
	return &extended
}

// DecodePeer returns the address of a peer, without an appended identity.
func (c *Confirmer) DecodePeer(peer []byte) raft.ServerAddress {
	addr, _, _ := bytes.Cut(peer, []byte{behindAddr})
	return c.Transport.DecodePeer(addr)
}
