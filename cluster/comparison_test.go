package cluster

import (
	"testing"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/replica"
)

// Only voters decide whether a leader serves: a nonvoter that differs does not stop it,
// while too few voters have answered.
func TestComparison_nonvoterDiffers(t *testing.T) {
	t.Parallel()
	n := compose(&core{uuid: "a"})
	voters := []raft.Server{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	c := n.agreement.compareAt(replica.ChainPoint{Index: 7, Chain: 1})
	c.note("d", replica.ChainPoint{Chain: 2}.String())
	if a, _ := c.accord(voters); a != undecided {
		t.Errorf("accord is %d before a voter has answered, want %d", a, undecided)
	}
	c.note("b", replica.ChainPoint{Chain: 3}.String())
	if a, _ := c.accord(voters); a != divided {
		t.Errorf("accord is %d when a voter differs, want %d", a, divided)
	}
	c.note("c", c.at.String())
	if a, _ := c.accord(voters); a != agreed || len(c.differing()) != 2 {
		t.Errorf("accord is %d when a majority agrees, want %d; %v differ", a, agreed, c.differing())
	}
}
