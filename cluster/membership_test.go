package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
)

// A nonvoter that was removed while the leader was about to promote it stays
// removed: as a voter that is gone it could hold up every commit.
func TestLeadership_promotesNobodyAnew(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "n1", t.TempDir(), freeAddrs(t, 1)[0])
	cfg.Bootstrap = true
	n := openNode(t, cfg)
	eventually(t, "n1 to lead", n.IsLeader)
	n.leader.Load().promote(raft.Server{ID: "removed", Address: "127.0.0.1:1", Suffrage: raft.Nonvoter})
	if got := n.servers(); len(got) != 1 {
		t.Errorf("the members are %v, want n1 alone", got)
	}
}

// Nor does an operator's promotion, which waits until it is near, make it one.
func TestNode_promotesNobodyAnew(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "n1", t.TempDir(), freeAddrs(t, 1)[0])
	cfg.Bootstrap = true
	n := openNode(t, cfg)
	eventually(t, "n1 to lead", n.IsLeader)
	removed := fsm.NodeView{NodeRecord: fsm.NodeRecord{UUID: "removed", NodeID: "n2", PeerAddr: n.record.PeerAddr}, Suffrage: suffrageNonvoter}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var refused *fsm.MembershipRefused
	if err := n.promoteMember(ctx, n.leader.Load(), removed); !errors.As(err, &refused) {
		t.Errorf("promote: %v, want it to be refused", err)
	}
	if got := n.servers(); len(got) != 1 {
		t.Errorf("the members are %v, want n1 alone", got)
	}
}

// A copy of a member's data folder that is started at another address does not get
// that member's place while the member runs: it may lack what the member has
// acknowledged, and both would vote. A member that has moved does.
func TestLeadership_movesNobodyToACopy(t *testing.T) {
	t.Parallel()
	c := newBackupCluster(t, logStoreWAL)
	leader := leaderOf(t, c.nodes...)
	at := slices.Index(c.nodes, c.follower())
	// moved says what the leader has of a node that says that it is at addr now.
	moved := func(n *Node, addr string) (has raft.ServerAddress) {
		t.Helper()
		record := n.record
		record.PeerAddr = addr
		body, err := json.Marshal(standingQuestion{Record: record})
		if err != nil {
			t.Fatal(err)
		}
		leader := leaderOf(t, leader)
		if _, err := leader.answerStanding(context.Background(), body); err != nil {
			t.Fatal(err)
		}
		for _, s := range leader.servers() {
			if string(s.ID) == n.uuid {
				has = s.Address
			}
		}
		return has
	}
	addrs := freeAddrs(t, 2)
	if has := moved(leader, addrs[0]); string(has) != leader.record.PeerAddr {
		t.Errorf("the leader is at %s now, by a copy's word", has)
	}

	closeNode(t, c.nodes[at])
	copied := c.cfgs[at]
	copied.DataDir, copied.PeerAddr, copied.Registerer = t.TempDir(), addrs[0], testConfig(t, "", "", "").Registerer
	if err := os.CopyFS(copied.DataDir, os.DirFS(c.cfgs[at].DataDir)); err != nil {
		t.Fatal(err)
	}
	c.cfgs[at].Registerer = testConfig(t, "", "", "").Registerer
	original := openNode(t, c.cfgs[at])
	other := openNode(t, copied)
	if has := moved(other, addrs[0]); string(has) != original.record.PeerAddr {
		t.Errorf("the member is at %s now, where a copy of its folder runs", has)
	}
	closeNode(t, other)

	closeNode(t, original)
	again := c.cfgs[at]
	again.PeerAddr, again.Registerer = addrs[1], testConfig(t, "", "", "").Registerer
	here := openNode(t, again)
	eventually(t, "the member to be known where it has moved", func() bool { return string(moved(here, addrs[1])) == addrs[1] })
}
