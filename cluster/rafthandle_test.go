package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/confirm"
	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/cluster/replica/replicatest"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
)

// Raft sometimes accepts a transfer into its queue although the queue is not read any more,
// and never answers it.
func TestRaftHandle_transferAfterTheEnd(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "n1", t.TempDir(), freeAddrs(t, 1)[0])
	cfg.Bootstrap = true
	n := openNode(t, cfg)
	closeNode(t, n)
	for range 64 { // each is queued with a chance of one half, until one is
		err := n.raft.LeadershipTransferToServer("n2", "127.0.0.1:1").Error()
		if !errors.Is(err, raft.ErrRaftShutdown) {
			t.Fatalf("error is %v, want %v", err, raft.ErrRaftShutdown)
		}
	}
}

// A transfer during a snapshot does not leave the node deaf until the snapshot is written:
// that is given up, and another one is taken later.
func TestRestartRaft_givesUpASnapshot(t *testing.T) {
	t.Parallel()
	c := newBackupCluster(t)
	submitOne(t, c.nodes...)
	leader := leaderOf(t, c.nodes...)
	leader.fsm.PersistRate = 1 // a byte a second
	taken := make(chan error, 1)
	go func() {
		_, err := leader.snapshots.takeHere(context.Background())
		taken <- err
	}()
	unfinished := filepath.Join(leader.cfg.DataDir, "snapshots", "*.tmp")
	eventually(t, "a snapshot to be begun", func() bool {
		found, err := filepath.Glob(unfinished)
		return err == nil && len(found) > 0
	})
	before := leader.raft.run.Load()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := leader.Transfer(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if leader.raft.run.Load() == before {
		t.Fatal("raft was not started again")
	}
	if err := <-taken; err == nil {
		t.Error("the snapshot was taken all the same")
	}
	eventually(t, "what was written of it to go", func() bool {
		found, err := filepath.Glob(unfinished)
		return err == nil && len(found) == 0
	})
	leader.fsm.PersistRate = replica.SnapshotRateMax
	eventually(t, "another snapshot", func() bool {
		_, err := leader.snapshots.takeHere(ctx)
		return err == nil
	})
}

// A node that keeps leading, between two scopes of its leadership, keeps its Raft, because
// a transfer that failed just before must not interrupt a restore.
func TestEndTransfer_leadsBetweenScopes(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "n1", t.TempDir(), freeAddrs(t, 1)[0])
	cfg.Bootstrap = true
	n := openNode(t, cfg)
	defer closeNode(t, n)
	l := leaderOf(t, n).leader.Load()
	before := n.raft.run.Load()
	_, err := n.exclusively(t.Context(), func() (uint64, error) {
		ended := make(chan struct{})
		n.transfers.ended <- transferred{from: l, restarted: ended}
		<-ended
		return 0, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n.raft.run.Load() != before {
		t.Error("raft was started again on a node that leads")
	}
}

// stuckFSM applies nothing until it is released.
type stuckFSM struct {
	raft.FSM
	goes chan struct{}
}

func (f stuckFSM) Apply(*raft.Log) any {
	<-f.goes
	return nil
}

// Each call returns when the run is over, even one that comes while another waits: the
// stores must not be used by two runs at once.
func TestRaftRun_shutdownTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		addr, transport := raft.NewInmemTransport("a")
		conf := raft.DefaultConfig()
		conf.LocalID, conf.Logger = "a", hclog.NewNullLogger()
		store, snapshots := raft.NewInmemStore(), raft.NewInmemSnapshotStore()
		servers := raft.Configuration{Servers: []raft.Server{{ID: "a", Address: addr}}}
		if err := raft.BootstrapCluster(conf, store, store, snapshots, transport, servers); err != nil {
			t.Fatal(err)
		}
		c := confirm.New(transport, confirm.Config{})
		c.Start()
		state := stuckFSM{goes: make(chan struct{})}
		r, err := raft.NewRaft(conf, state, store, store, snapshots, c)
		if err != nil {
			t.Fatal(err)
		}
		run := &raftRun{raft: r, confirmer: c, cancel: func(error) {}, ended: make(chan struct{})}
		<-r.LeaderCh()
		r.Apply([]byte("x"), 0)
		synctest.Wait() // it is being applied
		var over atomic.Int32
		for range 2 {
			go func() {
				if err := run.shutdown(); err != nil {
					t.Error(err)
				}
				over.Add(1)
			}()
			synctest.Wait()
		}
		if n := over.Load(); n != 0 {
			t.Errorf("%d calls returned while an entry was applied", n)
		}
		close(state.goes)
		synctest.Wait()
		if n := over.Load(); n != 2 {
			t.Errorf("%d calls returned, want 2", n)
		}
	})
}

// A node that learns that it was removed while its Raft is being restarted has no running
// one afterwards.
func TestRestartRaft_removed(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "n1", t.TempDir(), freeAddrs(t, 1)[0])
	cfg.Bootstrap = true
	n := openNode(t, cfg)
	defer closeNode(t, n)
	leaderOf(t, n)
	n.standing.leaveForGood()
	if err := n.transfers.restartRaft(); err != nil {
		t.Fatal(err)
	}
	if state := n.raft.State(); state != raft.Shutdown {
		t.Errorf("raft is in state %s, want %s", state, raft.Shutdown)
	}
}

// keptEntries are the entries from which a state was made.
type keptEntries struct {
	replicatest.Applier
	data map[uint64][]byte
}

func (k *keptEntries) ApplyEntry(index, term uint64, data []byte) *fsm.Applied {
	k.data[index] = data
	return k.Applier.ApplyEntry(index, term, data)
}

// followerBench is a node a that follows b, which the test plays.
type followerBench struct {
	t      *testing.T
	node   *Node
	stores testFolder
	leader *raft.InmemTransport
}

func newFollowerBench(t *testing.T) *followerBench {
	t.Helper()
	b := &followerBench{t: t, stores: openFolder(t, t.TempDir(), storage.Config{})}
	_, b.leader = raft.NewInmemTransportWithTimeout("b", patience)
	transport := func() (raft.Transport, error) {
		addr, own := raft.NewInmemTransportWithTimeout("a", patience)
		b.leader.Connect(addr, own)
		return own, nil
	}
	first, _ := transport()
	servers := []raft.Server{{ID: "a", Address: "a"}, {ID: "b", Address: "b"}, {ID: "c", Address: "c"}}
	n, err := OpenParts(testConfig(t, "a", "", ""), Parts{
		UUID: "a", Logs: b.stores.Log, Stable: b.stores.Stable, Snapshots: b.stores.Snapshots,
		Transport: first, NewTransport: transport, Servers: servers,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closeNode(t, n)
		b.stores.close(t)
	})
	b.node = n
	return b
}

func (b *followerBench) header() raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("b"), Addr: []byte("b")}
}

// append sends an entry of term 1 together with its commit.
func (b *followerBench) append(index uint64, data []byte) {
	b.t.Helper()
	args := &raft.AppendEntriesRequest{
		RPCHeader: b.header(), Term: 9, PrevLogEntry: index - 1, PrevLogTerm: 1, LeaderCommitIndex: index,
		Entries: []*raft.Log{{Index: index, Term: 1, Type: raft.LogCommand, Data: data}},
	}
	var resp raft.AppendEntriesResponse
	if err := b.leader.AppendEntries("a", "a", args, &resp); err != nil || !resp.Success {
		b.t.Fatalf("entry %d: error %v, success %v", index, err, resp.Success)
	}
}

// offer sends a snapshot of the entries up to index. It returns when that is on disk.
func (b *followerBench) offer(index uint64, state []byte) {
	b.t.Helper()
	go func() {
		_ = b.leader.InstallSnapshot("a", "a", &raft.InstallSnapshotRequest{
			RPCHeader: b.header(), SnapshotVersion: 1, Term: 9, LastLogIndex: index, LastLogTerm: 1,
			Configuration: raft.EncodeConfiguration(raft.Configuration{Servers: b.node.servers()}), ConfigurationIndex: 1, Size: int64(len(state)),
		}, &raft.InstallSnapshotResponse{}, bytes.NewReader(state))
	}()
	eventually(b.t, "the snapshot to be on disk", func() bool {
		newest, err := b.stores.Snapshots.List()
		return err == nil && len(newest) == 1 && newest[0].Index == index
	})
}

// A snapshot that was sent and is on disk, but was not restored yet when Raft ended, is
// restored by the next run. Otherwise that would apply the following entries to the state
// from before the snapshot.
func TestRestartRaft_whileASnapshotIsRestored(t *testing.T) {
	t.Parallel()
	other, err := newNode(testConfig(t, "other", "", ""), Parts{UUID: "other"}) // it never runs
	if err != nil {
		t.Fatal(err)
	}
	entries := &keptEntries{Applier: other.fsm, data: make(map[uint64][]byte)}
	const sent = 20
	if last := replicatest.Fill(entries, 2, (sent-1)*100, 10); last != sent {
		t.Fatalf("the last entry is %d, want %d", last, sent)
	}
	state := replicatest.Persisted(t, other.fsm)
	replicatest.Fill(entries, sent+1, 100, 10)
	for try := range 4 { // Raft skips the waiting restore with a chance of one half
		t.Run(fmt.Sprint(try), func(t *testing.T) {
			t.Parallel()
			b := newFollowerBench(t)
			b.append(2, entries.data[2])
			eventually(t, "entry 2 to be applied", func() bool { return b.node.fsm.AppliedIndex() == 2 })
			goOn, held := make(chan struct{}), make(chan struct{})
			go b.node.fsm.Read(func(*fsm.Machine) {
				close(held)
				<-goOn
			})
			<-held
			b.append(3, entries.data[3]) // its apply waits
			b.offer(sent, state)
			before := b.node.raft.current()
			restarted := make(chan error, 1)
			go func() { restarted <- b.node.transfers.restartRaft() }()
			eventually(t, "raft to end", func() bool { return before.State() == raft.Shutdown })
			close(goOn)
			if err := <-restarted; err != nil {
				t.Fatal(err)
			}
			b.append(sent+1, entries.data[sent+1])
			want := other.fsm.NewestChain()
			eventually(t, "the next entry to be applied", func() bool { return b.node.fsm.AppliedIndex() == want.Index })
			if got := b.node.fsm.NewestChain(); got != want {
				t.Errorf("applied something else: chain %s at entry %d, want %s", got, got.Index, want)
			}
		})
	}
}
