package cluster

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/hashicorp/raft"
)

// voteBench is the folder of a node of three, whose log ends at entry 50 of term 5.
type voteBench struct {
	servers    []raft.Server // the node is the first
	transports []*raft.InmemTransport
	open       func(t *testing.T, path string, cfg storesConfig) storageBench
	path       string
}

func newVoteBench(t *testing.T, open func(*testing.T, string, storesConfig) storageBench) *voteBench {
	t.Helper()
	b := &voteBench{open: open, path: t.TempDir()}
	for i := range 3 {
		addr, transport := raft.NewInmemTransport("")
		b.servers = append(b.servers, raft.Server{ID: raft.ServerID(fmt.Sprint("uuid-", i)), Address: addr})
		b.transports = append(b.transports, transport)
	}
	for _, from := range b.transports {
		from.Connect(b.servers[0].Address, b.transports[0])
	}
	b.write(t, func(s storageBench) error {
		for i := uint64(1); i <= 50; i++ {
			entry := &raft.Log{Index: i, Term: 5, Type: raft.LogNoop}
			if i == 1 {
				entry.Type, entry.Data = raft.LogConfiguration, raft.EncodeConfiguration(raft.Configuration{Servers: b.servers})
			}
			mustStore(t, s.Log, entry)
		}
		return s.Stable.SetUint64([]byte("CurrentTerm"), 6)
	})
	return b
}

// write opens the stores for do alone.
func (b *voteBench) write(t *testing.T, do func(storageBench) error) {
	t.Helper()
	s := b.open(t, b.path, storesConfig{})
	if err := do(s); err != nil {
		t.Fatal(err)
	}
	s.close(t)
}

// vote writes as Raft does: the term, and the candidate in another write, which a
// crash comes before if it is 0.
func (b *voteBench) vote(t *testing.T, term uint64, candidate int) {
	t.Helper()
	b.write(t, func(s storageBench) error {
		if err := s.Stable.SetUint64([]byte(voteTermKey), term); err != nil || candidate == 0 {
			return err
		}
		return s.Stable.Set([]byte(voteCandidateKey), []byte(b.servers[candidate].Address))
	})
}

// oldVote writes the two parts as values of their own.
func (b *voteBench) oldVote(t *testing.T, term uint64, candidate int) {
	t.Helper()
	b.write(t, func(s storageBench) error {
		for key, val := range map[string][]byte{
			"LastVoteTerm": binary.BigEndian.AppendUint64(nil, term),
			"LastVoteCand": []byte(b.servers[candidate].Address),
		} {
			sealed := binary.BigEndian.AppendUint32(val, stableChecksum([]byte(key), val))
			if err := s.bolt.Set([]byte(key), sealed); err != nil {
				return err
			}
		}
		return nil
	})
}

// votesFor starts the node and says whether it votes in term for the candidate,
// whose log ends at last, of the node's own term.
func (b *voteBench) votesFor(t *testing.T, term uint64, candidate int, last uint64) bool {
	t.Helper()
	s := b.open(t, b.path, storesConfig{})
	// Closing a node closes its transport.
	addr, transport := raft.NewInmemTransport(b.servers[0].Address)
	b.transports[candidate].Connect(addr, transport)
	n, err := OpenParts(testConfig(t, "n1", "", ""), Parts{
		UUID: string(b.servers[0].ID), Logs: s.Log, Stable: s.Stable, Snapshots: s.Snapshots, Transport: transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	from := b.servers[candidate]
	var resp raft.RequestVoteResponse
	err = b.transports[candidate].RequestVote(b.servers[0].ID, addr, &raft.RequestVoteRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(from.ID), Addr: []byte(from.Address)},
		Term:      term, LastLogIndex: last, LastLogTerm: 5,
	}, &resp)
	closeNode(t, n)
	s.close(t)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Granted
}

func TestVote(t *testing.T) {
	t.Parallel()
	const x, y = 1, 2
	for logStore, open := range map[string]func(*testing.T, string, storesConfig) storageBench{
		logStoreWAL: openTestStores, logStoreBoltDB: openBoltStores,
	} {
		for _, c := range []struct {
			name      string
			had       func(t *testing.T, b *voteBench)
			term      uint64
			candidate int
			last      uint64
			want      bool
		}{
			{"a repeat", func(t *testing.T, b *voteBench) { b.vote(t, 6, x) }, 6, x, 1, true},
			{"a second candidate", func(t *testing.T, b *voteBench) { b.vote(t, 6, x) }, 6, y, 50, false},
			{"a later term", func(t *testing.T, b *voteBench) { b.vote(t, 6, x) }, 7, y, 50, true},
			{"a later term, without the log", func(t *testing.T, b *voteBench) { b.vote(t, 6, x) }, 7, x, 49, false},
			{"cut off", func(t *testing.T, b *voteBench) { b.vote(t, 5, x); b.vote(t, 6, 0) }, 6, x, 1, false},
			{"cut off, the first one", func(t *testing.T, b *voteBench) { b.vote(t, 6, 0) }, 6, x, 1, false},
			{"cut off, a later term", func(t *testing.T, b *voteBench) { b.vote(t, 5, x); b.vote(t, 6, 0) }, 7, x, 50, true},
			{"two values", func(t *testing.T, b *voteBench) { b.oldVote(t, 6, x) }, 6, x, 1, false},
			{"two values, a second candidate", func(t *testing.T, b *voteBench) { b.oldVote(t, 6, x) }, 6, y, 50, false},
			{"two values, a later term", func(t *testing.T, b *voteBench) { b.oldVote(t, 6, x) }, 7, x, 50, true},
			{"two values, and one since", func(t *testing.T, b *voteBench) { b.oldVote(t, 5, x); b.vote(t, 6, y) }, 6, x, 1, false},
		} {
			t.Run(logStore+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				b := newVoteBench(t, open)
				c.had(t, b)
				if got := b.votesFor(t, c.term, c.candidate, c.last); got != c.want {
					t.Errorf("it votes: %v, want %v", got, c.want)
				}
			})
		}
	}
}

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

// A vote without its term is damage, whoever reads it.
func TestVote_damaged(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	var fatal error
	s := openTestStores(t, path, storesConfig{Fatal: func(err error) { fatal = err }})
	if err := s.Stable.Set([]byte(voteTermKey), []byte("1234567")); err != nil {
		t.Fatal(err)
	}
	_, err := s.Stable.Get([]byte(voteCandidateKey))
	wantError(t, err, ErrCorruptLog, "LastVoteTerm has 7 bytes")
	wantError(t, fatal, ErrCorruptLog)
	s.close(t)
	wantError(t, reopenError(t, path), ErrCorruptLog, "LastVoteTerm has 7 bytes")
}
