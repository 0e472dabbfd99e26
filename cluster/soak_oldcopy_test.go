package cluster

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// checkOldCopy starts a node from an old copy of its data folder, when its vote decides
// whether those are elected that lack what it acknowledged since: they were away then,
// and all others that have it are away now. The node has to hear from them that the copy
// is old, and to end itself without having voted; once the others are back they have it.
func (c *soakCluster) checkOldCopy() {
	m, with, lacking := c.divideForCopy()
	old := m.disk.path + "-old"
	c.stop(m, 0)
	if err := copyFolder(old, m.disk.path); err != nil {
		c.fail("copy %s: %v", m.name, err)
	}
	c.start(m)
	// Who has not been told of this start at once is told in the second round.
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
		c.fail("somebody serves by the vote of %s, which was put back from an old copy, and lacks what is acknowledged", m.name)
	case !m.ended.Load():
		c.fail("%s was put back from an old copy, and has not ended itself after %s", m.name, took)
	}
	c.stop(m, 0)
	for _, other := range with {
		c.start(other)
	}
	if took, ok := c.soakWait(soakProgressMax, func() bool { return c.readIt() == soakRight }); !ok {
		c.fail("what was acknowledged before %s was put back from an old copy is not there after %s", m.name, took)
	}
}

// divideForCopy returns a follower, the leader with so many that the three are just a
// majority, and the rest, which is one with the follower, too.
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
