package cluster

import (
	"testing"

	"github.com/hashicorp/raft"
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
