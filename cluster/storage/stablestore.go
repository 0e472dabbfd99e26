package storage

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"sync"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// currentTermKey is the key under which Raft keeps its term.
const currentTermKey = "CurrentTerm"

// The keys under which Raft keeps its vote. It writes the term first, and then, in a
// separate write, the candidate.
const (
	voteTermKey      = "LastVoteTerm"
	voteCandidateKey = "LastVoteCand"
)

// vote is Raft's vote in its stored form, one value under voteTermKey:
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

// unknownCandidate is the candidate that Raft gets when the term was written without one. It is
// no node's address, so Raft grants no vote in that term any more.
const unknownCandidate = "\x00"

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

// candidateForRaft returns the candidate, or unknownCandidate.
func (v vote) candidateForRaft() []byte {
	if len(v.candidate) == 0 {
		return []byte(unknownCandidate)
	}
	return v.candidate
}

// stableStore keeps Raft's term and vote in the log's bbolt file, behind failStop. A value
// on disk is
//
//	value | CRC32C of the key and the value, 4 bytes, big-endian
//
// because a flipped bit in a term or a vote can elect two leaders. The two parts of a vote
// are one value: see vote. It is safe for concurrent use.
type stableStore struct {
	bolt  raft.StableStore
	guard *failStop
	path  string // of the file, for errors

	mu sync.Mutex // held while the vote is read and written
}

// Set implements raft.StableStore.
func (s *stableStore) Set(key, val []byte) error {
	if string(key) != voteCandidateKey {
		return s.write(key, val)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.vote()
	if err != nil && !isKeyNotFound(err) {
		return err
	}
	v.candidate = val
	return s.write([]byte(voteTermKey), v.encode())
}

func (s *stableStore) write(key, val []byte) error {
	sealed := binary.BigEndian.AppendUint32(append([]byte(nil), val...), stableChecksum(key, val))
	return s.guard.do("write "+string(key), nil, func() error {
		if err := s.bolt.Set(key, sealed); err != nil {
			return storageError(filepath.Dir(s.path), "write "+string(key)+" to "+s.path, err)
		}
		return nil
	})
}

// Get implements raft.StableStore. For an unknown key it returns the error that Raft
// recognizes by its text, "not found".
func (s *stableStore) Get(key []byte) ([]byte, error) {
	if string(key) != voteCandidateKey {
		return s.read(key)
	}
	v, err := s.vote()
	if err != nil {
		return nil, err
	}
	return v.candidateForRaft(), nil
}

// vote returns the vote on disk. Errors: those of Get.
func (s *stableStore) vote() (vote, error) {
	val, err := s.read([]byte(voteTermKey))
	if err != nil {
		return vote{}, err
	}
	v, err := decodeVote(val)
	if err != nil {
		return vote{}, s.guard.fail(corruptLog(s.path, err.Error()))
	}
	return v, nil
}

func (s *stableStore) read(key []byte) (val []byte, err error) {
	err = s.guard.do("read "+string(key), isKeyNotFound, func() error {
		sealed, err := s.bolt.Get(key)
		if err != nil {
			return err
		}
		val, err = openStableValue(key, sealed)
		if err != nil {
			return corruptLog(s.path, err.Error())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return val, nil
}

// SetUint64 implements raft.StableStore.
func (s *stableStore) SetUint64(key []byte, val uint64) error {
	if string(key) == voteTermKey {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.write(key, vote{term: val}.encode())
	}
	return s.write(key, binary.BigEndian.AppendUint64(nil, val))
}

// GetUint64 implements raft.StableStore.
func (s *stableStore) GetUint64(key []byte) (uint64, error) {
	if string(key) == voteTermKey {
		v, err := s.vote()
		return v.term, err
	}
	val, err := s.read(key)
	if err != nil {
		return 0, err
	}
	if len(val) != 8 {
		return 0, s.guard.fail(corruptLog(s.path, fmt.Sprintf("%s has %d bytes instead of 8", key, len(val))))
	}
	return binary.BigEndian.Uint64(val), nil
}

// currentTerm returns Raft's term, 0 before it has one.
func (s *stableStore) currentTerm() (uint64, error) {
	term, err := s.GetUint64([]byte(currentTermKey))
	if isKeyNotFound(err) {
		return 0, nil
	}
	return term, err
}

func isKeyNotFound(err error) bool {
	//nolint:errorlint // raft-boltdb returns it bare, and Raft compares its text.
	return err == raftboltdb.ErrKeyNotFound
}

func stableChecksum(key, val []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli()), castagnoli(), val)
}

// openStableValue checks a value in its form on disk and returns it without its checksum.
func openStableValue(key, sealed []byte) ([]byte, error) {
	n := len(sealed) - 4
	if n < 0 || binary.BigEndian.Uint32(sealed[n:]) != stableChecksum(key, sealed[:n]) {
		return nil, fmt.Errorf("%q: checksum mismatch", key)
	}
	return sealed[:n:n], nil
}
