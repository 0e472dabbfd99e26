package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/peer/peertest"
)

// listFSM records applied entries, once each.
type listFSM struct {
	mu      sync.Mutex
	applied map[string]bool
}

func (f *listFSM) Apply(l *raft.Log) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied[string(l.Data)] = true
	return nil
}

func (f *listFSM) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.New("no snapshots here") }
func (f *listFSM) Restore(io.ReadCloser) error         { return errors.New("no snapshots here") }

func (f *listFSM) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.applied)
}

type raftPeer struct {
	port *Port
	raft *raft.Raft
	fsm  *listFSM
}

func startPortRaft(t *testing.T, nodeID string, port *Port, servers []raft.Server) raftPeer {
	t.Helper()
	cfg := raft.DefaultConfig()
	cfg.LocalID = raft.ServerID(peertest.UUID(nodeID))
	cfg.HeartbeatTimeout, cfg.ElectionTimeout, cfg.LeaderLeaseTimeout = time.Second, time.Second, 500*time.Millisecond
	cfg.CommitTimeout = 5 * time.Millisecond
	cfg.Logger = hclog.NewNullLogger()
	trans := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: port.StreamLayer(), MaxPool: 3, Timeout: 5 * time.Second, Logger: hclog.NewNullLogger(),
	})
	store, f := raft.NewInmemStore(), &listFSM{applied: make(map[string]bool)}
	r, err := raft.NewRaft(cfg, f, store, store, raft.NewInmemSnapshotStore(), trans)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.BootstrapCluster(raft.Configuration{Servers: servers}).Error(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Shutdown().Error(); err != nil {
			t.Errorf("shut raft down: %v", err)
		}
		_ = trans.Close()
	})
	return raftPeer{port, r, f}
}

// Three real Rafts elect, replicate, and elect again over the peer port.
func TestStreamLayer_carriesRaft(t *testing.T) {
	t.Parallel()
	ports := make(map[string]*Port)
	var servers []raft.Server
	for _, nodeID := range []string{"n1", "n2", "n3"} {
		port := openTestPort(t, nodeID)
		ports[nodeID] = port
		servers = append(servers, raft.Server{ID: raft.ServerID(peertest.UUID(nodeID)), Address: raft.ServerAddress(port.Addr())})
	}
	peers := make(map[string]raftPeer)
	for nodeID, port := range ports {
		peers[nodeID] = startPortRaft(t, nodeID, port, servers)
	}
	var leader string
	for i := range 100 {
		leader = applyOnLeader(t, peers, fmt.Sprintf("entry %d", i))
	}
	for nodeID, peer := range peers {
		waitUntil(t, nodeID+" has all entries", func() bool { return peer.fsm.len() == 100 })
	}

	// Without its port the others cannot reach the leader.
	if err := ports[leader].Close(); err != nil {
		t.Fatal(err)
	}
	others := make(map[string]raftPeer)
	for nodeID, peer := range peers {
		if nodeID != leader {
			others[nodeID] = peer
		}
	}
	applyOnLeader(t, others, "one more")
}

// applyOnLeader lets the current leader among peers apply text, and returns that leader. If
// a busy machine unseats it, the next one is used; the text may then be in the log twice.
func applyOnLeader(t *testing.T, peers map[string]raftPeer, text string) (leader string) {
	t.Helper()
	waitUntil(t, text+" is applied", func() bool {
		leader = waitForRaftLeader(t, peers)
		return peers[leader].raft.Apply([]byte(text), testWait).Error() == nil
	})
	return leader
}

func waitForRaftLeader(t *testing.T, peers map[string]raftPeer) (leader string) {
	t.Helper()
	waitUntil(t, "there is a leader", func() bool {
		for nodeID, peer := range peers {
			if peer.raft.State() == raft.Leader {
				leader = nodeID
				return true
			}
		}
		return false
	})
	return leader
}

// A wiped node at an old address is not accepted as the old one.
func TestStreamLayer_Dial_namesItsTarget(t *testing.T) {
	t.Parallel()
	wiped := openTestPort(t, "n2")
	dialer := openTestPort(t, "n1", func(c *Config) { c.TargetUUID = func(string) string { return peertest.UUID("the old n2") } })
	_, err := dialer.StreamLayer().Dial(raft.ServerAddress(wiped.Addr()), testWait)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "its data folder is another one") {
		t.Fatalf("got %v", err)
	}
}

func TestStreamLayer_Dial_refusals(t *testing.T) {
	t.Parallel()
	acceptor := openTestPort(t, "n2", func(c *Config) {
		c.Admit = func(_ context.Context, purpose Purpose, from Hello) error {
			if purpose == PurposeRaft && from.UUID != peertest.UUID("n1") {
				return fmt.Errorf("node %q is not a member", from.NodeID)
			}
			return nil
		}
	})
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"not a member":    {func(c *Config) { c.Self, c.Signer = func() Hello { return testHello("n9") }, peertest.Signer("n9") }, "is not a member"},
		"another cluster": {func(c *Config) { c.Self = func() Hello { h := testHello("n1"); h.ClusterID = "c2"; return h } }, "belongs to cluster"},
		"another key":     {func(c *Config) { c.JoinKeys = onlyKey(testOtherKey) }, "another join key"},
	} {
		dialer := openTestPort(t, "n1", tc.change)
		if _, err := dialer.StreamLayer().Dial(raft.ServerAddress(acceptor.Addr()), testWait); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A node and a process exchange no Raft messages once the node knows that the process was
// superseded by a later start of its node: open connections end, and new ones are refused.
// Calls still pass.
func TestStreamLayer_superseded(t *testing.T) {
	t.Parallel()
	var latest atomic.Uint64
	starts := func(number uint64) func(*Config) {
		return func(c *Config) {
			self := c.Self
			c.Self = func() Hello { h := self(); h.StartNumber = number; return h }
		}
	}
	knows := openTestPort(t, "n2", starts(9), func(c *Config) {
		c.Superseded = func(other Hello) error {
			if other.StartNumber < latest.Load() {
				return fmt.Errorf("start %d of node %q is known", latest.Load(), other.NodeID)
			}
			return nil
		}
	})
	knows.Handle("ping", func(context.Context, Hello, []byte) ([]byte, error) { return []byte("pong"), nil })
	process := openTestPort(t, "n1", starts(1))
	other := openTestPort(t, "n3", starts(3))
	layer, layers := knows.StreamLayer(), map[*Port]raft.StreamLayer{process: process.StreamLayer(), other: other.StreamLayer()}
	accepted := func(l raft.StreamLayer, conn net.Conn) net.Conn {
		t.Helper()
		_, err := conn.Write([]byte("?"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	dialed := func(from raft.StreamLayer, to *Port) net.Conn {
		t.Helper()
		c, err := from.Dial(raft.ServerAddress(to.Addr()), testWait)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	inbound := dialed(layers[process], knows)
	accepted(layer, inbound)
	outbound := dialed(layer, process)
	accepted(layers[process], outbound)
	others := dialed(layers[other], knows)
	theirs := accepted(layer, others)

	latest.Store(2)
	knows.Recheck(peertest.UUID("n1"))
	for name, c := range map[string]net.Conn{"that it opened": inbound, "to it": outbound} {
		if err := c.SetReadDeadline(time.Now().Add(testWait)); err == nil {
			_, err = c.Read(make([]byte, 1))
			if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection %s goes on: %v", name, err)
			}
		}
	}
	if _, err := theirs.Read(make([]byte, 1)); err != nil {
		t.Errorf("the connection of another node: %v", err)
	}
	if _, err := layers[process].Dial(raft.ServerAddress(knows.Addr()), testWait); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), `start 2 of node "n1" is known`) {
		t.Errorf("dialed by the process: %v", err)
	}
	if _, err := layer.Dial(raft.ServerAddress(process.Addr()), testWait); err == nil || !strings.Contains(err.Error(), `start 2 of node "n1" is known`) {
		t.Errorf("the process was dialed: %v", err)
	}
	if answer, err := process.Call(t.Context(), knows.Addr(), "ping", nil); err != nil || string(answer) != "pong" {
		t.Errorf("a call of the process: %q, %v", answer, err)
	}
}

// A node can restart its Raft: the next layer gets incoming connections, and nothing of the
// closed one is left.
func TestStreamLayer_Close(t *testing.T) {
	t.Parallel()
	a, b := openTestPort(t, "n1"), openTestPort(t, "n2")
	first := b.StreamLayer()
	out, err := a.StreamLayer().Dial(raft.ServerAddress(b.Addr()), testWait)
	if err != nil {
		t.Fatal(err)
	}
	in, err := first.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := in.(*raftInbound); !ok {
		t.Errorf("got a %T, on which a message that stops is waited for without a bound", in)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a connection outlived its layer: %v", err)
	}
	if _, err := out.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the other side did not learn of it: %v", err)
	}
	if _, err := first.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept on a closed layer: %v", err)
	}
	second := b.StreamLayer()
	if _, err := a.StreamLayer().Dial(raft.ServerAddress(b.Addr()), testWait); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Accept(); err != nil {
		t.Errorf("accept on the next layer: %v", err)
	}
}

// A Raft connection that is never accepted is given up.
func TestStreamLayer_nobodyAccepts(t *testing.T) {
	t.Parallel()
	a, b := openTestPort(t, "n1"), openTestPort(t, "n2", func(c *Config) { c.HandshakeTimeout = time.Second })
	conn, err := a.StreamLayer().Dial(raft.ServerAddress(b.Addr()), testWait)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(testWait))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end", err)
	}
}
