package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
)

// RemoveNode takes the member named nodeID, alive or dead, out of the cluster.
// Its data stays in its folder, but it can never come back under that identity.
// It is refused where the rest could not go on. Errors: *fsm.MembershipRefused,
// fsm.ErrNotLeader, fsm.ErrNoLeader, fsm.ErrShuttingDown (nothing was changed);
// fsm.ErrOutcomeUnknown.
func (n *Node) RemoveNode(ctx context.Context, nodeID string) error {
	l := n.leader.Load()
	if l == nil || !l.serves() {
		return n.notServing()
	}
	if n.raft == nil {
		return &fsm.MembershipRefused{Reason: "This node runs without Raft", Advice: "It has no members to remove"}
	}
	unlock, err := n.lockMembers(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", fsm.ErrOverloaded, err)
	}
	defer unlock()
	member, err := removable(n.Cluster(ctx), nodeID)
	if err != nil {
		return err
	}
	err = n.change(ctx, func() raft.IndexFuture {
		return n.raft.RemoveServer(raft.ServerID(member.UUID), 0, membershipTimeout)
	})
	if err != nil {
		return fmt.Errorf("remove node %s: %w", nodeID, proposeError(err))
	}
	n.logger.Info("member removed", "node_id", nodeID, "uuid", member.UUID)
	return nil
}

// removable returns the member of that name, or why it may not be removed.
func removable(view fsm.ClusterView, nodeID string) (member fsm.NodeView, err error) {
	var names []string
	voters, reachable, found := 0, 0, false
	for _, v := range view.Nodes {
		names = append(names, v.NodeID)
		if v.NodeID == nodeID || v.UUID == nodeID {
			member, found = v, true
			continue
		}
		if v.Suffrage != "voter" {
			continue
		}
		voters++
		if v.Healthy {
			reachable++
		}
	}
	switch {
	case !found:
		return member, &fsm.MembershipRefused{
			Reason: fmt.Sprintf("No member is named %q", nodeID),
			Advice: "The members are " + strings.Join(names, ", "),
		}
	case voters == 0:
		return member, &fsm.MembershipRefused{
			Reason: fmt.Sprintf("%s is the last voter", nodeID),
			Advice: "A cluster needs one: stop the node instead",
		}
	case member.NodeID == view.Leader:
		return member, &fsm.MembershipRefused{
			Reason: fmt.Sprintf("%s leads", nodeID),
			Advice: "Stop it first: another node takes over, then remove it",
		}
	case reachable < voters/2+1:
		return member, &fsm.MembershipRefused{
			Reason: fmt.Sprintf("Without %s only %d of %d voters would be healthy, too few to go on", nodeID, reachable, voters),
			Advice: "Bring the others back first, or join new nodes",
		}
	}
	return member, nil
}
