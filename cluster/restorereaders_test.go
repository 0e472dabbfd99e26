package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/cluster/replica/replicatest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

// While a node has no state it refuses reads instead of showing an empty one, but still
// knows what the cluster is made of.
func TestRestore_readers(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.NodeID, cfg.NoRaft, cfg.Registerer = "n1", true, prometheus.NewRegistry()
	cfg.Fatal = func(err error) { t.Error(err) }
	n := openNode(t, cfg)
	eventually(t, "it serves", n.IsLeader)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	submit := command.Submit{Tasks: []fsm.NewTask{{Type: "t", Params: []byte("1")}}}
	p, err := n.Propose(ctx, submit)
	if err != nil {
		t.Fatal(err)
	}
	snapshot := replicatest.Persisted(t, n.fsm)
	id := p.Result.Submitted[0].Task.ID
	ended := make(chan error, 1)
	go func() { ended <- n.WaitEnded(ctx, id, time.Hour) }()
	eventually(t, "somebody to wait", func() bool { return n.fsm.WaitingEnds() == 1 })

	n.fsm.RestoreRoom = 1
	s := replicatest.NewSnapshot(snapshot)
	asked := false
	s.OnRead = func() {
		if asked {
			return
		}
		asked = true
		look := func(*fsm.Machine, fsm.Stamp) { t.Error("a state is shown") }
		_, stale := n.ReadStale(ctx, 0, look)
		_, linearizable := n.ReadLinearizable(ctx, 0, look)
		_, backup := n.SaveBackup(ctx, true)
		_, _, claim := n.answerEmpty(ctx, command.ClaimNext{WorkerID: "w", Limit: 1})
		_, ground := n.backups.ground()
		for what, err := range map[string]error{
			"a stale read": stale, "a linearizable read": linearizable, "a backup": backup, "a claim": claim, "a restore": ground,
			"who waits for an end": n.WaitEnded(ctx, id, time.Hour), "who waits for events": n.WaitEvent(ctx, event.Pos{}),
			"readiness": n.Ready(),
		} {
			if !errors.Is(err, nodes.ErrNoLeader) {
				t.Errorf("%s: error %v, want no leader", what, err)
			}
		}
		if index, hash := n.StateHash(); index != 0 || hash != [16]byte{} {
			t.Errorf("hash %x of index %d", hash, index)
		}
		if _, err := cfg.Registerer.(*prometheus.Registry).Gather(); err != nil {
			t.Error(err)
		}
		if level := n.Cluster(ctx).FeatureLevel; level != fsm.FeatureLevel() {
			t.Errorf("feature level %d", level)
		}
	}
	if err := n.fsm.Restore(replicatest.Wrapped{Snapshot: s}); err != nil || !asked {
		t.Fatal(err, asked)
	}
	if err := n.Ready(); err != nil {
		t.Error(err)
	}
	if _, err := n.Propose(ctx, command.Cancel{ID: id}); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("who waited all the time: %v", err)
	}
}

// A node whose newest snapshot cannot be restored does not start with an older state.
func TestOpenParts_badSnapshot(t *testing.T) {
	t.Parallel()
	snapshots := raft.NewInmemSnapshotStore()
	_, transport := raft.NewInmemTransport("n")
	defer transport.Close()
	server := raft.Server{ID: "uuid", Address: "n"}
	sink, err := snapshots.Create(1, 5, 1, raft.Configuration{Servers: []raft.Server{server}}, 1, transport)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sink.Write([]byte("no snapshot of ours")); err != nil {
		t.Fatal(err)
	}
	logs := raft.NewInmemStore()
	n, err := OpenParts(Config{NodeID: "n"}, Parts{UUID: "uuid", Logs: logs, Stable: logs, Snapshots: snapshots, Transport: transport})
	if err == nil {
		closeNode(t, n)
	}
	if !errors.Is(err, fsm.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
}

func TestTrailingLogs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bytes, entries int64
		want           uint64
	}{
		{0, 0, trailingLogsMax},
		{100 << 20, 1_000_000, trailingLogsMax},
		{100 << 20, 100, trailingLogsMin},
		{100 << 20, 5000, 3200},
	} {
		if got := trailingLogs(c.bytes, c.entries); got != c.want {
			t.Errorf("%d entries of %d bytes: %d, want %d", c.entries, c.bytes, got, c.want)
		}
	}
}
