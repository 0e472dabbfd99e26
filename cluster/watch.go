package cluster

import (
	"context"
	"time"

	"github.com/claimq/claimq/fsm"
)

// WaitEnded waits until the task has ended, or is there no more, by this node's
// state; wait at most.
func (n *Node) WaitEnded(caller context.Context, id uint64, wait time.Duration) error { return nil }

// WaitEvent waits until this node's trail has an event behind after.
func (n *Node) WaitEvent(ctx context.Context, after fsm.EventPos) error {
	<-ctx.Done()
	return context.Cause(ctx)
}
