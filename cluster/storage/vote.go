package storage

import (
	"encoding/binary"
	"fmt"
)

// currentTermKey is the key under which Raft keeps its term.
const currentTermKey = "CurrentTerm"

// The keys under which Raft keeps its vote. It writes the term first, and then, in a
// separate write, the candidate.
const (
	voteTermKey      = "LastVoteTerm"
	voteCandidateKey = "LastVoteCand"
)

// vote is Raft's vote as it is on disk, one value under voteTermKey:
//
//	term, 8 bytes, big-endian | candidate, as Raft gave it
//
// Raft grants its vote again to a candidate that it has voted for in the same term, without
// comparing logs. So a term must never be on disk with the candidate of an earlier one: it
// is written without a candidate, until Raft names one (hashicorp/raft#661).
type vote struct {
	term      uint64
	candidate []byte // empty: none, or unknown
}

// voteForNobody is the candidate that Raft is told when none is known. It is no node's
// address, so Raft grants no vote in that term any more.
const voteForNobody = "\x00"

func (v vote) encode() []byte {
	return append(binary.BigEndian.AppendUint64(nil, v.term), v.candidate...)
}

// decodeVote decodes a vote. One without a candidate has the same length as the term in
// folders from before the vote was one value. Their candidates, under a separate key, are
// ignored, because it is unknown whether such a candidate got its vote in that term or an
// earlier one.
func decodeVote(val []byte) (vote, error) {
	if len(val) < 8 {
		return vote{}, fmt.Errorf("%s has %d bytes instead of at least 8", voteTermKey, len(val))
	}
	return vote{term: binary.BigEndian.Uint64(val), candidate: val[8:]}, nil
}

// asked returns the candidate for Raft: never empty.
func (v vote) asked() []byte {
	if len(v.candidate) == 0 {
		return []byte(voteForNobody)
	}
	return v.candidate
}
