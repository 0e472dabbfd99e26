package cluster

import (
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// Raft's keys for its vote, and the candidate of an empty one.
const (
	soakVoteTerm      = "LastVoteTerm"
	soakVoteCandidate = "LastVoteCand"
	soakVoteNobody    = "\x00"
)

// soakVotes knows every vote that each node decided on: a disk holds only votes that its
// node decided on, and a vote is never followed by another one in the same term. The zero
// value is ready to use.
type soakVotes struct {
	mu      sync.Mutex
	decided map[soakBallot][]string // guarded by mu; candidates
	written map[soakBallot]string   // guarded by mu; the vote that a node continued with
}

type soakBallot struct {
	voter string
	term  uint64
}

// soakStable records Raft's votes.
type soakStable struct {
	raft.StableStore
	cluster *soakCluster
	member  *soakMember
	term    uint64 // of the vote that is being written; only Raft's main loop writes
}

func (s *soakStable) SetUint64(key []byte, value uint64) error {
	if string(key) == soakVoteTerm {
		s.term = value
	}
	return s.StableStore.SetUint64(key, value)
}

func (s *soakStable) Set(key, value []byte) error {
	if string(key) != soakVoteCandidate {
		return s.StableStore.Set(key, value)
	}
	at, candidate := soakBallot{s.member.name, s.term}, string(value)
	votes := &s.cluster.votes
	lives := s.member.disk.whileItLives(func() { votes.decide(at, candidate) })
	err := s.StableStore.Set(key, value)
	if err == nil && lives && s.member.disk.whileItLives(func() {}) {
		if other := votes.write(at, candidate); other != candidate {
			s.cluster.report("%s votes in term %d for %s, and for %s", at.voter, at.term, other, candidate)
		}
	}
	return err
}

func (v *soakVotes) decide(at soakBallot, candidate string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.decided == nil {
		v.decided, v.written = make(map[soakBallot][]string), make(map[soakBallot]string)
	}
	v.decided[at] = append(v.decided[at], candidate)
}

// write returns the first candidate that got this vote.
func (v *soakVotes) write(at soakBallot, candidate string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.written[at]; !ok {
		v.written[at] = candidate
	}
	return v.written[at]
}

// check checks the vote with which a node starts.
func (v *soakVotes) check(c *soakCluster, m *soakMember, stable raft.StableStore) {
	term, termErr := stable.GetUint64([]byte(soakVoteTerm))
	candidate, candidateErr := stable.Get([]byte(soakVoteCandidate))
	if termErr != nil || candidateErr != nil || string(candidate) == soakVoteNobody {
		return // it has not voted yet
	}
	v.mu.Lock()
	decided := v.decided[soakBallot{m.name, term}]
	v.mu.Unlock()
	if !slices.Contains(decided, string(candidate)) {
		c.report("%s starts with a vote in term %d for %s, and had decided %v", m.name, term, candidate, decided)
	}
}
