package clustertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

const (
	// waitMax bounds every wait of this package.
	waitMax = 30 * time.Second
	// pollInterval is the interval between checks of a condition.
	pollInterval = 10 * time.Millisecond
	closeTimeout = 10 * time.Second
	rpcTimeout   = 500 * time.Millisecond
)

// Option changes a node's config before it is opened, also at a restart.
type Option func(*cluster.Config)

// Cluster is a cluster in memory. Its methods belong to the test's goroutine.
type Cluster struct {
	t       testing.TB
	options []Option
	network *network
	servers []raft.Server
	stops   atomic.Bool // nodes may stop themselves

	mu      sync.Mutex
	members []*member
	calls   map[string]int // guarded by mu; calls that reached a node, by name
	lost    map[string]int // guarded by mu; calls that are still to be lost, by name
}

// member is one place in the cluster: the node, and what outlives its restart.
type member struct {
	name   string
	logs   *tamperedLog
	snaps  raft.SnapshotStore
	clock  *Clock
	node   *cluster.Node // nil while stopped
	fatals atomic.Pointer[error]
}

// New starts a cluster of n voters. A Cleanup of the test closes it.
func New(t testing.TB, n int, options ...Option) *Cluster {
	t.Helper()
	c := &Cluster{t: t, options: options, network: newNetwork(), calls: make(map[string]int), lost: make(map[string]int)}
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		c.servers = append(c.servers, raft.Server{ID: raft.ServerID("uuid-" + name), Address: raft.ServerAddress(name)})
		c.members = append(c.members, &member{
			name: name, logs: &tamperedLog{InmemStore: raft.NewInmemStore()}, snaps: newSnapshots(), clock: newClock(),
		})
	}
	t.Cleanup(c.close)
	for i := range c.members {
		c.Start(i)
	}
	return c
}

// Start starts the stopped node at place i.
func (c *Cluster) Start(i int) {
	c.t.Helper()
	m := c.members[i]
	m.fatals.Store(nil)
	cfg := cluster.DefaultConfig()
	cfg.NodeID = m.name
	cfg.HTTPAdvertise = "http://" + m.name
	cfg.Logger = hclog.NewNullLogger()
	cfg.Fatal = func(err error) {
		m.fatals.CompareAndSwap(nil, &err)
		if !c.stops.Load() {
			c.t.Errorf("node %s stopped itself: %v", m.name, err)
		}
	}
	for _, option := range c.options {
		option(&cfg)
	}
	transport := func() (raft.Transport, error) {
		return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream: c.network.listen(m.name), MaxPool: 2, Timeout: rpcTimeout, Logger: hclog.NewNullLogger(),
		}), nil
	}
	first, _ := transport()
	node, err := cluster.OpenParts(cfg, cluster.Parts{
		UUID: "uuid-" + m.name, Logs: m.logs, Stable: m.logs, Snapshots: m.snaps,
		Transport: first, NewTransport: transport, Servers: c.servers, Clock: m.clock, Call: c.caller(m.name),
	})
	if err != nil {
		c.t.Fatalf("start %s: %v", m.name, err)
	}
	node.SetOperators(func(key string) (string, bool) { return "", key == "" })
	c.mu.Lock()
	m.node = node
	c.mu.Unlock()
}

// caller returns the function with which the node at from calls others.
func (c *Cluster) caller(from string) func(ctx context.Context, addr, name string, body []byte) ([]byte, error) {
	return func(ctx context.Context, addr, name string, body []byte) ([]byte, error) {
		if err := c.network.reachable(from, addr); err != nil {
			return nil, err
		}
		c.mu.Lock()
		if c.lost[name] > 0 {
			c.lost[name]--
			c.mu.Unlock()
			return nil, fmt.Errorf("call %s: %s is lost", addr, name)
		}
		var to *cluster.Node
		for _, m := range c.members {
			if m.name == addr {
				to = m.node
			}
		}
		if to != nil {
			c.calls[name]++
		}
		c.mu.Unlock()
		if to == nil {
			return nil, fmt.Errorf("call %s: it is stopped", addr)
		}
		return to.Answer(ctx, name, body)
	}
}

// Calls returns how many calls between nodes of that name have reached a node.
func (c *Cluster) Calls(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[name]
}

// LoseCalls makes the next count calls between nodes of that name fail.
func (c *Cluster) LoseCalls(name string, count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost[name] = count
}

// Stop stops the node at place i without a handover.
func (c *Cluster) Stop(i int) {
	c.t.Helper()
	m := c.members[i]
	c.mu.Lock()
	node := m.node
	m.node = nil
	c.mu.Unlock()
	if node == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // no handover: others must find out by themselves
	if err := node.Close(ctx); err != nil {
		c.t.Errorf("close %s: %v", m.name, err)
	}
	c.network.drop(m.name)
}

// Restart stops and starts the node at place i.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	c.Stop(i)
	c.Start(i)
}

func (c *Cluster) close() {
	for i := range c.members {
		c.Stop(i)
	}
	// Only timers of Raft's goroutines are left; in synctest the bubble ends when they have
	// fired.
	wait(c.t, "the last goroutines", afterward(2*rpcTimeout+5*time.Second))
}

// afterward returns a condition that becomes true after d.
func afterward(d time.Duration) func() bool {
	until := time.Now().Add(d)
	return func() bool { return !time.Now().Before(until) }
}

// Tamper makes change modify a copy of every entry that node i writes to its log from now
// on, as a faulty disk or a bug of Raft might. nil ends it.
func (c *Cluster) Tamper(i int, change func(*raft.Log)) { c.members[i].logs.change.Store(&change) }

// Stopped returns why node i has wanted to stop itself since it was started, or nil; the
// test has to stop it. With ExpectStops this does not fail the test.
func (c *Cluster) Stopped(i int) error {
	if err := c.members[i].fatals.Load(); err != nil {
		return *err
	}
	return nil
}

// ExpectStops allows nodes to stop themselves.
func (c *Cluster) ExpectStops() { c.stops.Store(true) }

// Len returns the number of places.
func (c *Cluster) Len() int { return len(c.members) }

// Node returns the node at place i, or nil while it is stopped.
func (c *Cluster) Node(i int) *cluster.Node { return c.members[i].node }

// Clock returns the clock at place i.
func (c *Cluster) Clock(i int) *Clock { return c.members[i].clock }

// Place returns the place of a running node.
func (c *Cluster) Place(n *cluster.Node) int {
	c.t.Helper()
	for i, m := range c.members {
		if m.node == n {
			return i
		}
	}
	c.t.Fatalf("node is not running")
	return -1
}

// Leader waits until a node serves as leader that is not cut off from a majority, and
// returns it.
func (c *Cluster) Leader() *cluster.Node {
	c.t.Helper()
	var leader *cluster.Node
	c.Wait("a leader", func() bool {
		for i, m := range c.members {
			if m.node != nil && m.node.IsLeader() && c.inMajority(i) {
				leader = m.node
				return true
			}
		}
		return false
	})
	return leader
}

func (c *Cluster) inMajority(i int) bool {
	count := 0
	for j, m := range c.members {
		if m.node != nil && (i == j || c.network.reachable(c.members[i].name, c.members[j].name) == nil) {
			count++
		}
	}
	return count > len(c.members)/2
}

// Followers returns the running nodes except the leader.
func (c *Cluster) Followers() []*cluster.Node {
	c.t.Helper()
	leader := c.Leader()
	var followers []*cluster.Node
	for _, m := range c.members {
		if m.node != nil && m.node != leader {
			followers = append(followers, m.node)
		}
	}
	return followers
}

// Partition cuts nodes off from all others, including those of an earlier Partition. They
// can reach each other.
func (c *Cluster) Partition(nodes ...*cluster.Node) {
	c.t.Helper()
	var names []string
	for _, n := range nodes {
		names = append(names, c.members[c.Place(n)].name)
	}
	c.network.cut(names)
}

// Heal ends every partition.
func (c *Cluster) Heal() { c.network.heal() }

// EnsureSame waits until all running nodes have applied the same index, and fails the test
// if their states differ.
func (c *Cluster) EnsureSame() {
	c.t.Helper()
	var indexes []uint64
	var hashes [][16]byte
	c.Wait("all nodes at one index", func() bool {
		if !c.level() { // checked first, because hashing a state is slow
			return false
		}
		indexes, hashes = indexes[:0], hashes[:0]
		for _, m := range c.members {
			if m.node != nil {
				index, hash := m.node.StateHash()
				indexes, hashes = append(indexes, index), append(hashes, hash)
			}
		}
		for _, index := range indexes {
			if index != indexes[0] {
				return false
			}
		}
		return true
	})
	for i, hash := range hashes {
		if hash != hashes[0] {
			c.t.Errorf("state hashes at index %d: %x and %x (node %d of those running)", indexes[0], hashes[0], hash, i)
		}
	}
}

// level reports whether all running nodes have applied the same index.
func (c *Cluster) level() bool {
	applied := make(map[uint64]bool)
	for _, m := range c.members {
		if m.node != nil {
			applied[m.node.AppliedIndex()] = true
		}
	}
	return len(applied) <= 1
}

// Wait waits until the condition is true.
func (c *Cluster) Wait(what string, condition func() bool) {
	c.t.Helper()
	wait(c.t, what, condition)
}

func wait(t testing.TB, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for deadline := time.Now().Add(waitMax); !condition(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", waitMax, what)
		}
	}
}

// Propose proposes cmd to the current leader, repeatedly while nothing was written. It
// fails the test on any other error.
func (c *Cluster) Propose(cmd command.Command) nodes.Proposed {
	c.t.Helper()
	var p nodes.Proposed
	c.Wait("a proposal to be taken", func() bool {
		var err error
		p, err = c.Leader().Propose(context.Background(), cmd)
		if err != nil && !NothingWritten(err) {
			c.t.Fatalf("propose %T: %v", cmd, err)
		}
		return err == nil
	})
	return p
}

// NothingWritten reports whether an error of Propose means that nothing was written.
func NothingWritten(err error) bool {
	return errors.Is(err, nodes.ErrNotLeader) || errors.Is(err, nodes.ErrNoLeader) ||
		errors.Is(err, nodes.ErrOverloaded) || errors.Is(err, nodes.ErrShuttingDown)
}
