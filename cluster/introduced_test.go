package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// A node joins a cluster whose first members have all been replaced. It gets the beginning
// of the log first, by which none of the nodes that are left is a member.
func TestNode_joinsAfterTheFirstMembersHaveGone(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 3)
	cfgs := make([]Config, len(addrs))
	for i, addr := range addrs {
		cfgs[i] = testConfig(t, fmt.Sprintf("n%d", i+1), t.TempDir(), addr)
	}
	cfgs[0].Bootstrap = true
	first := openNode(t, cfgs[0])
	large := fmt.Appendf(nil, "%q", strings.Repeat("x", 128<<10))
	for i := range 16 * appendEntriesMax { // enough to last longer than raftTakenInterval
		submitKey(t, first, fmt.Sprint("first ", i), large)
	}
	token := joinTokenOf(t, first)
	cfgs[1].Join, cfgs[1].JoinToken = addrs[:1], token
	second := openNode(t, cfgs[1])
	eventually(t, "two vote", func() bool { return len(first.votersNow()) == 2 })
	eventually(t, "n2 leads", func() bool {
		_, _ = first.Transfer(context.Background(), "n2")
		return second.IsLeader()
	})
	eventually(t, "n1 is removed", func() bool {
		err := second.RemoveNode(context.Background(), "n1", nodes.Operator{})
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	closeNode(t, first)
	cfgs[2].Join, cfgs[2].JoinToken = addrs[1:2], token
	third := openNode(t, cfgs[2])
	eventually(t, "n3 has the beginning", func() bool { return third.AppliedIndex() > 0 })
	closeNode(t, third)

	// Restarted in the middle, it still knows the node that made it a member.
	cfgs[2].Join, cfgs[2].Registerer = nil, testConfig(t, "n3", "", "").Registerer
	third = openNode(t, cfgs[2])
	eventually(t, "n3 votes", func() bool { return len(second.votersNow()) == 2 })
	if third.known.isServer(first.uuid) {
		t.Error("n3 takes Raft's messages from a node that was removed")
	}
}

func submitKey(t *testing.T, n *Node, key string, params []byte) {
	t.Helper()
	eventually(t, "a task", func() bool {
		_, err := n.Propose(t.Context(), command.Submit{Tasks: []fsm.NewTask{{Type: "t", Params: params, Key: key}}})
		return err == nil
	})
}
