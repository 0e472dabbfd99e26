package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/fsm"
)

// What the rest could not survive is refused, in words that say what to do.
func TestRemovable(t *testing.T) {
	t.Parallel()
	node := func(id, suffrage string, healthy bool) fsm.NodeView {
		return fsm.NodeView{NodeRecord: fsm.NodeRecord{NodeID: id, UUID: "uuid-" + id}, Suffrage: suffrage, Healthy: healthy}
	}
	for _, tc := range []struct {
		name   string
		nodes  []fsm.NodeView
		remove string
		want   string // in the refusal; "" = it may go
	}{
		{"a dead one of three", []fsm.NodeView{node("n1", "voter", true), node("n2", "voter", true), node("n3", "voter", false)}, "n3", ""},
		{"by its identity", []fsm.NodeView{node("n1", "voter", true), node("n2", "voter", true), node("n3", "voter", false)}, "uuid-n3", ""},
		{"a healthy one of three", []fsm.NodeView{node("n1", "voter", true), node("n2", "voter", true), node("n3", "voter", true)}, "n3", ""},
		{"a healthy one while another is dead", []fsm.NodeView{node("n1", "voter", true), node("n2", "voter", true), node("n3", "voter", false)}, "n2", "only 1 of 2 voters"},
		{"one of two while the leader is alone", []fsm.NodeView{node("n1", "voter", true), node("n2", "voter", false)}, "n2", ""},
		{"a nonvoter while another is dead", []fsm.NodeView{node("n1", "voter", true), node("n2", "voter", true), node("n3", "voter", false), node("n4", "nonvoter", true)}, "n4", ""},
		{"the leader", []fsm.NodeView{node("n1", "voter", true), node("n2", "voter", true), node("n3", "voter", true)}, "n1", "Stop it first"},
		{"the last voter", []fsm.NodeView{node("n1", "voter", true), node("n2", "nonvoter", true)}, "n1", "last voter"},
		{"nobody", []fsm.NodeView{node("n1", "voter", true), node("n2", "voter", true)}, "n9", "The members are n1, n2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			member, err := removable(fsm.ClusterView{Leader: "n1", Nodes: tc.nodes}, tc.remove)
			var refused *fsm.MembershipRefused
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want == "" && member.NodeID != tc.remove && member.UUID != tc.remove:
				t.Errorf("the member is %s", member.NodeID)
			case tc.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error is %v, want a refusal that says %q", err, tc.want)
			}
		})
	}
}

// A dead member is removed, and its name can be taken by a new, empty node.
func TestNode_RemoveNode(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 3)
	nodes := make([]*Node, 2)
	for i, id := range []string{"n1", "n2"} {
		cfg := testConfig(t, id, t.TempDir(), addrs[i])
		if i == 0 {
			cfg.Bootstrap = true
		} else {
			cfg.Join = []string{addrs[0]}
		}
		nodes[i] = openNode(t, cfg)
	}
	healthyVoters := func() int {
		count := 0
		for _, v := range nodes[0].Cluster(context.Background()).Nodes {
			if v.Healthy && v.Suffrage == "voter" {
				count++
			}
		}
		return count
	}
	eventually(t, "n2 to be a voter", func() bool { return healthyVoters() == 2 })
	third := testConfig(t, "n3", t.TempDir(), addrs[2])
	third.Join = []string{addrs[0]}
	dead := openNode(t, third)
	eventually(t, "n3 to be a voter", func() bool { return healthyVoters() == 3 })
	closeNode(t, dead)

	// On a busy machine the leadership may be lost, or move, at any moment.
	err := nodes[1].RemoveNode(context.Background(), "n3")
	if !errors.Is(err, fsm.ErrNotLeader) && !errors.Is(err, fsm.ErrNoLeader) && nodes[0].IsLeader() {
		t.Errorf("removing at a follower: %v, want ErrNotLeader", err)
	}
	eventually(t, "n3 to be removed", func() bool {
		for _, n := range nodes {
			if err := n.RemoveNode(context.Background(), "n3"); err != nil && !errors.Is(err, fsm.ErrNoLeader) && !errors.Is(err, fsm.ErrNotLeader) {
				t.Logf("remove n3: %v", err)
			}
		}
		return len(nodes[0].Cluster(context.Background()).Nodes) == 2
	})
	if got := len(nodes[0].Cluster(context.Background()).Nodes); got != 2 {
		t.Errorf("%d members after the removal, want 2", got)
	}
	third.DataDir, third.Registerer = t.TempDir(), prometheus.NewRegistry()
	openNode(t, third)
	eventually(t, "a new n3 to be a voter", func() bool { return healthyVoters() == 3 })
}
