package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/cluster/storage/disktest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// loopCase makes a deposed leader keep entries that were never committed, and sends it a
// snapshot whose index lies among them. Without the seam, Raft sends it again and again
// without a pause (docs/adr/0008-install-snapshot-livelock.md).
type loopCase struct {
	name     string
	nodes    int
	trailing uint64 // entries kept below a snapshot
	tail     int    // entries that only the deposed leader has
	// during is the number of entries written while the snapshot is.
	during int
	// installed makes the next leader know only the snapshot, not the entries before it,
	// because it was sent that snapshot itself.
	installed bool
}

func loopCases() []loopCase {
	return []loopCase{
		{name: "few entries kept", nodes: 3, trailing: 2, tail: 60},
		{name: "as many kept as lie in the tail", nodes: 3, trailing: 61, tail: 60},
		{name: "our settings", nodes: 3, trailing: trailingLogsMin, tail: 8},
		{name: "our settings, much is written during the snapshot", nodes: 3, trailing: trailingLogsMin, tail: 8, during: trailingLogsMin + 100},
		{name: "our settings, the leader was sent the snapshot", nodes: 5, trailing: trailingLogsMin, tail: 8, installed: true},
	}
}

// A deposed leader catches up, whatever its log has above the snapshot that it is sent.
func TestRestoreLoop(t *testing.T) {
	t.Parallel()
	for _, lc := range loopCases() {
		t.Run(lc.name, func(t *testing.T) {
			t.Parallel()
			dir := disktest.MemoryDir(t)
			synctest.Test(t, func(t *testing.T) { lc.run(t, dir) })
		})
	}
}

func (lc loopCase) run(t *testing.T, dir string) {
	plan := soakPlan{nodes: lc.nodes, snapshotEvery: 1 << 40, trailing: lc.trailing}
	for range lc.nodes {
		// raft-wal still returns deleted entries from its current segment: with small segments
		// the test's entries are in others.
		plan.wal = append(plan.wal, 1<<10)
	}
	c := newSoakCluster(t, 1, dir, &plan)
	defer func() {
		c.close()
		if t.Failed() {
			t.Logf("everything that happened:\n%s", c.log.text())
		}
		c.closeLog()
	}()
	c.writeEntries(20)
	late := c.members[0]
	if lc.installed {
		for late == c.leader() {
			late = c.members[1]
		}
		c.stop(late, 0)
		c.writeEntries(trailingLogsMin + 100)
	}

	deposed := c.leader()
	c.leaveTail(deposed, lc.tail)
	c.writeEntries(lc.tail / 2)
	c.snapshotDuring(lc.during)
	if lc.installed {
		c.start(late)
		c.level(late)
		c.lead(late)
	}
	<-time.After(5 * time.Second) // messages from earlier leaders have failed
	c.writeEntries(3)             // past the snapshot: otherwise it would have caught up with that
	c.network.Release()
	_, ok := c.soakWaitOnce(soakLevelMax, func() bool { return deposed.loops.Load() > 0 || c.isLevel(deposed) })
	if !ok {
		t.Fatal("the deposed leader neither catches up nor ends itself")
	}
	c.writeEntries(1)
	c.level(deposed)
	if deposed.loops.Load() > 0 {
		t.Error("the deposed leader ended itself for a loop of restores")
	}
}

// writeEntries writes n entries to the current leader.
func (c *soakCluster) writeEntries(n int) {
	c.t.Helper()
	for i := 0; i < n; {
		if _, ok := c.soakWaitOnce(soakLeaderMax, func() bool { return c.leader() != nil }); !ok {
			c.t.Fatal("no leader")
		}
		_, err := c.leader().running().Propose(context.Background(), command.Tick{})
		if err == nil {
			i++
		} else {
			<-time.After(100 * time.Millisecond)
		}
	}
}

// leaveTail cuts the leader off with n entries that only it has, and waits for another
// leader.
func (c *soakCluster) leaveTail(m *soakMember, n int) {
	c.t.Helper()
	c.network.Cut(c.linksOf(m)...)
	r := m.running().raft.current()
	last := r.LastIndex()
	for i := range n {
		go r.Apply(command.AppendEntry(nil, fsm.Stamp{}, command.Delete{ID: uint64(i + 1)}), time.Second).Error()
	}
	_, ok := c.soakWaitOnce(soakLeaderMax, func() bool {
		leader := c.leader()
		return r.LastIndex() >= last+uint64(n) && leader != nil && leader != m
	})
	if !ok {
		c.t.Fatalf("no other leader, or no tail: %d to %d", last, r.LastIndex())
	}
	c.log.event("%s keeps %d to %d", m.name, last+1, r.LastIndex())
}

// snapshotDuring takes a snapshot on every reachable running node, and writes n entries
// before any is finished.
func (c *soakCluster) snapshotDuring(n int) {
	c.t.Helper()
	finish := make(chan struct{})
	leader := c.leader()
	leader.disk.snapshots.Store(&finish)
	done := make(chan error, 1)
	index := leader.running().AppliedIndex()
	go func() {
		_, err := leader.running().TakeSnapshot(context.Background())
		done <- err
	}()
	synctest.Wait()
	c.writeEntries(n)
	leader.disk.snapshots.Store(nil)
	close(finish)
	if err := <-done; err != nil {
		c.t.Fatal(err)
	}
	first, _ := leader.running().logs.FirstIndex()
	c.log.event("%s took a snapshot at %d, its log begins at %d", leader.name, index, first)
}

// lead makes m the leader.
func (c *soakCluster) lead(m *soakMember) {
	c.t.Helper()
	place := c.servers[c.place(m)]
	if err := c.leader().running().raft.LeadershipTransferToServer(place.ID, place.Address).Error(); err != nil {
		c.t.Fatal(err)
	}
	if _, ok := c.soakWaitOnce(soakLeaderMax, func() bool { return c.leader() == m }); !ok {
		c.t.Fatalf("%s does not lead", m.name)
	}
}

func (c *soakCluster) isLevel(m *soakMember) bool {
	leader, n := c.leader(), m.running()
	return leader != nil && n != nil && n.AppliedIndex() == leader.running().AppliedIndex()
}

// level waits until m has the leader's state.
func (c *soakCluster) level(m *soakMember) {
	c.t.Helper()
	if took, ok := c.soakWaitOnce(soakLevelMax, func() bool { return c.isLevel(m) }); !ok {
		c.t.Fatalf("%s is not level after %s", m.name, took)
	}
	_, want := c.leader().running().StateHash()
	if _, got := m.running().StateHash(); got != want {
		c.t.Errorf("%s has another state than the leader", m.name)
	}
}
