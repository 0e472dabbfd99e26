package cluster

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"
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
	leader.fsm.persistRate = 1 // a byte a second
	taken := make(chan error, 1)
	go func() {
		_, err := leader.snapshotNow(context.Background())
		taken <- err
	}()
	unfinished := filepath.Join(leader.cfg.DataDir, snapshotsFolder, "*"+snapshotTmp)
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
		t.Fatal("raft was not started anew")
	}
	if err := <-taken; err == nil {
		t.Error("the snapshot was taken all the same")
	}
	eventually(t, "what was written of it to go", func() bool {
		found, err := filepath.Glob(unfinished)
		return err == nil && len(found) == 0
	})
	leader.fsm.persistRate = snapshotRateMax
	eventually(t, "another snapshot", func() bool {
		_, err := leader.snapshotNow(ctx)
		return err == nil
	})
}
