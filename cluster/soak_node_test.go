package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/confirm"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/internal/simnet"
)

// soakJoinKey is the join key of all.
const soakJoinKey = "the join key of a soak, which is long enough"

// start starts the stopped node of a member from its disk.
func (c *soakCluster) start(m *soakMember) {
	c.t.Helper()
	c.bury(m)
	c.starts.Add(1)
	logger := hclog.New(&hclog.LoggerOptions{Name: m.name, Output: c.log, Level: hclog.Info, DisableTime: true})
	host := c.network.Host(m.host)
	m.disk.crash = func() { c.crash(m, host) }
	fatal := func(err error) { c.fatal(m, err) }
	folder, err := m.disk.open(fatal, logger)
	if err != nil {
		c.fail("start %s: %v", m.name, err)
	}
	c.votes.check(c, m, folder.stores.Stable)
	n, err := c.openNode(m, folder, host, fatal, logger)
	if err != nil {
		c.fail("start %s: %v", m.name, err)
	}
	if m.disk.whileItLives(func() { m.setNode(n) }) {
		c.log.event("%s started", m.name)
		return
	}
	c.setCrashed(m, n) // while it was opened
}

// openNode opens a node over an open folder, a network in memory and the member's clock,
// with settings that make snapshots frequent.
func (c *soakCluster) openNode(m *soakMember, f *soakFolder, host *simnet.Host, fatal func(error), logger hclog.Logger) (*Node, error) {
	cfg := DefaultConfig()
	cfg.NodeID, cfg.HTTPAdvertise, cfg.Logger, cfg.Fatal = m.name, "http://"+m.name, logger, fatal
	cfg.JoinKeys = func() [][]byte { return [][]byte{[]byte(soakJoinKey)} }
	cfg.SnapshotLogCommands, cfg.Join = c.plan.snapshotEvery, m.told
	starts, err := storage.OpenStarts(f.dir.Path())
	if err != nil {
		return nil, err
	}
	o := &opening{cfg: cfg.withDefaults(), dir: f.dir, stores: f.stores, starts: starts, ran: make(chan struct{}), gate: confirm.NewVoteGate()}
	n, err := newNode(o.cfg, Parts{UUID: f.dir.Identity().UUID, Clock: m.clock})
	if err != nil {
		return nil, err
	}
	if c.plan.trailing > 0 {
		n.snapshots.trailing = func(int64, int64) uint64 { return c.plan.trailing }
	}
	peers := o.peerConfig(n)
	peers.Listen, peers.Dial = host.Listen, host.Dial
	if o.peers, err = peer.Listen(peers); err != nil {
		return nil, err
	}
	n.record.PeerAddr = o.peers.Addr()
	serveStarts(o.peers, starts, n.uuid)
	n.dir, n.stores, n.peers, n.gate, n.call, n.logs = f.dir, f.stores, o.peers, o.gate, o.peers.Call, f.stores.Log
	transport := func() (raft.Transport, error) {
		inner := newSoakTransport(peer.NewRaftTransport(o.peers.StreamLayer(), o.cfg.Logger), &c.manners)
		return confirm.Gated(inner, o.gate), nil
	}
	first, _ := transport()
	err = n.startRaft(Parts{
		Logs: f.stores.Log, Snapshots: &soakSnapshots{f.stores.Snapshots, m.disk},
		Stable:    &soakStable{StableStore: f.stores.Stable, cluster: c, member: m},
		Transport: first, NewTransport: transport,
		Servers: c.servers,
	})
	if err != nil {
		return nil, err
	}
	o.runs(n)
	o.serve(n)
	n.start(func() { n.proveStart(n.ctx) })
	n.SetOperators(func(key string) (string, bool) { return "", key == "" })
	n.run()
	return n, nil
}

// setNode sets the running node.
func (m *soakMember) setNode(n *Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.node = n
}

// stop stops a node. handover bounds the transfer of its leadership; if it is 0, there is
// none, and the others have to notice by themselves.
func (c *soakCluster) stop(m *soakMember, handover time.Duration) {
	c.t.Helper()
	c.bury(m)
	n := m.running()
	if n == nil {
		return
	}
	m.setNode(nil)
	ctx, cancel := context.WithTimeout(context.Background(), handover)
	defer cancel()
	c.restores.Add(counted(n.stats.fsm.restores))
	c.snapshots.Add(counted(n.stats.fsm.persist))
	c.loops.Add(int64(m.loops.Load()))
	if err := n.Close(ctx); err != nil {
		c.fail("stop %s: %v", m.name, err)
	}
	c.bury(m) // it crashed while it stopped
	c.network.Break(m.host)
	m.loops.Store(0)
	c.log.event("%s stopped, handover %s", m.name, handover)
}

// fatal is a node's Config.Fatal. Only a loop of restores is expected, and rarely: the node
// is started again, as a process supervisor would. A node that was made to differ, or put
// back, is not restarted.
func (c *soakCluster) fatal(m *soakMember, err error) {
	c.log.event("%s ends itself: %v", m.name, err)
	if m.disk.hasCrashed() || c.t.Failed() {
		runtime.Goexit()
	}
	if m.mayDiffer.Load() && strings.Contains(err.Error(), differsAdvice) || m.otherHistory.Load() && errors.Is(err, storage.ErrOtherHistory) ||
		m.oldCopy.Load() && errors.Is(err, ErrOldCopy) {
		m.ended.Store(true)
		runtime.Goexit()
	}
	if !errors.Is(err, replica.ErrRestoreLoop) {
		// It may hold locks, so nothing can continue from here.
		fmt.Fprintf(os.Stderr, "%s\n", c.log.text())
		panic(fmt.Sprintf("%s: node %s ends itself: %v", c.t.Name(), m.name, err))
	}
	m.loops.Store(1)
	runtime.Goexit()
}
