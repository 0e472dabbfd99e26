package workload

import (
	"context"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/history"
)

const (
	// pausedType is the type that is paused now and then.
	pausedType = "paused"
	pauseMax   = time.Second
	// resumeTimeout bounds how long it is tried to end a pause: longer than any
	// fault lasts.
	resumeTimeout = time.Minute
)

// direct pauses a type for a while, again and again.
func (c *client) direct(ctx context.Context) {
	for pause.For(ctx, c.upTo(2*pauseMax)) {
		c.note(c.SetPaused(ctx, pausedType, true))
		pause.For(ctx, c.upTo(pauseMax))
		c.resume()
	}
}

// resume ends the pause, also when the run is over: what is pending is to end.
func (c *client) resume() {
	ctx, cancel := context.WithTimeout(context.Background(), resumeTimeout)
	defer cancel()
	for c.note(c.SetPaused(ctx, pausedType, false)).Outcome != history.OK && pause.For(ctx, idlePause) {
	}
}

// upTo returns a time up to most.
func (c *client) upTo(most time.Duration) time.Duration {
	return time.Duration(c.rng.Int63n(int64(most)))
}
