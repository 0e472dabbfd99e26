package cluster

import (
	"context"
	"time"

	"github.com/claimq/claimq/fsm"
)

// Claim is Propose of a claim that waits up to wait until there is something to
// claim.
func (n *Node) Claim(caller context.Context, cmd fsm.ClaimNext, _ time.Duration) (fsm.Proposed, error) {
	return n.Propose(caller, cmd)
}
