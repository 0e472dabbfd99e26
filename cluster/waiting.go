package cluster

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/fsm"
)

// Claim is Propose of a claim that waits up to wait until there is something to
// claim.
func (n *Node) Claim(caller context.Context, cmd fsm.ClaimNext, _ time.Duration) (fsm.Proposed, error) {
	return n.Propose(caller, cmd)
}

// ForwardWaiting is Forward of a request that the leader may hold for long.
func (n *Node) ForwardWaiting(ctx context.Context, req *fasthttp.Request, resp *fasthttp.Response) error {
	return n.Forward(ctx, req, resp)
}
