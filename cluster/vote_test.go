package cluster

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/storage"
)

// voteBench is the folder of a node in a cluster of three, with a log that ends at entry 50
// of term 5.
type voteBench struct {
	servers    []raft.Server // the node is the first
	transports []*raft.InmemTransport
	path       string
}

func newVoteBench(t *testing.T) *voteBench {
	t.Helper()
	b := &voteBench{path: t.TempDir()}
	for i := range 3 {
		addr, transport := raft.NewInmemTransportWithTimeout("", patience)
		b.servers = append(b.servers, raft.Server{ID: raft.ServerID(fmt.Sprint("uuid-", i)), Address: addr})
		b.transports = append(b.transports, transport)
	}
	for _, from := range b.transports {
		from.Connect(b.servers[0].Address, b.transports[0])
	}
	b.write(t, func(s testFolder) error {
		for i := uint64(1); i <= 50; i++ {
			entry := &raft.Log{Index: i, Term: 5, Type: raft.LogNoop}
			if i == 1 {
				entry.Type, entry.Data = raft.LogConfiguration, raft.EncodeConfiguration(raft.Configuration{Servers: b.servers})
			}
			if err := s.Log.StoreLog(entry); err != nil {
				return err
			}
		}
		return s.Stable.SetUint64([]byte("CurrentTerm"), 6)
	})
	return b
}

// write opens the stores only for do.
func (b *voteBench) write(t *testing.T, do func(testFolder) error) {
	t.Helper()
	s := openFolder(t, b.path, storage.Config{})
	if err := do(s); err != nil {
		t.Fatal(err)
	}
	s.close(t)
}

// vote writes like Raft: the term, and in another write the candidate; 0 means a crash
// before that.
func (b *voteBench) vote(t *testing.T, term uint64, candidate int) {
	t.Helper()
	b.write(t, func(s testFolder) error {
		if err := s.Stable.SetUint64([]byte("LastVoteTerm"), term); err != nil || candidate == 0 {
			return err
		}
		return s.Stable.Set([]byte("LastVoteCand"), b.stored(candidate))
	})
}

// stored returns a candidate as Raft stores it: its address with its identity (package confirm).
// With anything else no vote on disk would be for a candidate that asks.
func (b *voteBench) stored(candidate int) []byte {
	c := b.servers[candidate]
	return fmt.Appendf(nil, "%s\x00%s", c.Address, c.ID)
}

// oldVote writes the two parts as separate values, each with its CRC32C.
func (b *voteBench) oldVote(t *testing.T, term uint64, candidate int) {
	t.Helper()
	var disk raft.StableStore
	s := openFolder(t, b.path, storage.Config{WrapStable: func(d raft.StableStore) raft.StableStore {
		disk = d
		return d
	}})
	for key, val := range map[string][]byte{
		"LastVoteTerm": binary.BigEndian.AppendUint64(nil, term),
		"LastVoteCand": b.stored(candidate),
	} {
		crc := crc32.Checksum(append([]byte(key), val...), crc32.MakeTable(crc32.Castagnoli))
		if err := disk.Set([]byte(key), binary.BigEndian.AppendUint32(val, crc)); err != nil {
			t.Fatal(err)
		}
	}
	s.close(t)
}

// votesFor starts the node and reports whether it votes in term for the candidate, whose
// log ends at last, of the node's own term.
func (b *voteBench) votesFor(t *testing.T, term uint64, candidate int, last uint64) bool {
	t.Helper()
	return b.votesForAt(t, term, candidate, b.servers[candidate].Address, last)
}

// votesForAt is votesFor for a candidate at another address.
func (b *voteBench) votesForAt(t *testing.T, term uint64, candidate int, at raft.ServerAddress, last uint64) bool {
	t.Helper()
	s := openFolder(t, b.path, storage.Config{})
	// Closing a node closes its transport.
	addr, transport := raft.NewInmemTransportWithTimeout(b.servers[0].Address, patience)
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
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(from.ID), Addr: []byte(at)},
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
	for _, c := range []struct {
		name      string
		had       func(t *testing.T, b *voteBench)
		term      uint64
		candidate int
		last      uint64
		want      bool
	}{
		{"a repeat", func(t *testing.T, b *voteBench) { b.votesFor(t, 6, x, 50) }, 6, x, 1, true},
		{"a repeat, from the disk", func(t *testing.T, b *voteBench) { b.vote(t, 6, x) }, 6, x, 1, true},
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
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newVoteBench(t)
			c.had(t, b)
			if got := b.votesFor(t, c.term, c.candidate, c.last); got != c.want {
				t.Errorf("it votes: %v, want %v", got, c.want)
			}
		})
	}
}

// The vote of a term belongs to a candidate, not to its address, where by now another node
// may be that lacks committed entries.
func TestVote_addressOfAnother(t *testing.T) {
	t.Parallel()
	const x, y = 1, 2
	b := newVoteBench(t)
	if !b.votesFor(t, 6, x, 50) {
		t.Fatal("it votes for nobody")
	}
	if b.votesForAt(t, 6, y, b.servers[x].Address, 1) {
		t.Error("it votes for two in one term")
	}
	if b.votesForAt(t, 6, y, b.servers[x].Address, 50) {
		t.Error("it votes for two in one term, whose logs are as good")
	}
	if !b.votesForAt(t, 7, y, b.servers[x].Address, 50) {
		t.Error("it does not vote in the next term")
	}
}
