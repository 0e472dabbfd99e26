package workload

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

const submitManyMax = 12

// produce submits tasks while there are few.
func (c *client) produce(ctx context.Context) {
	for c.breathe(ctx) {
		switch {
		case c.w.open.Load() > c.w.backlog():
			if twin := c.w.inFlight.Swap(nil); twin != nil {
				c.note(c.Submit(ctx, *twin))
			}
		case c.percent(10):
			c.submitMany(ctx)
		default:
			c.submit(ctx)
		}
	}
}

func (c *client) submit(ctx context.Context) {
	task := c.newWork()
	sent := task // a copy, because another caller may read task while this one uses a twin
	c.w.inFlight.Store(&sent)
	if c.percent(15) { // the task that another caller is just submitting
		if twin := c.w.inFlight.Swap(nil); twin != nil {
			task = *twin
		}
	}
	op := c.again(ctx, func() history.Op { return c.Submit(ctx, task) })
	c.submitted(op)
	if op.Outcome == history.OK && c.percent(4) { // as if it did not know the outcome
		c.note(c.Submit(ctx, task))
	}
}

func (c *client) submitMany(ctx context.Context) {
	tasks := make([]wire.NewTask, 2+c.rng.Intn(submitManyMax-1))
	for i := range tasks {
		tasks[i] = c.newWork()
	}
	if c.percent(20) { // the same key twice in one call
		tasks[len(tasks)-1] = tasks[0]
	}
	for _, op := range c.againAll(ctx, func() []history.Op { return c.SubmitMany(ctx, tasks) }) {
		c.submitted(op)
	}
}

// submitted tells the others about a new task.
func (c *client) submitted(op history.Op) {
	if op.Outcome != history.OK || !op.Created {
		return
	}
	tasks := &c.w.tasks
	if op.Plan != nil || c.w.cfg.Parents < 100 {
		c.w.created.Add(1)
	}
	c.w.open.Add(1)
	tasks.add(recent, op.TaskID)
	if op.Plan != nil {
		steps := len(op.Plan.Steps)
		c.w.open.Add(int64(steps))
		tasks.add(recent, op.TaskID+1+uint64(c.rng.Intn(steps)))
		tasks.add(parents, op.TaskID)
	} else if op.TaskType != actedType {
		tasks.add(plain, op.TaskID)
	}
}

// newWork returns a task, or one with steps.
func (c *client) newWork() wire.NewTask {
	if c.percent(c.w.cfg.Parents) {
		return c.newParent()
	}
	return c.newTask()
}

func (c *client) newTask() wire.NewTask {
	var limit int32 // no limit
	if c.percent(25) {
		limit = 1 + int32(c.rng.Intn(4))
	}
	key := c.w.name("k")
	kind, group, share, delayMS, priority := typeName(c.rng.Intn(typeCount)), "", "", (*int64)(nil), int32(c.rng.Intn(4))-1
	switch n := c.rng.Intn(100); {
	case n < 12:
		kind, group = groupedType, fmt.Sprintf("g%d", c.rng.Intn(groupCount))
	case n < 24 && c.w.limited.Load():
		kind = limitedType
	case n < 40 && c.w.fair.Load():
		kind, share, priority = sharedType, shareName(c.rng.Intn(shareCount)), 0
	case n >= 90:
		kind = pausedType
	case n >= 70 && n < 80:
		kind = actedType
	case n >= 80:
		kind, delayMS = delayedType, new(1+c.rng.Int63n(delayMSMax))
	}
	return wire.NewTask{
		DelayMS:        delayMS,
		TaskType:       kind,
		Group:          group,
		ShareKey:       share,
		Params:         json.RawMessage(fmt.Sprintf(`{"key":%q}`, key)),
		Priority:       priority,
		MaxAttempts:    &limit,
		IdempotencyKey: key,
		Backoff:        noWait,
	}
}

// noWait makes a task pending as soon as its attempt is over, as the checkers expect.
var noWait = &wire.Backoff{}

func typeName(n int) string { return fmt.Sprintf("type-%d", n) }
