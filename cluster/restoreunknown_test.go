package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// isRestoreEnd reports whether the entry ends a restore.
func isRestoreEnd(l *raft.Log) bool {
	if l.Type != raft.LogCommand {
		return false
	}
	_, cmds, err := command.DecodeEntry(l.Data)
	if err != nil || len(cmds) != 1 {
		return false
	}
	_, ends := cmds[0].(command.RestoreEnd)
	return ends
}

// The caller of a restore is told that its outcome is unknown if the leader is cut off before a
// majority says that it has the end of it, and that all of the backup or nothing will be there. Here
// it is all, because the others have the end.
func TestRestoreBackup_outcomeUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		old := clustertest.New(t, 1)
		id := old.Propose(submit("a")).Result.Submitted[0].Task.ID
		b, err := old.Leader().SaveBackup(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		var saved bytes.Buffer
		_, err = b.WriteTo(&saved)
		b.Release()
		if err != nil {
			t.Fatal(err)
		}

		c := clustertest.New(t, 3)
		leader := c.Leader()
		<-time.After(10 * time.Second) // the node records are written by now
		ends, goOn := make(chan struct{}, c.Len()), make(chan struct{})
		for _, f := range c.Followers() {
			c.Tamper(c.Place(f), func(l *raft.Log) {
				if isRestoreEnd(l) {
					ends <- struct{}{}
					<-goOn
				}
			})
		}
		restored := make(chan error, 1)
		go func() {
			_, err := leader.RestoreBackup(context.Background(), &saved)
			restored <- err
		}()
		<-ends
		c.Partition(leader)
		if err := <-restored; !errors.Is(err, nodes.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "restore again if the cluster is empty") {
			t.Errorf("restore: %v, want an unknown outcome, and what to do", err)
		}
		close(goOn)
		if next := c.Leader(); next == leader {
			t.Error("a leader that is cut off serves")
		}
		c.Heal()
		c.EnsureSame()
		_, err = c.Leader().ReadLinearizable(t.Context(), 0, func(m *fsm.Machine, _ fsm.Stamp) {
			if m.Get(id) == nil {
				t.Error("the backup's task is not there")
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
}
