package workload

import (
	"context"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/recorder"
)

const (
	// pausedType is the type that is paused now and then.
	pausedType = "paused"
	// pauseMax is how long it is paused at most, and how long it is not.
	pauseMax = 1500 * time.Millisecond
	// actedType is the type whose tasks are cancelled, retried and deleted all at once
	// now and then. None of them has steps, or is one.
	actedType = "acted"
	// actPause is how long there is between two actions at most.
	actPause = 2500 * time.Millisecond
)

// read reads tasks and lists.
func (c *client) read(ctx context.Context) {
	for c.breathe(ctx) {
		how := recorder.Read{}
		switch n := c.rng.Intn(100); {
		case n < 20:
			how.Stale = true
		case n < 40:
			how.Stale, how.MinIndex = true, c.seen
		}
		if c.percent(20) {
			c.note(c.List(ctx, c.newList(), how))
			continue
		}
		from := recent
		if c.percent(40) {
			from = abandoned
		}
		if c.percent(15) {
			how.WaitMS = 1 + c.rng.Int63n(waitMSMax)
		}
		if id, ok := c.w.tasks.pick(from, c.rng); ok {
			c.note(c.Read(ctx, id, how))
		}
	}
}

func (c *client) newList() recorder.ListQuery {
	q := recorder.ListQuery{Limit: 1 + c.rng.Intn(50), Desc: !c.percent(10)}
	if c.percent(60) {
		q.Status = [...]string{"pending", "claimed", "completed", "failed"}[c.rng.Intn(4)]
	}
	if c.percent(40) {
		q.Type = typeName(c.rng.Intn(typeCount))
	}
	return q
}

// meddle does what an operator may do: it limits a type, deletes what has ended, makes
// pending again what has failed or hangs, and cancels.
func (c *client) meddle(ctx context.Context) {
	// Until the limit is known nobody submits what it holds back.
	limit := c.again(ctx, func() history.Op { return c.SetMaxClaimed(ctx, limitedType, claimedAtOnce) })
	c.w.limited.Store(limit.Outcome == history.OK)
	tasks := &c.w.tasks
	for c.breathe(ctx) {
		from, cancels := ended, c.percent(20)
		switch {
		case cancels:
			from = plain
		case c.percent(10):
			from = abandoned
		}
		switch id, ok := tasks.pick(from, c.rng); {
		case !ok:
		case cancels:
			c.note(c.Cancel(ctx, id))
		case c.percent(35):
			c.note(c.Delete(ctx, id))
		default:
			c.note(c.Retry(ctx, id, wire.Retry{AddAttempts: int32(c.rng.Intn(2))}))
		}
	}
}

// direct pauses a type for a while, again and again. Drain ends the last pause.
func (c *client) direct(ctx context.Context) {
	for paused := true; pause.For(ctx, c.upTo(pauseMax)); paused = !paused {
		c.again(ctx, func() history.Op { return c.SetPaused(ctx, pausedType, paused) })
	}
}

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
