package cluster

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// soakBackup is a backup of another cluster.
type soakBackup struct {
	saved []byte
	keys  map[string]uint64 // of its tasks
}

// newSoakBackup makes a backup of some tasks.
func (c *soakCluster) newSoakBackup() soakBackup {
	n, err := newNode(Config{NodeID: "old", NoRaft: true}.withDefaults(), Parts{UUID: "old"})
	if err != nil {
		c.t.Fatal(err)
	}
	n.run()
	defer func() { _ = n.Close(context.Background()) }()
	if _, ok := c.soakWaitOnce(soakLeaderMax, n.IsLeader); !ok {
		c.t.Fatal("a node alone does not lead")
	}
	b := soakBackup{keys: make(map[string]uint64)}
	for i := range 1 + c.random.IntN(20) {
		key := fmt.Sprint("backup ", i)
		p, err := n.Propose(context.Background(), command.Submit{Tasks: []fsm.NewTask{{Type: "old", Params: []byte("1"), Key: key}}})
		if err != nil {
			c.t.Fatal(err)
		}
		b.keys[key] = p.Result.Submitted[0].Task.ID
	}
	backup, err := n.SaveBackup(context.Background(), true)
	if err != nil {
		c.t.Fatal(err)
	}
	defer backup.Release()
	var to bytes.Buffer
	if _, err := backup.WriteTo(&to); err != nil {
		c.t.Fatal(err)
	}
	b.saved = to.Bytes()
	return b
}

// restoreBackup restores a backup into the empty cluster, while nodes crash, or take
// snapshots in the middle and restart from them. When the outcome is known the load starts
// with the resulting state, perhaps before crashed nodes are back.
func (c *soakCluster) restoreBackup(l *soakLoad) {
	b := c.newSoakBackup()
	c.checkRecovery(l)
	<-time.After(time.Duration(c.random.IntN(20)) * time.Second)
	leader := c.leaderOrAny()
	n := leader.running()
	disturb := c.crashWithin
	if c.random.IntN(2) == 0 {
		disturb = c.snapshotWithin
	}
	restored := make(chan error, 1)
	disturb(leader, func() {
		_, err := n.RestoreBackup(context.Background(), bytes.NewReader(b.saved))
		c.log.event("%s restores a backup: %v", leader.name, err)
		restored <- err
	})
	if c.random.IntN(2) == 0 {
		<-time.After(time.Duration(c.random.IntN(10000)) * time.Millisecond)
		c.heal()
	}
	missing, known := c.lookFor(b)
	if !known {
		c.heal()
		if missing, known = c.lookFor(b); !known {
			c.fail("no read a while after healing")
		}
	}
	acknowledged := false
	select {
	case err := <-restored:
		acknowledged = err == nil && !c.hasCrashed(n)
	default:
	}
	c.log.event("of the backup %d of %d tasks are missing; acknowledged: %v", missing, len(b.keys), acknowledged)
	switch {
	case missing == 0:
		for key, id := range b.keys {
			l.keys[key] = id
		}
	case missing < len(b.keys) || acknowledged:
		c.fail("of the backup's %d tasks %d are missing; it was acknowledged: %v", len(b.keys), missing, acknowledged)
	}
}

// crashWithin makes nodes, mostly the leader, crash at one of their next writes, and plays
// faults during the restore.
func (c *soakCluster) crashWithin(leader *soakMember, restore func()) {
	for _, m := range c.members {
		if m == leader && c.random.IntN(3) > 0 || c.random.IntN(4) == 0 {
			c.crashAtWrite(m)
		}
	}
	go restore()
	for range c.random.IntN(3) {
		c.playFault(soakFaults())
	}
}

// snapshotWithin lets nodes take a snapshot in the middle of the restore, which slow disks
// prolong, and restart from it: anything that the snapshot lacks is lost to them.
func (c *soakCluster) snapshotWithin(leader *soakMember, restore func()) {
	for _, m := range c.members {
		m.disk.slow.Store(int64(50+c.random.IntN(300)) * int64(time.Millisecond))
	}
	go restore()
	c.soakWaitOnce(soakProgressMax, func() bool { return isRestoring(leader) })
	var behind []*soakMember
	for range 1 + c.random.IntN(3) {
		<-time.After(time.Duration(c.random.IntN(300)) * time.Millisecond)
		if m := c.any(); isRestoring(m) {
			c.snapshotOf(m)
			behind = append(behind, m)
		}
	}
	c.soakWaitOnce(soakProgressMax, func() bool { return !isRestoring(leader) })
	for _, m := range c.members {
		m.disk.slow.Store(0)
	}
	for _, m := range behind {
		if m != leader {
			c.restart(m, 0)
		}
	}
}

// isRestoring reports whether the member's node is in the middle of a restore.
func isRestoring(m *soakMember) bool {
	n := m.running()
	return n != nil && n.fsm.Restoring()
}

// lookFor counts the backup's tasks that are missing; known is false if no node serves.
func (c *soakCluster) lookFor(b soakBackup) (missing int, known bool) {
	_, known = c.soakWait(soakLevelMax, func() bool {
		m := c.leader()
		if m == nil {
			return false
		}
		n := m.running()
		if n == nil {
			return false
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := n.ReadLinearizable(ctx, 0, func(machine *fsm.Machine, _ fsm.Stamp) {
			missing = 0
			for key := range b.keys {
				if machine.ByKey(key) == nil {
					missing++
				}
			}
		})
		return err == nil && !c.hasCrashed(n)
	})
	return missing, known
}
