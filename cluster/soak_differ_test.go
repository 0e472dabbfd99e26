package cluster

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// Two versions of one task's parameters, of the same length: what all nodes are sent, and what
// the node that differs gets instead.
const (
	soakRight = `"right"`
	soakWrong = `"wrong"`
	soakIt    = "it" // the task's key
)

// soakDiffersMax bounds the time for which a node that differs may go on once calls between
// nodes pass. Until then it must not mislead the others.
const soakDiffersMax = 15 * time.Second

// bend returns the message, with soakWrong instead of soakRight in its entries if it is for
// the node that should differ.
func (s *soakManners) bend(target raft.ServerAddress, args *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	if name := s.bent.Load(); name == nil || string(target) != *name || len(args.Entries) == 0 {
		return args
	}
	bent := *args
	bent.Entries = slices.Clone(args.Entries)
	for i, entry := range bent.Entries {
		copied := *entry
		copied.Data = bytes.ReplaceAll(copied.Data, []byte(soakRight), []byte(soakWrong))
		bent.Entries[i] = &copied
	}
	return &bent
}

// checkDiffering makes a node mistake an entry for another one, and lets it be elected, or try
// to be: a linearizable read must never return what only that node has. It has to end itself,
// and the others go on.
func (c *soakCluster) checkDiffering() {
	m := c.makeDiffer()
	wrong := c.watchDiffering(m.running())
	defer wrong()
	if c.random.IntN(2) == 0 {
		c.checkDivided(m)
	} else {
		for range 1 + c.random.IntN(4) {
			c.disturbDiffering(m)
			<-time.After(time.Duration(c.random.IntN(2000)) * time.Millisecond)
		}
	}
	c.calm()
	if took, ok := c.soakWaitOnce(soakDiffersMax, m.ended.Load); !ok {
		c.fail("%s differs and has not ended itself after %s", m.name, took)
	}
	if wrong() {
		c.fail("%s answered what only it has to who read linearizably", m.name)
	}
	c.stop(m, 0)
	for _, other := range c.members {
		if other != m && other.running() == nil {
			c.start(other)
		}
	}
	if took, ok := c.soakWait(soakProgressMax, func() bool { return c.readIt() == soakRight }); !ok {
		c.fail("the nodes that agree have not answered %s for %s", soakRight, took)
	}
}

// makeDiffer gives a follower another version of a task's entry than the other nodes, and
// returns it once it has applied that.
func (c *soakCluster) makeDiffer() (differs *soakMember) {
	_, ok := c.soakWait(soakLevelMax, func() bool {
		leader := c.leader()
		differs = c.any()
		if leader == nil || differs == leader {
			return false
		}
		differs.mayDiffer.Store(true)
		differs.disk.differs.Store(true)
		c.manners.bent.Store(&differs.name)
		defer c.manners.bent.Store(nil)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err := leader.running().Propose(ctx, command.Submit{Tasks: []fsm.NewTask{{Type: "differ", Params: []byte(soakRight), Key: soakIt}}})
		c.log.event("%s is to differ: %v", differs.name, err)
		took, ok := c.soakWaitOnce(soakDiffersMax, func() bool { return paramsOfIt(differs.running()) != "" })
		if !ok || paramsOfIt(differs.running()) != soakWrong {
			c.fail("%s does not differ after %s", differs.name, took)
		}
		return true
	})
	if !ok {
		c.fail("no leader to make a node differ from")
	}
	return differs
}

// disturbDiffering does something that may make the node that differs a leader, or hide the
// others' answers from it.
func (c *soakCluster) disturbDiffering(m *soakMember) {
	leader := c.leader()
	switch c.random.IntN(4) {
	case 0, 1:
		if leader == nil || leader == m || leader.running() == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), handoverTimeout)
		defer cancel()
		to, err := leader.running().Transfer(ctx, m.name)
		c.log.event("%s transferred to %q: %v", leader.name, to, err)
	case 2:
		c.cutOff(c.leaderOrAny())
	case 3:
		c.split()
	}
}

// watchDiffering reads from the node until it has ended itself. The returned function ends
// that and tells whether the node ever answered with what only it has.
func (c *soakCluster) watchDiffering(n *Node) (wrong func() bool) {
	ctx, cancel := context.WithCancel(context.Background())
	var answered atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			read, end := context.WithTimeout(ctx, time.Second)
			_, _ = n.ReadLinearizable(read, 0, func(m *fsm.Machine, _ fsm.Stamp) {
				if task := m.ByKey(soakIt); task != nil && string(task.Params) == soakWrong {
					answered.Store(true)
				}
			})
			end()
			<-time.After(time.Millisecond)
		}
	}()
	return func() bool {
		cancel()
		<-done
		return answered.Load()
	}
}

// readIt returns the task's parameters from the leader, "" without an answer.
func (c *soakCluster) readIt() (params string) {
	m := c.leader()
	if m == nil || m.running() == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = m.running().ReadLinearizable(ctx, 0, func(machine *fsm.Machine, _ fsm.Stamp) {
		if task := machine.ByKey(soakIt); task != nil {
			params = string(task.Params)
		}
	})
	return params
}

// paramsOfIt returns the task's parameters at the node, "" if it has none.
func paramsOfIt(n *Node) (params string) {
	n.fsm.Read(func(m *fsm.Machine) {
		if task := m.ByKey(soakIt); task != nil {
			params = string(task.Params)
		}
	})
	return params
}
