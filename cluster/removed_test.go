package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// heldTransport passes heartbeats, but no entries while held is set.
type heldTransport struct {
	*raft.InmemTransport
	held *atomic.Bool
}

func (t heldTransport) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if t.held.Load() && len(args.Entries) > 0 {
		return errors.New("held")
	}
	return t.InmemTransport.AppendEntries(id, target, args, resp)
}

func (t heldTransport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// newHeldCluster returns three nodes in memory, which are sent no entries while held is
// set.
func newHeldCluster(t *testing.T) (nodes []*Node, held *atomic.Bool) {
	t.Helper()
	held = new(atomic.Bool)
	var servers []raft.Server
	var transports []*raft.InmemTransport
	for i := range 3 {
		addr, transport := raft.NewInmemTransport("")
		servers = append(servers, raft.Server{ID: raft.ServerID(fmt.Sprint("uuid-", i)), Address: addr})
		transports = append(transports, transport)
	}
	for i, transport := range transports {
		for _, other := range transports {
			transport.Connect(other.LocalAddr(), other)
		}
		stores := raft.NewInmemStore()
		n, err := OpenParts(testConfig(t, fmt.Sprint("n", i+1), "", ""), Parts{
			UUID: string(servers[i].ID), Logs: stores, Stable: stores, Snapshots: raft.NewInmemSnapshotStore(),
			Transport: heldTransport{transport, held}, Servers: servers,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeNode(t, n) })
		nodes = append(nodes, n)
	}
	return nodes, held
}

// A node that is no member is told so without an entry in the log, and even while the
// membership is locked: the join key is enough to ask, at any rate.
func TestNode_answerStandingOfAStranger(t *testing.T) {
	t.Parallel()
	nodes, _ := newHeldCluster(t)
	leader := leaderOf(t, nodes...)
	eventually(t, "all to have what the leader has", func() bool {
		return !slices.ContainsFunc(nodes, func(n *Node) bool { return n.AppliedIndex() < leader.AppliedIndex() })
	})
	unlock, err := leader.membership.lockMembers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	before := leader.lastIndex()
	for range 20 {
		answer, err := leader.standing.answerStanding(t.Context(), []byte(`{"record":{"uuid":"stranger","peer_addr":"host9:7401"}}`))
		if err != nil || string(answer) != `{"removed":true}` {
			t.Errorf("%s, %v", answer, err)
		}
	}
	if after := leader.lastIndex(); after != before {
		t.Errorf("the log ends at %d, and %d before", after, before)
	}
}

// A leader whose removal of a node is not committed certainly leads, but does not tell the
// node that it was removed: the next leader may know nothing of the removal, and a node
// that was told so never comes back.
func TestNode_answerStandingWaitsForTheRemoval(t *testing.T) {
	t.Parallel()
	nodes, held := newHeldCluster(t)
	var leader *Node
	standingOf := func(n *Node) (answer standingAnswer) {
		t.Helper()
		body, err := json.Marshal(standingQuestion{Record: n.record})
		if err != nil {
			t.Fatal(err)
		}
		if body, err = leader.standing.answerStanding(context.Background(), body); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	other := func() *Node {
		leader = leaderOf(t, nodes...)
		for _, n := range nodes {
			if n != leader {
				return n
			}
		}
		return nil
	}
	var removed *Node
	eventually(t, "a member to be told that it is one", func() bool {
		removed = other()
		return standingOf(removed).Member
	})

	held.Store(true)
	future := leader.raft.RemoveServer(raft.ServerID(removed.uuid), 0, time.Second)
	eventually(t, "the removal to be the leader's latest configuration", func() bool { return len(leader.servers()) == 2 })
	if answer := standingOf(removed); answer.Removed {
		t.Error("a node was told that it was removed, though that was not committed")
	}
	held.Store(false)
	if err := future.Error(); err != nil && !errors.Is(err, raft.ErrLeadershipLost) {
		t.Fatal(err)
	}
	// A leadership that was lost meanwhile may have lost the removal, too.
	eventually(t, "the node to be told that it was removed, once it was", func() bool {
		other()
		if len(leader.servers()) == 3 {
			_ = leader.raft.RemoveServer(raft.ServerID(removed.uuid), 0, time.Second).Error()
		}
		return standingOf(removed).Removed
	})
}
