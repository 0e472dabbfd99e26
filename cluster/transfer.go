package cluster

import (
	"context"

	"github.com/claimq/claimq/fsm"
)

// JoinNode makes the running node named nodeID at peerAddr a member.
func (n *Node) JoinNode(context.Context, string, string, bool) error { return fsm.ErrNoLeader }

// PromoteNode makes a nonvoter a voter.
func (n *Node) PromoteNode(context.Context, string) error { return fsm.ErrNoLeader }

// DemoteNode makes a voter a nonvoter.
func (n *Node) DemoteNode(context.Context, string) error { return fsm.ErrNoLeader }

// Transfer hands the leadership over.
func (n *Node) Transfer(context.Context, string) (leader string, err error) {
	return "", fsm.ErrNoLeader
}

// Hashes returns the nodes' state hashes.
func (n *Node) Hashes(context.Context) (fsm.HashView, error) {
	return fsm.HashView{}, fsm.ErrNoLeader
}
