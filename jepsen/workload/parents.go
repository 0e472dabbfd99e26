package workload

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/history"
)

const (
	// parentPercent is the percentage of parents among the tasks, if Config does not set
	// it.
	parentPercent = 10
	stepsMax      = 5
	// finalizeSecondsMax bounds the length of a finalization's claim.
	finalizeSecondsMax = 3
	// runningMax bounds the parents that a processor lists at a time.
	runningMax = 50
)

// newParent returns a task with steps. Each step depends on some of the earlier ones.
func (c *client) newParent() wire.NewTask {
	key := c.w.name("k")
	t := wire.NewTask{TaskType: "parent", IdempotencyKey: key, Priority: int32(c.rng.Intn(4)) - 1}
	if c.percent(50) {
		t.Finalize = "claim"
	}
	if c.percent(50) {
		t.OnStepFailure = "continue"
	}
	steps := 2 + c.rng.Intn(stepsMax-1)
	for place := range cmp.Or(c.w.cfg.Steps, steps) {
		var limit int32 // no limit
		if c.percent(25) {
			limit = 1 + int32(c.rng.Intn(2))
		}
		step := wire.NewStep{Step: stepName(place), NewTask: wire.NewTask{
			TaskType: typeName(c.rng.Intn(typeCount)), Params: json.RawMessage(fmt.Sprintf(`{"key":%q}`, key)), MaxAttempts: &limit, Priority: int32(c.rng.Intn(4)) - 1, Backoff: noWait,
		}}
		for _, on := range c.rng.Perm(place)[:c.rng.Intn(place+1)] {
			step.DependsOn = append(step.DependsOn, stepName(on))
		}
		t.Steps = append(t.Steps, step)
	}
	return t
}

func stepName(place int) string { return fmt.Sprintf("s%d", place+1) }

// process ends one parent, or all of them once no more are submitted.
func (c *client) process(ctx context.Context) {
	if c.w.drain.Load() {
		c.processAll(ctx)
	} else if id, ok := c.w.tasks.pick(parents, c.rng); ok {
		c.finish(ctx, id)
	}
}

// processAll ends every parent that waits for it.
func (c *client) processAll(ctx context.Context) {
	running := c.note(c.Call(ctx, history.Op{Kind: history.List, Status: "running", Limit: runningMax, Desc: c.percent(50)}))
	for i := range running.Listed {
		c.finish(ctx, running.Listed[i].ID)
	}
}

// processor returns the caller's name as a processor, which changes when it dies.
func (c *client) processor() string { return fmt.Sprintf("p%d:%d", c.number, c.died) }

// finish handles a parent like a processor.
func (c *client) finish(ctx context.Context, id uint64) {
	if c.percent(10) { // without a claim
		c.finalize(ctx, id, 0)
		return
	}
	timeout := time.Duration(1+c.rng.Int63n(finalizeSecondsMax)) * time.Second
	asks := func(kind history.Kind) history.Op {
		op := history.Op{Kind: kind, TaskID: id, Worker: c.processor(), LeaseMS: timeout.Milliseconds()}
		if kind == history.ReleaseFinalization {
			op.LeaseMS = 0
		}
		return c.callAgain(ctx, op)
	}
	claim := asks(history.ClaimFinalization)
	if claim.Outcome != history.OK || !claim.Done {
		if c.percent(5) { // it will not see the answer
			c.finalize(ctx, id, 0)
		}
		return
	}
	n := c.rng.Intn(100)
	if c.w.drain.Load() {
		n = 99
	}
	switch {
	case n < 8: // it dies
		c.died++
		return
	case n < 14:
		asks(history.ReleaseFinalization)
		return
	case n < 20: // it extends, sometimes near the end of the timeout
		if c.percent(30) {
			pause.For(ctx, timeout*95/100+c.upTo(timeout/10))
		}
		asks(history.ExtendFinalization)
	case n < 23: // near the end of the timeout
		pause.For(ctx, timeout*9/10+c.upTo(timeout/5))
	case n < 30: // again, as if it had seen no answer
		asks(history.ClaimFinalization)
	}
	c.finalize(ctx, id, claim.Token)
	if c.percent(10) {
		asks(history.ReleaseFinalization)
	}
}

// finalize ends the parent, if its steps have ended.
func (c *client) finalize(ctx context.Context, id, token uint64) {
	op := history.Op{Kind: history.Finalize, TaskID: id, Worker: c.processor(), Token: token, Goal: "failed"}
	if !c.percent(30) {
		op.Goal, op.Result = "completed", fmt.Sprintf(`{"by":%q,"token":%d}`, c.processor(), token)
	}
	op = c.callAgain(ctx, op)
	if op.Outcome == history.OK && op.Done {
		c.w.open.Add(-1)
		c.w.tasks.add(ended, id)
	}
}
