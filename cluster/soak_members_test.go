package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/nodes"
)

// changeVote takes the vote of a node away, or gives it back.
func (c *soakCluster) changeVote() {
	at, about := c.any(), c.any()
	n := at.running()
	if n == nil {
		return
	}
	change, what := n.DemoteNode, "demotes"
	if c.random.IntN(2) == 0 {
		change, what = n.PromoteNode, "promotes"
	}
	n.start(func() {
		ctx, cancel := context.WithTimeout(n.ctx, 5*time.Second)
		defer cancel()
		err := change(ctx, about.name, nodes.Operator{})
		c.log.event("%s %s %s: %v", at.name, what, about.name, err)
	})
}

// promoteAll gives all members their votes back.
func (c *soakCluster) promoteAll() {
	took, ok := c.soakWait(soakLevelMax, func() bool {
		m := c.leader()
		if m == nil {
			return false
		}
		n := m.running()
		if n == nil {
			return false
		}
		servers, voters := n.servers(), 0
		for i, s := range servers {
			if s.Suffrage == raft.Voter {
				voters++
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			err := n.PromoteNode(ctx, string(servers[i].Address), nodes.Operator{})
			cancel()
			c.log.event("%s promotes %s: %v", m.name, s.Address, err)
		}
		return voters == len(c.members)
	})
	if !ok {
		c.fail("not all have their votes %s after healing", took)
	}
}
