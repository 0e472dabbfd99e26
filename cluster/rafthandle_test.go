package cluster

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/confirm"
	"github.com/claimq/claimq/cluster/replica"
)

// Raft takes a transfer into its queue now and then although nobody reads it any
// more, and answers it never.
func TestRaftHandle_transferAfterTheEnd(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "n1", t.TempDir(), freeAddrs(t, 1)[0])
	cfg.Bootstrap = true
	n := openNode(t, cfg)
	closeNode(t, n)
	for range 64 { // each is queued with odds of one half, until one is
		err := n.raft.LeadershipTransferToServer("n2", "127.0.0.1:1").Error()
		if !errors.Is(err, raft.ErrRaftShutdown) {
			t.Fatalf("error is %v, want %v", err, raft.ErrRaftShutdown)
		}
	}
}

// A hand-over during a snapshot does not leave the node deaf until that is written:
// it is given up, and another one is taken later.
func TestRestartRaft_givesUpASnapshot(t *testing.T) {
	t.Parallel()
	c := newBackupCluster(t, "")
	submitOne(t, c.nodes...)
	leader := leaderOf(t, c.nodes...)
	leader.fsm.PersistRate = 1 // a byte a second
	taken := make(chan error, 1)
	go func() {
		_, err := leader.snapshotNow(context.Background())
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
		_, err := leader.snapshotNow(ctx)
		return err == nil
	})
}

// A node that leads on, between two scopes of its leadership, keeps its Raft: a transfer
// that failed just before must not break a restore off.
func TestEndTransfer_leadsBetweenScopes(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "n1", t.TempDir(), freeAddrs(t, 1)[0])
	cfg.Bootstrap = true
	n := openNode(t, cfg)
	defer closeNode(t, n)
	l := leaderOf(t, n).leader.Load()
	before := n.raft.run.Load()
	_, err := n.between(t.Context(), func() (uint64, error) {
		ended := make(chan struct{})
		n.transfers <- transferred{from: l, restarted: ended}
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

// stuckFSM applies nothing before it is let go.
type stuckFSM struct {
	raft.FSM
	goes chan struct{}
}

func (f stuckFSM) Apply(*raft.Log) any {
	<-f.goes
	return nil
}

// Each call returns when the run is over, also one that comes while another waits:
// nobody may start the next over stores that are in use.
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

// A node that learns that it was removed while its Raft is being started again has none
// that runs on.
func TestRestartRaft_removed(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "n1", t.TempDir(), freeAddrs(t, 1)[0])
	cfg.Bootstrap = true
	n := openNode(t, cfg)
	defer closeNode(t, n)
	leaderOf(t, n)
	n.leaveForGood()
	if err := n.restartRaft(); err != nil {
		t.Fatal(err)
	}
	if state := n.raft.State(); state != raft.Shutdown {
		t.Errorf("raft is in state %s, want %s", state, raft.Shutdown)
	}
}
