package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/cluster/storage/disktest"
	"github.com/claimq/claimq/fsm/command"
)

// A follower that was away for long is sent entries when it returns, because the
// other one may be restarted next. Raft by itself only tries again after up to ten seconds,
// in which it leads but cannot commit.
func TestNode_replicatesToWhoComesBack(t *testing.T) {
	t.Parallel()
	dir := disktest.MemoryDir(t)
	synctest.Test(t, func(t *testing.T) {
		plan := soakPlan{nodes: 3, wal: []int{4 << 10, 4 << 10, 4 << 10}, snapshotEvery: 1 << 40}
		c := newSoakCluster(t, 1, dir, &plan)
		defer func() {
			c.close()
			if t.Failed() {
				t.Logf("everything that happened:\n%s", c.log.text())
			}
			c.closeLog()
		}()
		c.writeEntries(1)
		leader := c.leader()
		var others []*soakMember
		for _, m := range c.members {
			if m != leader {
				others = append(others, m)
			}
		}
		c.stop(others[0], 0)
		<-time.After(53 * time.Second)
		c.start(others[0])
		<-time.After(500 * time.Millisecond)
		c.stop(others[1], 0)
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_, err := leader.running().Propose(ctx, command.Tick{})
		if took := time.Since(start); err != nil || took > time.Second {
			t.Errorf("written after %s, %v: want less than a second", took, err)
		}
	})
}
