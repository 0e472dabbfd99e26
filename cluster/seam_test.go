package cluster

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/confirm"
	"github.com/claimq/claimq/cluster/storage"
)

// seamBench is a follower of a leader b that the test plays. Its stores are real, its state is
// the list of applied entries.
type seamBench struct {
	t      *testing.T
	stores testFolder
	raft   *raft.Raft
	leader *raft.InmemTransport
	to     raft.ServerAddress
	term   uint64 // of b's leadership
	state  *appliedState
}

// appliedState holds the applied indexes. The state of a snapshot is its index, as text in its
// only byte.
type appliedState struct {
	mu       sync.Mutex
	applied  []uint64 // since the last restore; guarded by mu
	restores int      // guarded by mu
}

func (s *appliedState) Apply(l *raft.Log) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied = append(s.applied, l.Index)
	return nil
}

func (s *appliedState) Restore(r io.ReadCloser) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied, s.restores = nil, s.restores+1
	return r.Close()
}

func (s *appliedState) Snapshot() (raft.FSMSnapshot, error) { return nil, io.ErrUnexpectedEOF }

func newSeamBench(t *testing.T, stores testFolder) *seamBench {
	t.Helper()
	addr, own := raft.NewInmemTransportWithTimeout("a", patience)
	_, leader := raft.NewInmemTransportWithTimeout("b", patience)
	leader.Connect(addr, own)
	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger = "a", hclog.NewNullLogger()
	conf.HeartbeatTimeout, conf.ElectionTimeout = time.Minute, time.Minute
	b := &seamBench{t: t, stores: stores, leader: leader, to: addr, term: 9, state: &appliedState{}}
	c := confirm.New(own, confirm.Config{})
	c.Start()
	r, err := raft.NewRaft(conf, b.state, stores.Log, stores.Stable, stores.Snapshots, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		if err := r.Shutdown().Error(); err != nil {
			t.Error(err)
		}
		stores.close(t)
	})
	b.raft = r
	stores.Log.SnapshotAt(func() uint64 { index, _ := confirm.LastSnapshot(r); return index })
	c.Follow(r, stores.Log)
	return b
}

func (b *seamBench) header() raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("b"), Addr: []byte("b")}
}

// install offers the snapshot of the entries up to index, and returns whether it was accepted.
func (b *seamBench) install(index, term uint64) bool {
	b.t.Helper()
	servers := raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a"}, {ID: "b", Address: "b"}}}
	var resp raft.InstallSnapshotResponse
	err := b.leader.InstallSnapshot("a", b.to, &raft.InstallSnapshotRequest{
		RPCHeader: b.header(), SnapshotVersion: 1, Term: b.term, Leader: []byte("b"), LastLogIndex: index, LastLogTerm: term,
		Configuration: raft.EncodeConfiguration(servers), ConfigurationIndex: 1, Size: 1,
	}, &resp, bytes.NewReader([]byte("s")))
	return err == nil && resp.Success
}

// append sends entries of the term with the indexes, following the entry prev of prevTerm.
func (b *seamBench) append(prev, prevTerm, commit, term uint64, indexes ...uint64) bool {
	b.t.Helper()
	args := &raft.AppendEntriesRequest{
		RPCHeader: b.header(), Term: b.term, PrevLogEntry: prev, PrevLogTerm: prevTerm, LeaderCommitIndex: commit,
	}
	for _, index := range indexes {
		args.Entries = append(args.Entries, &raft.Log{Index: index, Term: term, Type: raft.LogCommand, Data: []byte("x")})
	}
	var resp raft.AppendEntriesResponse
	if err := b.leader.AppendEntries("a", b.to, args, &resp); err != nil {
		b.t.Fatal(err)
	}
	return resp.Success
}

// want checks the contents of the log and, once they are there, the applied entries.
func (b *seamBench) want(restores int, first, last uint64, applied ...uint64) {
	b.t.Helper()
	lo, _ := b.stores.Log.FirstIndex()
	hi, _ := b.stores.Log.LastIndex()
	if lo != first || hi != last {
		b.t.Errorf("the log has [%d, %d], want [%d, %d]", lo, hi, first, last)
	}
	eventually(b.t, "the entries to be applied", func() bool {
		b.state.mu.Lock()
		defer b.state.mu.Unlock()
		return slices.Equal(b.state.applied, applied)
	})
	if b.state.restores != restores {
		b.t.Errorf("%d restores, want %d", b.state.restores, restores)
	}
}

// terms returns the terms of the log's entries at the indexes.
func (b *seamBench) terms(indexes ...uint64) (terms []uint64) {
	b.t.Helper()
	for _, index := range indexes {
		var entry raft.Log
		if err := b.stores.Log.GetLog(index, &entry); err != nil {
			b.t.Fatal(err)
		}
		terms = append(terms, entry.Term)
	}
	return terms
}

// Late or duplicated messages remove nothing that a follower has acknowledged: Raft alone would
// delete 11 and 12, and append 13 after them (hashicorp/raft#697).
func TestSeam_lateMessages(t *testing.T) {
	t.Parallel()
	b := newSeamBench(t, openFolder(t, t.TempDir(), storage.Config{}))
	if !b.install(10, 3) || !b.append(10, 3, 10, 3, 11, 12) {
		t.Fatal("a snapshot and what follows it are refused")
	}
	if !b.append(10, 3, 10, 3, 11, 12) {
		t.Error("what follows the snapshot is refused when it comes again")
	}
	if !b.install(10, 3) {
		t.Error("the snapshot is refused when it comes again")
	}
	b.want(1, 11, 12)
	if !b.append(12, 3, 13, 3, 13) {
		t.Error("the next entry is refused")
	}
	b.want(1, 11, 13, 11, 12, 13)
	if b.install(5, 2) {
		t.Error("a snapshot behind what was applied is taken")
	}
	if !b.install(12, 3) {
		t.Error("a snapshot of entries that are in the log is refused")
	}
	if b.install(12, 2) {
		t.Error("a snapshot of another history is taken for this node's")
	}
	b.want(1, 11, 13, 11, 12, 13)
}

// A follower whose log continues above the snapshot with entries that were never committed
// replaces them by the leader's at once.
func TestSeam_anotherHistoryAboveTheSnapshot(t *testing.T) {
	t.Parallel()
	b := newSeamBench(t, openFolder(t, t.TempDir(), storage.Config{}))
	if !b.append(0, 0, 2, 1, 1, 2, 3, 4, 5, 6, 7, 8) {
		t.Fatal("the first entries are refused")
	}
	b.want(0, 1, 8, 1, 2)
	if !b.install(5, 3) {
		t.Fatal("the snapshot is refused")
	}
	b.want(1, 6, 8)
	if b.append(5, 2, 5, 3, 6) {
		t.Error("entries behind another one than the snapshot's last are taken")
	}
	if !b.append(5, 3, 7, 3, 6, 7) {
		t.Error("what follows the snapshot is refused")
	}
	b.want(1, 6, 7, 6, 7)
}

// A follower whose log continues above the entries that a message covers, with entries from an
// earlier leader, does not take those for committed, however high the leader's commit index is.
func TestSeam_commitAboveWhatIsShown(t *testing.T) {
	t.Parallel()
	b := newSeamBench(t, openFolder(t, t.TempDir(), storage.Config{}))
	if !b.append(0, 0, 2, 1, 1, 2, 3, 4) {
		t.Fatal("the first entries are refused")
	}
	if !b.append(2, 1, 4, 9) {
		t.Error("a message without entries is refused")
	}
	b.want(0, 1, 4, 1, 2)
	if !b.append(2, 1, 4, 9, 3, 4) {
		t.Error("the leader's own entries are refused")
	}
	b.want(0, 1, 4, 1, 2, 3, 4)
	if terms := b.terms(3, 4); !slices.Equal(terms, []uint64{9, 9}) {
		t.Errorf("applied entries of the terms %v, want the leader's", terms)
	}
}

// A new member that has installed a snapshot continues when entries arrive that its leader sent
// earlier, and gave up waiting for: they are not from another history.
func TestSeam_entriesFromBeforeTheSnapshot(t *testing.T) {
	t.Parallel()
	b := newSeamBench(t, openFolder(t, t.TempDir(), storage.Config{}))
	b.stores.Log.AppliedTo(b.raft.AppliedIndex)
	if !b.install(10, 3) {
		t.Fatal("a snapshot is refused")
	}
	for _, last := range []uint64{2, 12} {
		var indexes []uint64
		for index := uint64(1); index <= last; index++ {
			indexes = append(indexes, index)
		}
		if b.append(0, 0, 2, 3, indexes...) {
			t.Errorf("entries 1 to %d are taken on top of the snapshot", last)
		}
	}
	b.want(1, 0, 0)
	if !b.append(10, 3, 11, 3, 11) {
		t.Error("what follows the snapshot is refused")
	}
	b.want(1, 11, 11, 11)
}

// If a leader of a later term sends entries from the first one on, the node still ends: that
// leader knows nothing of this node's snapshot.
func TestSeam_entriesOfALaterLeader(t *testing.T) {
	t.Parallel()
	fatal := make(chan error, 1)
	b := newSeamBench(t, openFolder(t, t.TempDir(), storage.Config{Fatal: func(err error) { fatal <- err }}))
	b.stores.Log.AppliedTo(b.raft.AppliedIndex)
	if !b.install(10, 3) {
		t.Fatal("a snapshot is refused")
	}
	b.term++
	if b.append(0, 0, 2, 3, 1, 2) {
		t.Error("entries of another history are taken")
	}
	select {
	case err := <-fatal:
		if !errors.Is(err, storage.ErrOtherHistory) {
			t.Errorf("it ended by %v", err)
		}
	default:
		t.Error("it goes on")
	}
}

// An offer that Raft refuses because of its protocol is refused, even where the state covers it.
func TestSeam_offerOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	b := newSeamBench(t, openFolder(t, t.TempDir(), storage.Config{}))
	if !b.install(10, 3) {
		t.Fatal("a snapshot is refused")
	}
	header := b.header()
	header.ProtocolVersion = raft.ProtocolVersionMax + 1
	var resp raft.InstallSnapshotResponse
	err := b.leader.InstallSnapshot("a", b.to, &raft.InstallSnapshotRequest{
		RPCHeader: header, SnapshotVersion: 1, Term: 9, LastLogIndex: 10, LastLogTerm: 3, Size: 1,
	}, &resp, bytes.NewReader([]byte("s")))
	if !errors.Is(err, raft.ErrUnsupportedProtocol) {
		t.Errorf("error is %v, want %v", err, raft.ErrUnsupportedProtocol)
	}
	b.want(1, 0, 0)
}
