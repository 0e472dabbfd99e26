package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/claimq/claimq/fsm"
)

// soakFault is one thing that can happen to a cluster. Most of them last until
// the next time that everything is healed.
type soakFault struct {
	name   string
	weight int
	play   func(c *soakCluster)
}

func soakFaults() []soakFault {
	return []soakFault{
		{"cut the leader off", 4, func(c *soakCluster) { c.cutOff(c.leaderOrAny()) }},
		{"cut a node off", 3, func(c *soakCluster) { c.cutOff(c.any()) }},
		{"split", 2, (*soakCluster).split},
		{"hold one direction", 3, (*soakCluster).holdOneWay},
		{"break connections", 2, func(c *soakCluster) { c.network.reset(c.any().name) }},
		{"pause a node", 3, func(c *soakCluster) { c.pauseNode(c.any()) }},
		{"pause the leader", 3, func(c *soakCluster) { c.pauseNode(c.leaderOrAny()) }},
		{"flap the leader", 2, (*soakCluster).flap},
		{"release the network", 5, func(c *soakCluster) { c.network.release() }},
		{"restart a node", 4, func(c *soakCluster) { c.restart(c.any(), 0) }},
		{"restart the leader", 4, func(c *soakCluster) { c.restart(c.leaderOrAny(), 0) }},
		{"restart the leader, handing over", 2, func(c *soakCluster) { c.restart(c.leaderOrAny(), handoverTimeout) }},
		{"restart all", 1, (*soakCluster).restartAll},
		{"stop a node for long", 3, func(c *soakCluster) { c.stop(c.any(), 0) }},
		{"start what is stopped", 3, (*soakCluster).startStopped},
		{"transfer the leadership", 3, (*soakCluster).transfer},
		{"take a snapshot", 4, (*soakCluster).snapshot},
		{"slow a disk", 2, (*soakCluster).slowDisk},
		{"jump a wall clock", 3, (*soakCluster).jumpClock},
		{"burst", 3, (*soakCluster).burst},
		{"burst while the leader is cut off", 3, func(c *soakCluster) {
			c.cutOff(c.leaderOrAny())
			c.burst()
		}},
	}
}

// playFault plays one fault, drawn by weight.
func (c *soakCluster) playFault(faults []soakFault) {
	total := 0
	for _, f := range faults {
		total += f.weight
	}
	drawn := c.random.IntN(total)
	for _, f := range faults {
		if drawn -= f.weight; drawn < 0 {
			c.log.event("fault: %s", f.name)
			f.play(c)
			return
		}
	}
}

func (c *soakCluster) any() *soakMember { return c.members[c.random.IntN(len(c.members))] }

func (c *soakCluster) leaderOrAny() *soakMember {
	if m := c.leader(); m != nil {
		return m
	}
	return c.any()
}

// linksOf returns both directions between m and every other node.
func (c *soakCluster) linksOf(m *soakMember) []soakLink {
	var links []soakLink
	for _, other := range c.members {
		if other != m {
			links = append(links, soakLink{m.name, other.name}, soakLink{other.name, m.name})
		}
	}
	return links
}

// cutOff lets nothing through between m and the others; half of the times what
// was under way is lost.
func (c *soakCluster) cutOff(m *soakMember) {
	c.log.event("%s cut off", m.name)
	if c.random.IntN(2) == 0 {
		c.network.hold(c.linksOf(m)...)
	} else {
		c.network.cut(c.linksOf(m)...)
	}
}

// split cuts the nodes into two sides, drawn.
func (c *soakCluster) split() {
	var links []soakLink
	side := make(map[*soakMember]bool)
	for _, m := range c.members {
		side[m] = c.random.IntN(2) == 0
	}
	for _, a := range c.members {
		for _, b := range c.members {
			if side[a] != side[b] {
				links = append(links, soakLink{a.name, b.name})
			}
		}
	}
	c.log.event("held: %v", links)
	c.network.hold(links...)
}

func (c *soakCluster) holdOneWay() {
	a, b := c.any(), c.any()
	if a != b {
		c.log.event("held: from %s to %s", a.name, b.name)
		c.network.hold(soakLink{a.name, b.name})
	}
}

// pauseNode holds a node's transport for a while, as if its process stood
// still: what was sent before arrives long after.
func (c *soakCluster) pauseNode(m *soakMember) {
	d := time.Duration(100+c.random.IntN(6000)) * time.Millisecond
	c.log.event("%s held for %s", m.name, d)
	links := c.linksOf(m)
	c.network.hold(links...)
	<-time.After(d)
	c.network.release(links...)
}

// flap cuts whoever leads off for a moment, again and again: uncommitted
// entries pile up at the end of logs.
func (c *soakCluster) flap() {
	for range 2 + c.random.IntN(6) {
		m := c.leader()
		if m == nil {
			<-time.After(50 * time.Millisecond)
			continue
		}
		links := c.linksOf(m)
		c.network.hold(links...)
		<-time.After(time.Duration(200+c.random.IntN(1200)) * time.Millisecond)
		c.network.release(links...)
		<-time.After(time.Duration(c.random.IntN(300)) * time.Millisecond)
	}
}

func (c *soakCluster) restart(m *soakMember, handover time.Duration) {
	c.stop(m, handover)
	if c.random.IntN(2) == 0 {
		<-time.After(time.Duration(c.random.IntN(3000)) * time.Millisecond)
	}
	c.start(m)
}

func (c *soakCluster) restartAll() {
	for _, m := range c.members {
		c.stop(m, 0)
	}
	c.startStopped()
}

func (c *soakCluster) startStopped() {
	for _, m := range c.members {
		if m.running() == nil {
			c.start(m)
		}
	}
}

// transfer has the leader hand over to whom it chooses, and start its Raft anew.
func (c *soakCluster) transfer() {
	m := c.leader()
	if m == nil {
		return
	}
	n := m.running()
	n.start(func() {
		to, err := n.Transfer(n.ctx, "")
		c.log.event("%s transferred to %q: %v", m.name, to, err)
	})
}

func (c *soakCluster) snapshot() {
	m := c.any()
	if n := m.running(); n != nil {
		n.start(func() {
			_, err := n.TakeSnapshot(n.ctx)
			c.log.event("%s took a snapshot: %v", m.name, err)
		})
	}
}

// slowDisk makes each write of a node take up to 400 ms, or now and then
// seconds, but not so long that it would end itself.
func (c *soakCluster) slowDisk() {
	m := c.any()
	d := time.Duration(1+c.random.IntN(400)) * time.Millisecond
	if c.random.IntN(4) == 0 {
		d = time.Duration(1+c.random.IntN(4)) * time.Second
	}
	c.log.event("%s: each write takes %s", m.name, d)
	m.disk.slow.Store(int64(d))
	<-time.After(time.Duration(c.random.IntN(5000)) * time.Millisecond)
	m.disk.slow.Store(0)
}

func (c *soakCluster) jumpClock() {
	d := time.Duration(c.random.Int64N(int64(8*time.Hour)) - int64(4*time.Hour))
	m := c.any()
	c.log.event("%s: the wall clock jumps by %s", m.name, d)
	m.clock.skew.Add(int64(d))
}

// burst proposes many commands at once to whoever leads, or led, and waits for
// none of them.
func (c *soakCluster) burst() {
	for _, m := range c.members {
		n := m.running()
		if n == nil || n.leader.Load() == nil {
			continue
		}
		for i := range 20 + c.random.IntN(200) {
			tasks := []fsm.NewTask{{Type: "burst", Params: []byte("1"), Key: fmt.Sprint("burst ", i)}}
			n.start(func() {
				ctx, cancel := context.WithTimeout(n.ctx, 5*time.Second)
				defer cancel()
				_, _ = n.Propose(ctx, fsm.Submit{Tasks: tasks})
			})
		}
	}
}
