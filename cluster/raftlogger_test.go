package cluster

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// lockedBuffer is a buffer for a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A leader logs once that a follower does not answer, however often it fails, and once that it answers again.
func TestNode_logsASilentMemberOnce(t *testing.T) {
	t.Parallel()
	var servers []raft.Server
	var transports []*raft.InmemTransport
	for i := range 3 {
		addr, transport := raft.NewInmemTransport("")
		servers = append(servers, raft.Server{ID: raft.ServerID(fmt.Sprint("uuid-", i)), Address: addr})
		transports = append(transports, transport)
	}
	connect := func(i int) {
		for j := range transports {
			transports[i].Connect(servers[j].Address, transports[j])
			transports[j].Connect(servers[i].Address, transports[i])
		}
	}
	logs := make([]lockedBuffer, len(servers))
	var nodes []*Node
	for i, transport := range transports {
		connect(i)
		cfg := testConfig(t, fmt.Sprint("n", i+1), "", "")
		cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &logs[i], Level: hclog.Debug})
		stores := raft.NewInmemStore()
		n, err := OpenParts(cfg, Parts{
			UUID: string(servers[i].ID), Logs: stores, Stable: stores, Snapshots: raft.NewInmemSnapshotStore(), Transport: transport, Servers: servers,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeNode(t, n) })
		nodes = append(nodes, n)
	}
	leader := leaderOf(t, nodes...)
	var of, silent int
	for i, n := range nodes {
		if n == leader {
			of, silent = i, (i+1)%len(nodes)
		}
	}
	addr, log := string(servers[silent].Address), &logs[of]
	for range 2 {
		before := len(log.String())
		transports[silent].DisconnectAll()
		for _, other := range transports {
			other.Disconnect(servers[silent].Address)
		}
		eventually(t, "the leader to fail again and again", func() bool {
			return strings.Count(log.String()[before:], "failed to heartbeat to") > 3
		})
		connect(silent)
		eventually(t, "the follower to be back", func() bool {
			return strings.Contains(log.String()[before:], "a member answers again: peer="+addr)
		})
		said := log.String()[before:]
		if told := regexp.MustCompile(`\[(?:ERROR|WARN)\].*failed to.*`+regexp.QuoteMeta(addr)).FindAllString(said, -1); leader.IsLeader() && len(told) != 1 {
			t.Errorf("told %d times:\n%s", len(told), said)
		}
	}
}
