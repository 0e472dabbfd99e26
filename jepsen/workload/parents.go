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
	"github.com/claimq/claimq/jepsen/recorder"
)

const (
	// parentPercent is how many of a hundred tasks are parents, if Config does not say.
	parentPercent = 10
	stepsMax      = 5
	// finalizeSecondsMax is how long a claim of a finalization lasts at most.
	finalizeSecondsMax = 3
	// runningMax is how many parents a processor looks for at a time.
	runningMax = 50
)

// newParent returns a task with steps. Each step depends on some of those before
// it.
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
		var limit int32 // none
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

// process ends a parent, or all that there are once no more come.
func (c *client) process(ctx context.Context) {
	if c.w.drain.Load() {
		c.processAll(ctx)
	} else if id, ok := c.w.tasks.pick(parents, c.rng); ok {
		c.finish(ctx, id)
	}
}

// processAll ends every parent that waits for it.
func (c *client) processAll(ctx context.Context) {
	running := c.note(c.List(ctx, recorder.ListQuery{Status: "running", Limit: runningMax, Desc: c.percent(50)}, recorder.Read{}))
	for i := range running.Listed {
		c.finish(ctx, running.Listed[i].ID)
	}
}

// processor returns the name that the caller has as a processor: another one
// after it has died.
func (c *client) processor() string { return fmt.Sprintf("p%d:%d", c.number, c.died) }

// finish does what processors do with a parent.
func (c *client) finish(ctx context.Context, id uint64) {
	if c.percent(10) { // without asking first
		c.finalize(ctx, id, 0)
		return
	}
	req := wire.FinalizationClaim{ProcessorID: c.processor(), TimeoutSeconds: 1 + c.rng.Int63n(finalizeSecondsMax)}
	claim := c.again(ctx, func() history.Op { return c.ClaimFinalization(ctx, id, req) })
	if claim.Outcome != history.OK || !claim.Done {
		if c.percent(5) { // it will not hear of it
			c.finalize(ctx, id, 0)
		}
		return
	}
	release := func() history.Op { return c.ReleaseFinalization(ctx, id, c.processor()) }
	timeout := time.Duration(req.TimeoutSeconds) * time.Second
	n := c.rng.Intn(100)
	if c.w.drain.Load() {
		n = 99
	}
	switch {
	case n < 8: // it dies
		c.died++
		return
	case n < 14:
		c.again(ctx, release)
		return
	case n < 20: // it extends, some about when the time is over
		if c.percent(30) {
			pause.For(ctx, timeout*95/100+c.upTo(timeout/10))
		}
		c.again(ctx, func() history.Op { return c.ExtendFinalization(ctx, id, req) })
	case n < 23: // about when the time is over
		pause.For(ctx, timeout*9/10+c.upTo(timeout/5))
	case n < 30: // again, as if it had not heard
		c.again(ctx, func() history.Op { return c.ClaimFinalization(ctx, id, req) })
	}
	c.finalize(ctx, id, claim.Token)
	if c.percent(10) {
		c.again(ctx, release)
	}
}

// finalize ends the parent, if its steps have ended.
func (c *client) finalize(ctx context.Context, id, token uint64) {
	req := wire.Finalize{ProcessorID: c.processor(), ClaimToken: token, Outcome: "completed"}
	if c.percent(30) {
		req.Outcome, req.Error = "failed", "it is not good enough"
	} else {
		req.Result = json.RawMessage(fmt.Sprintf(`{"by":%q,"token":%d}`, req.ProcessorID, token))
	}
	op := c.again(ctx, func() history.Op { return c.Finalize(ctx, id, req) })
	if op.Outcome == history.OK && op.Done {
		c.w.open.Add(-1)
		c.w.tasks.add(ended, id)
	}
}
