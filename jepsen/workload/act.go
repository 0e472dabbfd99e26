package workload

import (
	"context"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/history"
)

const (
	// actedType is the type whose tasks are cancelled, retried and deleted all at once
	// now and then. None of them has steps, or is one.
	actedType = "acted"
	// actPause is how long there is between two actions at most.
	actPause = 2500 * time.Millisecond
)

// act acts on all tasks of a type, again and again. Nobody repeats an action.
func (c *client) act(ctx context.Context) {
	for pause.For(ctx, c.upTo(actPause)) {
		action, status := history.Cancel, ""
		switch n := c.rng.Intn(100); {
		case n < 20:
			status = "pending"
		case n < 60:
			action, status = history.Retry, [...]string{"cancelled", "failed"}[n%2]
		case n < 75:
			action, status = history.Delete, [...]string{"cancelled", "completed"}[n%2]
		}
		c.note(c.Act(ctx, action, actedType, status))
	}
}
