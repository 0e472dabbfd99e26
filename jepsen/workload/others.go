package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/history"
)

const (
	// pausedType is the type that is sometimes paused.
	pausedType = "paused"
	// pauseMax bounds the time for which it is paused, and the time in between.
	pauseMax = 1500 * time.Millisecond
	// actedType is the type whose tasks are sometimes cancelled, retried or deleted all at
	// once. None of them has steps, or is one.
	actedType = "acted"
	// actPause bounds the time between two actions.
	actPause = 2500 * time.Millisecond
)

// read reads tasks and lists.
func (c *client) read(ctx context.Context) {
	for c.breathe(ctx) {
		op := history.Op{Kind: history.Get}
		if c.percent(20) {
			op = c.newList()
		}
		switch n := c.rng.Intn(100); {
		case n < 20:
			op.Stale = true
		case n < 40:
			op.Stale, op.MinIndex = true, c.seen
		}
		if op.Kind == history.Get {
			from := recent
			if c.percent(40) {
				from = abandoned
			}
			if c.percent(15) {
				op.WaitMS = 1 + c.rng.Int63n(waitMSMax)
			}
			var ok bool
			if op.TaskID, ok = c.w.tasks.pick(from, c.rng); !ok {
				continue
			}
		}
		c.note(c.Call(ctx, op))
	}
}

func (c *client) newList() history.Op {
	op := history.Op{Kind: history.List, Limit: 1 + c.rng.Intn(50), Desc: !c.percent(10)}
	if c.percent(60) {
		op.Status = [...]string{"pending", "claimed", "completed", "failed"}[c.rng.Intn(4)]
	}
	if c.percent(40) {
		op.TaskType = typeName(c.rng.Intn(typeCount))
	}
	return op
}

// meddle acts like an operator: it limits a type, deletes ended tasks, resets failed and
// stuck ones to pending, and cancels.
func (c *client) meddle(ctx context.Context) {
	// While the limit is not set, no tasks are submitted that it must hold back.
	limit := c.callAgain(ctx, history.Op{Kind: history.SetType, TaskType: limitedType, MaxClaimed: claimedAtOnce})
	c.w.limited.Store(limit.Outcome == history.OK)
	c.setShares(ctx)
	tasks := &c.w.tasks
	for c.breathe(ctx) {
		from, cancels := ended, c.percent(20)
		switch {
		case cancels:
			from = plain
		case c.percent(10):
			from = abandoned
		}
		id, ok := tasks.pick(from, c.rng)
		op := history.Op{Kind: history.Retry, TaskID: id, MaxAttempts: int32(c.rng.Intn(2))}
		switch {
		case cancels:
			op = history.Op{Kind: history.Cancel, TaskID: id}
		case c.percent(35):
			op = history.Op{Kind: history.Delete, TaskID: id}
		}
		if ok {
			c.note(c.Call(ctx, op))
		}
	}
}

// setShares makes sharedType fair and sets its shares. Unless all is acknowledged, no tasks of it are submitted.
func (c *client) setShares(ctx context.Context) {
	for _, op := range []history.Op{
		{Kind: history.SetType, TaskType: sharedType, Fair: true},
		{Kind: history.SetShare, TaskType: sharedType, ShareKey: shareName(0), Weight: shareWeight},
		{Kind: history.SetShare, TaskType: sharedType, ShareKey: shareName(shareCount - 1), MaxClaimed: claimedAtOnce},
	} {
		if c.callAgain(ctx, op).Outcome != history.OK {
			return
		}
	}
	c.w.fair.Store(true)
}

func shareName(n int) string { return fmt.Sprintf("share-%d", n) }

// direct pauses a type for a while, repeatedly. Drain ends the last pause.
func (c *client) direct(ctx context.Context) {
	for paused := true; pause.For(ctx, c.upTo(pauseMax)); paused = !paused {
		c.callAgain(ctx, settingPaused(paused))
	}
}

func settingPaused(paused bool) history.Op {
	return history.Op{Kind: history.SetType, TaskType: pausedType, Paused: &paused}
}

// act acts on all tasks of a type, repeatedly. Actions are never retried.
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
		c.note(c.Call(ctx, history.Op{Kind: history.Act, Action: string(action), TaskType: actedType, Status: status}))
	}
}
