package storage

import (
	"fmt"
	"testing"
)

// At no write of a vote is an earlier candidate on disk with a later term.
func TestVote_eachWrite(t *testing.T) {
	t.Parallel()
	b := newFaultBench(t)
	persist := func(term uint64, candidate string) {
		if err := b.stable.SetUint64([]byte(voteTermKey), term); err != nil {
			t.Fatal(err)
		}
		if err := b.stable.Set([]byte(voteCandidateKey), []byte(candidate)); err != nil {
			t.Fatal(err)
		}
	}
	persist(4, "w")
	var seen []string
	b.bolt.before = func(string) error {
		v, err := b.stable.vote()
		if err != nil {
			t.Error(err)
		}
		seen = append(seen, fmt.Sprintf("%d %q", v.term, v.candidate))
		return nil
	}
	persist(5, "x")
	persist(6, "y")
	want := `[4 "w" 5 "" 5 "x" 6 ""]`
	if got := fmt.Sprint(seen); got != want {
		t.Errorf("before its writes the disk has %s, want %s", got, want)
	}
	if term, err := b.stable.GetUint64([]byte(voteTermKey)); err != nil || term != 6 {
		t.Errorf("term %d, %v", term, err)
	}
	if candidate, err := b.stable.Get([]byte(voteCandidateKey)); err != nil || string(candidate) != "y" {
		t.Errorf("candidate %q, %v", candidate, err)
	}
}

// A vote without its term is damage in every reader.
func TestVote_damaged(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	var fatal error
	s := openTestStores(t, path, Config{Fatal: func(err error) { fatal = err }})
	if err := s.Stable.Set([]byte(voteTermKey), []byte("1234567")); err != nil {
		t.Fatal(err)
	}
	_, err := s.Stable.Get([]byte(voteCandidateKey))
	wantError(t, err, ErrCorruptLog, "LastVoteTerm has 7 bytes")
	wantError(t, fatal, ErrCorruptLog)
	s.close(t)
	wantError(t, reopenError(t, path), ErrCorruptLog, "LastVoteTerm has 7 bytes")
}
