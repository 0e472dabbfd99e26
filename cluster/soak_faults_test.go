package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/simnet"
)

// soakFault is something that can happen to a cluster. Most faults last until everything is
// healed the next time.
type soakFault struct {
	name   string
	group  soakGroup
	weight int
	play   func(c *soakCluster)
}

func soakFaults() []soakFault {
	return []soakFault{
		{"cut the leader off", faultNetwork, 4, func(c *soakCluster) { c.cutOff(c.leaderOrAny()) }},
		{"cut a node off", faultNetwork, 3, func(c *soakCluster) { c.cutOff(c.any()) }},
		{"split", faultNetwork, 2, (*soakCluster).split},
		{"hold one direction", faultNetwork, 3, (*soakCluster).holdOneWay},
		{"break connections", faultNetwork, 2, func(c *soakCluster) { c.network.Break(c.any().host) }},
		{"pause a node", faultNetwork, 3, func(c *soakCluster) { c.pauseNode(c.any()) }},
		{"pause the leader", faultNetwork, 3, func(c *soakCluster) { c.pauseNode(c.leaderOrAny()) }},
		{"flap the leader", faultNetwork, 2, (*soakCluster).flap},
		{"release the network", faultNetwork, 5, (*soakCluster).calm},
		{"slow connections", faultReorder, 3, (*soakCluster).slowConnections},
		{"stall connections", faultReorder, 3, (*soakCluster).stallConnections},
		{"messages by kind", faultReorder, 3, (*soakCluster).changeManners},
		{"break some connections", faultReorder, 2, func(c *soakCluster) { c.network.BreakSome(1 + c.random.IntN(4)) }},
		{"restart a node", faultProcess, 4, func(c *soakCluster) { c.restart(c.any(), 0) }},
		{"restart the leader", faultProcess, 4, func(c *soakCluster) { c.restart(c.leaderOrAny(), 0) }},
		{"restart the leader, handing over", faultProcess, 2, func(c *soakCluster) { c.restart(c.leaderOrAny(), handoverTimeout) }},
		{"restart all", faultProcess, 1, (*soakCluster).restartAll},
		{"stop a node for long", faultProcess, 3, func(c *soakCluster) { c.stop(c.any(), 0) }},
		{"start what is stopped", faultProcess, 6, (*soakCluster).startStopped},
		{"crash a node", faultCrash, 2, func(c *soakCluster) { c.crashAtWrite(c.any()) }},
		{"crash the leader", faultCrash, 1, func(c *soakCluster) { c.crashAtWrite(c.leaderOrAny()) }},
		{"crash all", faultCrash, 1, (*soakCluster).crashAll},
		{"crash the leader before it has written", faultCrash, 1, (*soakCluster).crashUnwritten},
		{"transfer the leadership", faultTransfer, 3, (*soakCluster).transfer},
		{"transfer again and again", faultTransfer, 2, (*soakCluster).transferOften},
		{"change a vote", faultMembers, 1, (*soakCluster).changeVote},
		{"take a snapshot", faultDisk, 4, (*soakCluster).snapshot},
		{"slow a disk", faultDisk, 2, (*soakCluster).slowDisk},
		{"jump a wall clock", faultClock, 3, (*soakCluster).jumpClock},
		{"burst", faultLoad, 3, (*soakCluster).burst},
		{"stream", faultLoad, 3, (*soakCluster).stream},
		{"silence", faultLoad, 2, (*soakCluster).silence},
		{"burst while the leader is cut off", faultLoad, 3, func(c *soakCluster) {
			c.cutOff(c.leaderOrAny())
			c.burst()
		}},
	}
}

// playFault plays one fault, drawn by its weight in the seed's mix.
func (c *soakCluster) playFault(faults []soakFault) {
	mix := soakMixes()[c.plan.mix]
	weight := func(f soakFault) int { return f.weight * max(1, mix[f.group]) }
	total := 0
	for _, f := range faults {
		total += weight(f)
	}
	drawn := c.random.IntN(total)
	for _, f := range faults {
		if drawn -= weight(f); drawn < 0 {
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
func (c *soakCluster) linksOf(m *soakMember) []simnet.Link {
	var links []simnet.Link
	for _, other := range c.members {
		if other != m {
			links = append(links, simnet.Link{From: m.host, To: other.host}, simnet.Link{From: other.host, To: m.host})
		}
	}
	return links
}

// cutOff cuts all connections between m and the others; half of the time messages under way
// are lost.
func (c *soakCluster) cutOff(m *soakMember) {
	c.log.event("%s cut off", m.name)
	if c.random.IntN(2) == 0 {
		c.network.Hold(c.linksOf(m)...)
	} else {
		c.network.Cut(c.linksOf(m)...)
	}
}

// split divides the nodes into two random sides.
func (c *soakCluster) split() {
	var links []simnet.Link
	side := make(map[*soakMember]bool)
	for _, m := range c.members {
		side[m] = c.random.IntN(2) == 0
	}
	for _, a := range c.members {
		for _, b := range c.members {
			if side[a] != side[b] {
				links = append(links, simnet.Link{From: a.host, To: b.host})
			}
		}
	}
	c.log.event("held: %v", links)
	c.network.Hold(links...)
}

func (c *soakCluster) holdOneWay() {
	a, b := c.any(), c.any()
	if a != b {
		c.log.event("held: from %s to %s", a.name, b.name)
		c.network.Hold(simnet.Link{From: a.host, To: b.host})
	}
}

// pauseNode holds a node's transport for a while, as if its process stood still: messages
// sent before arrive much later.
func (c *soakCluster) pauseNode(m *soakMember) {
	d := time.Duration(100+c.random.IntN(6000)) * time.Millisecond
	c.log.event("%s held for %s", m.name, d)
	links := c.linksOf(m)
	c.network.Hold(links...)
	<-time.After(d)
	c.network.Release(links...)
}

// flap repeatedly cuts the current leader off for a moment, so that uncommitted entries
// pile up at the end of logs.
func (c *soakCluster) flap() {
	for range 2 + c.random.IntN(6) {
		m := c.leader()
		if m == nil {
			<-time.After(50 * time.Millisecond)
			continue
		}
		links := c.linksOf(m)
		c.network.Hold(links...)
		<-time.After(time.Duration(200+c.random.IntN(1200)) * time.Millisecond)
		c.network.Release(links...)
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

// slowConnections makes each message late sometimes, new connections slow, each to a
// different degree, and messages sometimes the last of their connection: requests are
// carried out late, or twice because they are repeated.
func (c *soakCluster) slowConnections() {
	w := c.plan.weather
	w.Late, w.LateMax = c.random.IntN(100), time.Duration(c.random.IntN(2000))*time.Millisecond
	w.Slow, w.SlowMax = c.random.IntN(500), time.Duration(c.random.IntN(1000))*time.Millisecond
	w.Torn = []int{0, 5, 20, 100}[c.random.IntN(4)]
	c.log.event("messages: %+v", w)
	c.rough.Store(true)
	c.network.SetWeather(w)
	if c.random.IntN(2) == 0 {
		c.network.Break(c.any().host) // so that some are opened
	}
}

// changeManners draws new manners for each kind of message. Heartbeats, which are small and
// answered outside Raft's main loop, mostly get through.
func (c *soakCluster) changeManners() {
	var of [soakKinds]soakManner
	for kind := range of {
		if kind == int(kindHeartbeat) && c.random.IntN(4) > 0 {
			continue
		}
		m := soakManner{By: time.Duration(1+c.random.IntN(3000)) * time.Millisecond}
		often := []int{20, 300, 700}[c.random.IntN(3)]
		switch c.random.IntN(8) {
		case 0, 1, 2:
			m.Slow = time.Duration(1+c.random.IntN(1000)) * time.Millisecond
		case 3, 4, 5:
			m.Late = often
		case 6:
			m.Twice = often
		case 7:
			m.Lost = often
		}
		of[kind] = m
	}
	c.log.event("messages: %+v", of)
	c.rough.Store(true)
	c.manners.set(of)
}

// stallConnections stalls some directions of connections for a while; others between the
// same nodes go on.
func (c *soakCluster) stallConnections() {
	few, d := 1+c.random.IntN(6), time.Duration(c.random.IntN(4000))*time.Millisecond
	c.log.event("one direction of connections in %d stalled for %s", few, d)
	c.rough.Store(true)
	c.network.StallSome(few)
	<-time.After(d)
	if c.random.IntN(4) > 0 {
		c.network.Unstall()
	}
}

// crashAll makes every node crash at one of its next durable writes.
func (c *soakCluster) crashAll() {
	for _, m := range c.members {
		c.crashAtWrite(m)
	}
}

// transfer makes the leader transfer its leadership, to a node of its choice or a given
// one, and restart its Raft.
func (c *soakCluster) transfer() {
	m := c.leader()
	if m == nil {
		return
	}
	n, to := m.running(), ""
	if n == nil {
		return
	}
	if c.random.IntN(2) == 0 {
		to = c.any().name
	}
	n.start(func() {
		to, err := n.Transfer(n.ctx, to)
		c.log.event("%s transferred to %q: %v", m.name, to, err)
	})
}

// transferOften transfers several times under load, while messages suffer their usual
// faults.
func (c *soakCluster) transferOften() {
	for range 2 + c.random.IntN(6) {
		c.changeManners()
		c.transfer()
		c.stream()
	}
}

func (c *soakCluster) snapshot() { c.snapshotOf(c.any()) }

// snapshotOf makes the node take a snapshot by itself, without waiting for it.
func (c *soakCluster) snapshotOf(m *soakMember) {
	if n := m.running(); n != nil {
		n.start(func() {
			c.log.event("%s took a snapshot: %v", m.name, n.snapshots.take(n.ctx))
		})
	}
}

// slowDisk makes each write of a node take up to 400 ms, or sometimes seconds, but not so
// long that the node would end itself.
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

// burst proposes many commands at once to every node that leads or led, without waiting for
// answers.
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
				_, _ = n.Propose(ctx, command.Submit{Tasks: tasks})
			})
		}
	}
}

// silence stops all calls of workers for a while, and cuts off the leader in the middle:
// then the next leader's knowledge of the lease clock is not in the log.
func (c *soakCluster) silence() {
	before, after := time.Duration(c.random.IntN(6000))*time.Millisecond, 2*time.Second
	c.log.event("silence for %s", before+after)
	c.silentUntil.Store(time.Now().Add(before + after).UnixNano())
	<-time.After(before)
	c.cutOff(c.leaderOrAny())
	<-time.After(after)
}

// stream submits a task every few milliseconds for a while, to the node that believes that
// it leads.
func (c *soakCluster) stream() {
	every := []time.Duration{2, 10, 40}[c.random.IntN(3)] * time.Millisecond
	for until := time.Now().Add(time.Duration(c.random.IntN(2000)) * time.Millisecond); time.Now().Before(until); {
		for _, m := range c.members {
			n := m.running()
			if n == nil || n.leader.Load() == nil {
				continue
			}
			n.start(func() {
				ctx, cancel := context.WithTimeout(n.ctx, time.Second)
				defer cancel()
				_, _ = n.Propose(ctx, command.Submit{Tasks: []fsm.NewTask{{Type: "burst", Params: []byte("1"), Key: "stream"}}})
			})
		}
		<-time.After(every)
	}
}
