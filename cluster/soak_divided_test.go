package cluster

import (
	"context"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// soakDividedFor is how long nobody may answer while no majority is there that has
// applied the same.
const soakDividedFor = 10 * time.Second

// checkDivided stops so many of the others that a majority is left, and none that has
// applied the same: one of it is m, which differs. From soakDiffersMax on nobody answers,
// whoever is elected. Then it starts those that it stopped.
func (c *soakCluster) checkDivided(m *soakMember) {
	leader := c.leader()
	level, _ := c.soakWaitOnce(soakDiffersMax, func() bool {
		for _, other := range c.members {
			if other != m && paramsOfIt(other.running()) != soakRight {
				return m.ended.Load()
			}
		}
		return true
	})
	if leader == nil || leader == m || m.ended.Load() {
		c.log.event("%s was found to differ within %s", m.name, level)
		return
	}
	left := len(c.members)
	for _, other := range c.members {
		if other != m && other != leader && left > len(c.members)/2+1 {
			c.stop(other, 0)
			left--
		}
	}
	for range c.random.IntN(2) * (1 + c.random.IntN(2)) {
		switch c.random.IntN(3) {
		case 0:
			c.restart(leader, 0)
		case 1:
			c.cutOff(leader)
		case 2:
			c.transfer()
		}
		<-time.After(time.Duration(c.random.IntN(3000)) * time.Millisecond)
	}
	c.calm()
	if took, ok := c.soakWaitOnce(soakDiffersMax, func() bool { return !c.anybodyServes() }); !ok {
		c.fail("%s differs from the rest of the %d nodes that are left, and somebody served for %s", m.name, left, took)
	}
	for until := time.Now().Add(soakDividedFor); time.Now().Before(until); <-time.After(100 * time.Millisecond) {
		if c.anybodyServes() {
			c.fail("%s differs from the rest of the %d nodes that are left, and somebody serves", m.name, left)
		}
	}
	c.startStopped()
}

// anybodyServes reports whether a node answers a read, linearizably, or a caller's command.
func (c *soakCluster) anybodyServes() bool {
	for _, m := range c.members {
		n := m.running()
		if n == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		_, read := n.ReadLinearizable(ctx, 0, func(*fsm.Machine, fsm.Stamp) {})
		_, written := n.Propose(ctx, command.Submit{Tasks: []fsm.NewTask{{Type: "served", Params: []byte("1"), Key: "served"}}})
		cancel()
		if read == nil || written == nil {
			return true
		}
	}
	return false
}
