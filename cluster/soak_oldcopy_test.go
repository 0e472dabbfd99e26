package cluster

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/simnet"
)

// checkOldCopy starts a node from an old copy of its data folder, when its vote decides
// whether nodes are elected that lack entries that it has acknowledged since: they were away
// then, and all others that have the entries are away now. The node has to learn from them
// that the copy is old, and end itself without having voted; once the others are back the
// entries are there.
func (c *soakCluster) checkOldCopy() {
	m, with, lacking := c.divideForCopy()
	old := m.disk.path + "-old"
	c.stop(m, 0)
	if err := copyFolder(old, m.disk.path); err != nil {
		c.fail("copy %s: %v", m.name, err)
	}
	c.start(m)
	// A node that was not told of this start at once is told in the second round.
	<-time.After(2 * startTellInterval)

	for _, other := range lacking {
		c.stop(other, 0)
	}
	c.acknowledgeIt()
	for _, other := range append(with, m) {
		c.stop(other, 0)
	}
	if err := errors.Join(os.RemoveAll(m.disk.path), os.Rename(old, m.disk.path)); err != nil {
		c.fail("%s: %v", m.name, err)
	}
	m.oldCopy.Store(true)
	c.log.event("%s is put back from an old copy", m.name)
	c.start(m)
	<-time.After(time.Duration(c.random.IntN(2000)) * time.Millisecond)
	c.checkEnds(m, lacking, "was put back from an old copy")
	c.checkReadable(m, with)
}

// checkCopyBeside starts a copy of a node's data folder at another address while the node is
// paused. The copy continues in its place, and acknowledges entries that the paused node
// lacks. When that one continues, and its vote decides whether others are elected that lack
// them, too, it has to end itself without having voted.
func (c *soakCluster) checkCopyBeside() {
	m, with, lacking := c.divideForCopy()
	place := c.place(m)
	copied := &soakMember{
		name: m.name, host: m.host + "-copy", clock: m.clock,
		disk: &soakDisk{path: m.disk.path + "-copy", nodeID: m.name, wal: m.disk.wal, entries: m.disk.entries},
	}
	// By then it has announced its start to all others, and asks no more.
	<-time.After(2 * startTellInterval)
	links := append(c.linksOf(m), simnet.Link{From: m.host, To: copied.host}, simnet.Link{From: copied.host, To: m.host})
	c.network.Hold(links...)
	<-time.After(time.Duration(c.random.IntN(5000)) * time.Millisecond)
	if err := copyFolder(copied.disk.path, m.disk.path); err != nil {
		c.fail("copy %s: %v", m.name, err)
	}
	c.log.event("%s is paused, and a copy of it is started at %s", m.name, copied.host)
	c.members[place] = copied
	c.start(copied)
	if took, ok := c.soakWait(soakLevelMax, func() bool { return copied.running().gate.IsOpen() }); !ok {
		c.fail("a copy of %s, which is paused, does not vote after %s", m.name, took)
	}
	for _, other := range lacking {
		c.stop(other, 0)
	}
	c.acknowledgeIt()
	for _, other := range append(with, copied) {
		c.stop(other, 0)
	}
	c.members[place] = m
	m.oldCopy.Store(true)
	c.log.event("%s goes on", m.name)
	c.network.Release(links...)
	c.checkEnds(m, lacking, "was paused while a copy of it was started")
	c.members[place] = copied
	c.checkReadable(m, append(with, copied))
}

// checkEnds starts the nodes that lack acknowledged entries while m runs, which lacks them
// as well: m has to end itself before its vote helps one of them to serve.
func (c *soakCluster) checkEnds(m *soakMember, lacking []*soakMember, why string) {
	for _, other := range lacking {
		c.start(other)
	}
	served := false
	took, _ := c.soakWaitOnce(soakDiffersMax, func() bool {
		served = c.anybodyServes()
		return served || m.ended.Load()
	})
	switch {
	case served:
		c.fail("somebody serves by the vote of %s, which %s, and lacks what is acknowledged", m.name, why)
	case !m.ended.Load():
		c.fail("%s %s, and has not ended itself after %s", m.name, why, took)
	}
	c.stop(m, 0)
}

// checkReadable starts the nodes that have the acknowledged entries, which must then be
// readable.
func (c *soakCluster) checkReadable(m *soakMember, with []*soakMember) {
	for _, other := range with {
		c.start(other)
	}
	if took, ok := c.soakWait(soakProgressMax, func() bool { return c.readIt() == soakRight }); !ok {
		c.fail("what was acknowledged without %s is not there after %s", m.name, took)
	}
}

// divideForCopy returns a follower, enough nodes to be just a majority with it, among them
// the leader, and the rest, which are a majority with the follower, too.
func (c *soakCluster) divideForCopy() (m *soakMember, with, lacking []*soakMember) {
	var leader *soakMember
	if _, ok := c.soakWait(soakLevelMax, func() bool { leader = c.leader(); return leader != nil }); !ok {
		c.fail("no leader before a node is put back")
	}
	others := slices.DeleteFunc(slices.Clone(c.members), func(other *soakMember) bool { return other == leader })
	c.random.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	half := len(c.members) / 2
	return others[0], append(slices.Clone(others[1:half]), leader), others[half:]
}

// acknowledgeIt submits the task soakIt, and returns once that is acknowledged.
func (c *soakCluster) acknowledgeIt() {
	took, ok := c.soakWait(soakLevelMax, func() bool {
		n := c.leaderOrAny().running()
		if n == nil {
			return false
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err := n.Propose(ctx, command.Submit{Tasks: []fsm.NewTask{{Type: "differ", Params: []byte(soakRight), Key: soakIt}}})
		return err == nil
	})
	if !ok {
		c.fail("a majority has acknowledged nothing for %s", took)
	}
}
