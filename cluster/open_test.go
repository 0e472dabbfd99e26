package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/cluster/joining"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/peer/porttest"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/testwait"
	"github.com/claimq/claimq/nodes"
)

// testConfig returns the config of a node on loopback.
func testConfig(t *testing.T, nodeID, dir, peerAddr string) Config {
	t.Helper()
	cfg := DefaultConfig()
	cfg.NodeID, cfg.DataDir, cfg.PeerAddr = nodeID, dir, peerAddr
	cfg.HTTPAdvertise = "http://127.0.0.1:1"
	cfg.DiskFreeMin, cfg.segmentBytes, cfg.haste = 1, 1<<20, 10
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Name: nodeID, Level: hclog.Error, Output: testWriter{t}})
	cfg.Registerer = prometheus.NewRegistry()
	cfg.Fatal = func(err error) { t.Errorf("%s stopped itself: %v", nodeID, err) }
	return cfg
}

// testWriter logs to the test.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Logf("%s", b)
	}
	return len(b), nil
}

// freeAddrs returns loopback addresses that no other test gets until this one ends.
func freeAddrs(t *testing.T, count int) []string {
	t.Helper()
	ports, release, err := procs.TakePorts(count)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	var addrs []string
	for _, port := range ports {
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", port))
	}
	return addrs
}

func openNode(t *testing.T, cfg Config) *Node {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	n, err := Open(ctx, cfg)
	if err != nil {
		t.Fatalf("open %s: %v", cfg.NodeID, err)
	}
	t.Cleanup(func() { closeNode(t, n) })
	return n
}

func closeNode(t *testing.T, n *Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Errorf("close %s: %v", n.NodeID(), err)
	}
}

// patience bounds the waits of tests.
const patience = testwait.Patience

// eventually waits until a condition is true.
var eventually = testwait.Until

func leaderOf(t *testing.T, nodes ...*Node) *Node {
	t.Helper()
	var leader *Node
	eventually(t, "a leader", func() bool {
		for _, n := range nodes {
			if n.IsLeader() {
				leader = n
			}
		}
		return leader != nil
	})
	return leader
}

// submittedKeys counts the keys of submitOne.
var submittedKeys atomic.Int64

// submitOne submits a task to the leader among the nodes, and repeats that until its outcome is
// known: the leader may change at any time, and the task has a key.
func submitOne(t *testing.T, all ...*Node) (p nodes.Proposed) {
	t.Helper()
	key := fmt.Sprint("one-", submittedKeys.Add(1))
	eventually(t, "a submit to be taken", func() bool {
		var err error
		p, err = leaderOf(t, all...).Propose(context.Background(), submitKeyed(key))
		if err != nil && !errors.Is(err, nodes.ErrNotLeader) && !errors.Is(err, nodes.ErrNoLeader) && !errors.Is(err, nodes.ErrOutcomeUnknown) {
			t.Fatalf("submit: %v", err)
		}
		return err == nil
	})
	return p
}

func TestOpen_bootstrapRestartAndJoin(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 2)
	cfg := testConfig(t, "n1", t.TempDir(), addrs[0])
	cfg.Bootstrap = true
	first := openNode(t, cfg)
	p := submitOne(t, first)
	closeNode(t, first)

	// Acknowledged writes are there again; the flags no longer matter.
	cfg.Bootstrap = false
	cfg.Registerer = prometheus.NewRegistry()
	first = openNode(t, cfg)
	leaderOf(t, first)
	_, err := first.ReadLinearizable(context.Background(), p.Index, func(m *fsm.Machine, _ fsm.Stamp) {
		if m.Get(p.Result.Submitted[0].Task.ID) == nil {
			t.Error("the task is gone after a restart")
		}
	})
	if err != nil {
		t.Fatal(err)
	}

	joining := testConfig(t, "n2", t.TempDir(), addrs[1])
	joining.Join, joining.JoinToken = []string{addrs[0]}, joinTokenOf(t, first)
	second := openNode(t, joining)
	eventually(t, "the second node to be a voter that knows the leader", func() bool {
		view := second.Cluster(context.Background())
		healthy := 0
		for _, node := range view.Nodes {
			if node.Healthy && node.Suffrage == "voter" {
				healthy++
			}
		}
		return healthy == 2 && view.Leader == "n1" && second.Ready() == nil
	})
	eventually(t, "the leader to tell of its follower in its metrics", func() bool {
		families, err := cfg.Registerer.(*prometheus.Registry).Gather()
		if err != nil {
			t.Fatal(err)
		}
		metrics := make(map[string]float64)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				metrics[f.GetName()] = m.GetGauge().GetValue()
			}
		}
		_, lags := metrics["claimq_raft_follower_lag_entries"]
		return metrics["claimq_raft_leader"] == 1 && metrics["claimq_raft_applied_index"] != 0 && lags
	})
	if got := second.LeaderHTTPAddr(); got != "http://127.0.0.1:1" {
		t.Errorf("leader's URL by the follower: %q", got)
	}
	if _, err := second.Propose(context.Background(), command.Tick{}); !errors.Is(err, nodes.ErrNotLeader) {
		t.Errorf("propose on a follower: %v, want ErrNotLeader", err)
	}
	index, err := second.ReadStale(context.Background(), p.Index, func(*fsm.Machine, fsm.Stamp) {})
	if err != nil || index < p.Index {
		t.Errorf("stale read: index %d, %v", index, err)
	}
}

func TestOpen_initialCluster(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 3)
	list := make(map[string]string)
	for i, addr := range addrs {
		list[fmt.Sprintf("n%d", i+1)] = addr
	}
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	open := func() []*Node {
		all := make([]*Node, 3)
		var wg sync.WaitGroup
		for i := range all {
			wg.Add(1)
			go func() {
				defer wg.Done()
				cfg := testConfig(t, fmt.Sprintf("n%d", i+1), dirs[i], addrs[i])
				cfg.InitialCluster = list
				cfg.JoinKeys = func() [][]byte { return [][]byte{[]byte("a key that is long enough for a join key")} }
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				n, err := Open(ctx, cfg)
				if err != nil {
					t.Errorf("open: %v", err)
					return
				}
				all[i] = n
			}()
		}
		wg.Wait()
		if t.Failed() {
			t.FailNow()
		}
		return all
	}
	all := open()
	p := submitOne(t, all...)
	// A leader that closes transfers its leadership: another one serves.
	leader := leaderOf(t, all...)
	closeNode(t, leader)
	var rest []*Node
	for _, n := range all {
		if n != leader {
			rest = append(rest, n)
		}
	}
	q := submitOne(t, rest...)
	for _, n := range rest {
		closeNode(t, n)
	}
	all = open()
	for _, n := range all {
		defer closeNode(t, n)
		_, err := n.ReadStale(t.Context(), q.Index, func(m *fsm.Machine, _ fsm.Stamp) {
			for _, submitted := range []nodes.Proposed{p, q} {
				if m.Get(submitted.Result.Submitted[0].Task.ID) == nil {
					t.Errorf("%s lost a task", n.NodeID())
				}
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A node of --initial-cluster that has heard of the cluster from only one node, and nothing from
// its leader, elects a leader with the others when that one is gone.
func TestOpen_initialClusterLosesItsFirst(t *testing.T) {
	t.Parallel()
	b := newFirstSecond(t)
	third := b.play("n3", nil)
	var members []*Node
	for n := range b.openAll("n1", "n2") {
		members = append(members, n)
	}
	for _, n := range members {
		eventually(t, "both to have the cluster", func() bool { return len(n.servers()) == 3 })
	}
	if err := third.Close(); err != nil {
		t.Fatal(err)
	}
	var state joining.MeetState
	for _, s := range members[0].servers() {
		state.MemberUUIDs = append(state.MemberUUIDs, string(s.ID))
	}
	state.HasData = true
	for _, n := range members {
		closeNode(t, n)
	}

	// n3 only meets n1, which says who is in the cluster, and goes.
	first := b.play("n1", &state)
	n3 := <-b.openAll("n3")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	n2 := <-b.openAll("n2")
	submitOne(t, n2, n3)
}

// firstSecond is a cluster of n1, n2 and n3 that is started with --initial-cluster.
type firstSecond struct {
	t    *testing.T
	list map[string]string
	cfgs map[string]Config
}

func newFirstSecond(t *testing.T) *firstSecond {
	t.Helper()
	b := &firstSecond{t: t, list: make(map[string]string), cfgs: make(map[string]Config)}
	for i, addr := range freeAddrs(t, 3) {
		id := fmt.Sprintf("n%d", i+1)
		b.list[id] = addr
		cfg := testConfig(t, id, t.TempDir(), addr)
		cfg.InitialCluster = b.list
		b.cfgs[id] = cfg
	}
	return b
}

// openAll opens nodes at once and returns them in the order in which they are open.
func (b *firstSecond) openAll(ids ...string) <-chan *Node {
	b.t.Helper()
	opened := make(chan *Node, len(ids))
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			cfg := b.cfgs[id]
			cfg.Registerer = prometheus.NewRegistry()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			n, err := Open(ctx, cfg)
			if err != nil {
				b.t.Errorf("open %s: %v", id, err)
				return
			}
			b.t.Cleanup(func() { closeNode(b.t, n) })
			opened <- n
		})
	}
	wg.Wait()
	close(opened)
	if b.t.Failed() {
		b.t.FailNow()
	}
	return opened
}

// play opens the port of a node over its folder. The port only answers meetings, with state,
// which is nil without data.
func (b *firstSecond) play(id string, state *joining.MeetState) *peer.Port {
	b.t.Helper()
	cfg := b.cfgs[id]
	dir, err := storage.OpenDir(cfg.DataDir, id)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	identity := dir.Identity()
	self := func() peer.Hello {
		return peer.Hello{ClusterID: identity.ClusterID, UUID: identity.UUID, NodeID: id, FeatureLevel: fsm.FeatureLevel()}
	}
	port := porttest.Open(b.t, id, func(c *peer.Config) {
		c.ListenAddr, c.Signer, c.JoinKeys, c.Self = cfg.PeerAddr, dir.Key(), nil, self
	})
	joining.ServeMeetings(port, joining.MeetConfig{Self: self, List: b.list, State: func() joining.MeetState {
		if state == nil {
			return joining.MeetState{}
		}
		return *state
	}})
	return port
}

func TestOpen_refuses(t *testing.T) {
	t.Parallel()
	addr := freeAddrs(t, 1)[0]
	empty := testConfig(t, "n1", t.TempDir(), addr)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ended, empty); !errors.Is(err, ErrNoCluster) {
		t.Errorf("an empty folder that nobody joined to a cluster: %v, want ErrNoCluster", err)
	}
	cfg := testConfig(t, "n1", t.TempDir(), addr)
	cfg.Bootstrap = true
	openNode(t, cfg)
	second := cfg
	second.Registerer = prometheus.NewRegistry()
	if _, err := Open(context.Background(), second); !errors.Is(err, storage.ErrDataDirInUse) {
		t.Errorf("a second process on the folder: %v, want ErrDataDirInUse", err)
	}
	taken := testConfig(t, "n2", t.TempDir(), addr)
	taken.Bootstrap = true
	if _, err := Open(context.Background(), taken); !errors.Is(err, peer.ErrAddrInUse) {
		t.Errorf("a port in use: %v, want ErrPeerAddrInUse", err)
	}
}

// A node that was killed in the middle of its bootstrap, which is two writes, bootstraps when it
// is started again.
func TestOpen_bootstrapCutShort(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "n1", t.TempDir(), freeAddrs(t, 1)[0])
	cfg.Bootstrap = true
	dir, err := storage.OpenDir(cfg.DataDir, cfg.NodeID)
	if err != nil {
		t.Fatal(err)
	}
	s, err := storage.Open(dir, storage.Config{Fatal: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stable.SetUint64([]byte("CurrentTerm"), 1); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), dir.Close()); err != nil {
		t.Fatal(err)
	}
	n := openNode(t, cfg)
	submitOne(t, n)
}

// Without Raft the same node serves from memory: the difference shows the cost of replication.
func TestOpen_noRaft(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.NodeID, cfg.NoRaft = "n1", true
	n := openNode(t, cfg)
	p := submitOne(t, n)
	_, err := n.ReadLinearizable(context.Background(), p.Index, func(m *fsm.Machine, _ fsm.Stamp) {
		if m.Get(p.Result.Submitted[0].Task.ID) == nil {
			t.Error("the task is not there")
		}
	})
	if err != nil || n.Ready() != nil || n.Cluster(context.Background()).Leader != "n1" {
		t.Errorf("read: %v, ready: %v, cluster: %+v", err, n.Ready(), n.Cluster(context.Background()))
	}
}
