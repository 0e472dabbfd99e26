package storage

import (
	"encoding/binary"
	"fmt"
)

// currentTermKey is the key under which Raft knows its term.
const currentTermKey = "CurrentTerm"

// Under these keys Raft knows its vote. It writes the term first, and then, in a
// write of its own, the candidate.
const (
	voteTermKey      = "LastVoteTerm"
	voteCandidateKey = "LastVoteCand"
)

// vote is Raft's vote as it is on disk, one value under voteTermKey:
//
//	term, 8 bytes, big-endian | candidate, as Raft gave it
//
// Raft takes a candidate that it voted for in a term for voted for again, without a
// look at its log. So a term is never on disk with the candidate of an earlier one:
// with the term comes the candidate "nobody", until Raft names one
// (hashicorp/raft#661).
type vote struct {
	term      uint64
	candidate []byte // empty: nobody, or one that is not known
}

// voteForNobody is the candidate that Raft is told of where it is not known. It is
// no node's address, so Raft votes for nobody else, and no more, in that term.
const voteForNobody = "\x00"

func (v vote) encode() []byte {
	return append(binary.BigEndian.AppendUint64(nil, v.term), v.candidate...)
}

// decodeVote reads a vote. One without a candidate is as long as the terms that
// folders from before the vote was one value have; their candidates, under a key of
// their own, are left alone: nobody knows whether such a candidate got its vote in
// that term or in an earlier one.
func decodeVote(val []byte) (vote, error) {
	if len(val) < 8 {
		return vote{}, fmt.Errorf("%s has %d bytes instead of at least 8", voteTermKey, len(val))
	}
	return vote{term: binary.BigEndian.Uint64(val), candidate: val[8:]}, nil
}

// asked returns the candidate as Raft may read it: never empty.
func (v vote) asked() []byte {
	if len(v.candidate) == 0 {
		return []byte(voteForNobody)
	}
	return v.candidate
}
