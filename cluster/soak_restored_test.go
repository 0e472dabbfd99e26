package cluster

import (
	"bytes"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
)

// checkRestoredAlone makes a leader restore a backup by Raft's own call, which the product
// does not use, and crash once its snapshot is on disk: its state was never agreed on, and
// the others come to have something else at that index. Restarted after the others have
// gone on, it has to refuse their entries and end itself, or to install a snapshot of
// theirs once that is of a later entry; and the others go on.
func (c *soakCluster) checkRestoredAlone() {
	m := c.restoreAlone()
	if _, ok := c.soakWait(soakProgressMax, c.anybodyServes); !ok {
		c.fail("nobody serves after %s crashed in a restore", m.name)
	}
	m.otherHistory.Store(true)
	c.start(m)
	settled := func() bool {
		if m.ended.Load() || !c.anybodyServes() { // writes an entry
			return m.ended.Load()
		}
		c.snapshotOf(c.leaderOrAny())
		<-time.After(200 * time.Millisecond)
		return c.isLevel(m)
	}
	// Raft goes back to where the two logs agree by one entry for each question and answer.
	goBack := time.Duration(m.running().raft.LastIndex()) * 2 * c.plan.weather.Delay
	if took, ok := c.soakWaitOnce(soakLevelMax+goBack, settled); !ok {
		c.fail("%s has restored what nobody agreed to, and after %s it has neither ended itself nor what the others have", m.name, took)
	}
	if m.ended.Load() {
		c.stop(m, 0)
	} else {
		c.checkSame()
	}
	if _, ok := c.soakWait(soakProgressMax, c.anybodyServes); !ok {
		c.fail("nobody serves once %s has crashed in a restore", m.name)
	}
}

// restoreAlone returns a leader that has crashed with the snapshot of a restore that only
// it made.
func (c *soakCluster) restoreAlone() (m *soakMember) {
	saved := c.newSoakBackup().saved
	backup, err := fsm.ReadBackup(bytes.NewReader(saved), int64(len(saved)))
	if err != nil {
		c.fail("read the backup: %v", err)
	}
	_, ok := c.soakWait(soakLevelMax, func() bool {
		if m = c.leader(); m == nil {
			return false
		}
		n := m.running()
		state, err := n.backups.graft(backup, fsm.Ground{Level: fsm.FeatureLevel(), NextID: 1, NextToken: 1})
		if err != nil {
			c.fail("%s: %v", m.name, err)
		}
		defer state.Close()
		m.disk.silent = c.random.IntN(2) == 0
		m.disk.arm(soakCrash{kind: writeSnapshot, done: true})
		defer m.disk.disarm()
		meta := &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, Size: state.Size(), Index: n.raft.LastIndex() + uint64(c.random.IntN(3)*c.random.IntN(20))}
		err = n.raft.current().Restore(meta, state.Reader(), time.Second)
		c.log.event("%s restores what nobody agreed to: %v", m.name, err)
		return m.disk.hasCrashed()
	})
	if !ok {
		c.fail("no leader to restore alone")
	}
	return m
}
