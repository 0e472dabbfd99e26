package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/nodes"
)

// A change that the remaining nodes could not survive is refused, with words that say what
// to do.
func TestChangeable(t *testing.T) {
	t.Parallel()
	node := func(id, suffrage string, healthy bool) nodes.NodeView {
		return nodes.NodeView{NodeRecord: fsm.NodeRecord{NodeID: id, UUID: "uuid-" + id}, Suffrage: suffrage, TakesPart: healthy}
	}
	three := []nodes.NodeView{node("n1", "voter", true), node("n2", "voter", true), node("n3", "voter", true)}
	oneDead := []nodes.NodeView{node("n1", "voter", true), node("n2", "voter", true), node("n3", "voter", false)}
	mixed := append(slices.Clone(oneDead), node("n4", "nonvoter", true), node("n5", "nonvoter", false))
	lone := []nodes.NodeView{node("n1", "voter", true), node("n2", "nonvoter", true)}
	for _, tc := range []struct {
		name  string
		nodes []nodes.NodeView
		act   memberAct
		node  string
		want  string // in the refusal; "" = it may be done
	}{
		{"remove a dead one of three", oneDead, actRemove, "n3", ""},
		{"remove it by its identity", oneDead, actRemove, "uuid-n3", ""},
		{"remove a healthy one of three", three, actRemove, "n3", ""},
		{"remove a healthy one while another is dead", oneDead, actRemove, "n2", "only 1 of 2 voters"},
		{"remove one of two while the leader is alone", []nodes.NodeView{node("n1", "voter", true), node("n2", "voter", false)}, actRemove, "n2", ""},
		{"remove a nonvoter while another is dead", mixed, actRemove, "n4", ""},
		{"remove the leader", three, actRemove, "n1", ""},
		{"remove the leader while another is dead", oneDead, actRemove, "n1", "only 1 of 2 voters"},
		{"remove the last voter", lone, actRemove, "n1", "last voter"},
		{"remove nobody", three, actRemove, "n9", "The members are n1, n2, n3"},
		{"demote a healthy one of three", three, actDemote, "n3", ""},
		{"demote the leader", three, actDemote, "n1", ""},
		{"demote the last voter", lone, actDemote, "n1", "last voter"},
		{"demote a healthy one while another is dead", oneDead, actDemote, "n2", "only 1 of 2 voters"},
		{"demote a nonvoter", mixed, actDemote, "n4", ""},
		{"demote nobody", three, actDemote, "n9", "No member is named"},
		{"promote a nonvoter", mixed, actPromote, "n4", ""},
		{"promote a voter", mixed, actPromote, "n2", ""},
		{"promote a dead nonvoter", mixed, actPromote, "n5", "could not vote"},
		{"promote nobody", three, actPromote, "n9", "No member is named"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			member, err := changeable(nodes.ClusterView{Leader: "n1", Nodes: tc.nodes}, memberQuestion{Act: tc.act, NodeID: tc.node})
			var refused *nodes.MembershipRefused
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want == "" && member.NodeID != tc.node && member.UUID != tc.node:
				t.Errorf("the member is %s", member.NodeID)
			case tc.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error is %v, want a refusal that says %q", err, tc.want)
			}
		})
	}
}

// A dead member is removed, and a new, empty node can take its name.
func TestNode_RemoveNode(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 3)
	all := make([]*Node, 2)
	for i, id := range []string{"n1", "n2"} {
		cfg := testConfig(t, id, t.TempDir(), addrs[i])
		if i == 0 {
			cfg.Bootstrap = true
		} else {
			cfg.Join, cfg.JoinToken = []string{addrs[0]}, joinTokenOf(t, all[0])
		}
		all[i] = openNode(t, cfg)
	}
	healthyVoters := func() int {
		count := 0
		for _, v := range all[0].Cluster(context.Background()).Nodes {
			if v.Healthy && v.Suffrage == "voter" {
				count++
			}
		}
		return count
	}
	eventually(t, "n2 to be a voter", func() bool { return healthyVoters() == 2 })
	third := testConfig(t, "n3", t.TempDir(), addrs[2])
	third.Join, third.JoinToken = []string{addrs[0]}, joinTokenOf(t, all[0])
	dead := openNode(t, third)
	eventually(t, "n3 to be a voter", func() bool { return healthyVoters() == 3 })
	closeNode(t, dead)

	// On a busy machine the leadership may be lost, or move, at any moment.
	err := all[1].RemoveNode(context.Background(), "n3", nodes.Operator{})
	if !errors.Is(err, nodes.ErrNotLeader) && !errors.Is(err, nodes.ErrNoLeader) && all[0].IsLeader() {
		t.Errorf("removing at a follower: %v, want ErrNotLeader", err)
	}
	eventually(t, "n3 to be removed", func() bool {
		for _, n := range all {
			if err := n.RemoveNode(context.Background(), "n3", nodes.Operator{}); err != nil && !errors.Is(err, nodes.ErrNoLeader) && !errors.Is(err, nodes.ErrNotLeader) {
				t.Logf("remove n3: %v", err)
			}
		}
		return len(all[0].Cluster(context.Background()).Nodes) == 2
	})
	if got := len(all[0].Cluster(context.Background()).Nodes); got != 2 {
		t.Errorf("%d members after the removal, want 2", got)
	}
	third.DataDir, third.Registerer = t.TempDir(), prometheus.NewRegistry()
	openNode(t, third)
	eventually(t, "a new n3 to be a voter", func() bool { return healthyVoters() == 3 })
}
