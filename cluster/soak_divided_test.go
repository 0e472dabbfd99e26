package cluster

import (
	"context"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// soakDividedFor is the time for which no node may answer while there is no majority that
// has applied the same entries.
const soakDividedFor = 10 * time.Second

// checkDivided stops some of the other nodes, so that those left are a majority, but
// without a majority that has applied the same entries: one of them is m, which differs.
// From soakDiffersMax on no node may answer, no matter which is elected. Then it restarts
// the stopped ones.
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

// anybodyServes reports whether a node answers a linearizable read or a caller's command.
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
