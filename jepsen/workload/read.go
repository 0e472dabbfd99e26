package workload

import (
	"context"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/recorder"
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
		from := &c.w.tasks.recent
		if c.percent(40) {
			from = &c.w.tasks.abandoned
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

// meddle does what an operator may do: it deletes what has ended, makes pending
// again what has failed or hangs, and cancels.
func (c *client) meddle(ctx context.Context) {
	for c.breathe(ctx) {
		if c.percent(20) {
			if id, ok := c.w.tasks.pick(&c.w.tasks.plain, c.rng); ok {
				c.note(c.Cancel(ctx, id))
			}
			continue
		}
		from := &c.w.tasks.ended
		if c.percent(10) {
			from = &c.w.tasks.abandoned
		}
		id, ok := c.w.tasks.pick(from, c.rng)
		if !ok {
			continue
		}
		if c.percent(35) {
			c.note(c.Delete(ctx, id))
			continue
		}
		c.note(c.Retry(ctx, id, wire.Retry{AddAttempts: int32(c.rng.Intn(2))}))
	}
}
