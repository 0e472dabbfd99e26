package workload

import (
	"context"
	"slices"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

const (
	// batchPercent of the claims of many tasks are settled by one batch, and atomicPercent
	// of the batches are atomic.
	batchPercent  = 80
	atomicPercent = 65
	// stalePercent of the batches also settle a claim that this worker has given up; an
	// atomic one is refused because of it.
	stalePercent = 25
)

// handleMany handles the claims of one call.
func (c *client) handleMany(ctx context.Context, claims []history.Op) {
	var held []hold
	for i := range claims {
		if claims[i].Outcome == history.OK && claims[i].TaskID != 0 {
			held = append(held, c.hold(&claims[i]))
		}
	}
	if len(held) == 0 {
		return
	}
	b := wire.Batch{Atomic: c.percent(atomicPercent)}
	settle := func(h *hold, kind history.Kind) {
		b.Ops = append(b.Ops, wire.Op{Op: string(kind), ID: h.id, Fields: h.said(kind)})
	}
	if c.percent(50) && !c.w.drain.Load() {
		b.Ops = append(b.Ops, wire.Op{Op: string(history.Submit), Fields: c.newTask()})
	}
	for i := range held {
		kind := history.Complete
		if n := c.rng.Intn(100); n < 20 && !c.w.drain.Load() {
			kind = [...]history.Kind{history.Fail, history.Release, history.Extend}[n%3]
		}
		settle(&held[i], kind)
	}
	old := c.givenUp
	if old.id != 0 && c.percent(stalePercent) && !slices.ContainsFunc(held, func(h hold) bool { return h.id == old.id }) {
		settle(&old, history.Complete)
	}
	if c.percent(10) {
		waits(90, 20)(&held[0], ctx) // about when the leases end
	}
	ops := c.againAll(ctx, func() []history.Op { return c.Batch(ctx, b) })
	for i := range ops {
		switch ops[i].Kind {
		case history.Submit:
			c.submitted(ops[i])
		case history.Complete, history.Fail:
			c.settled(ops[i])
		}
	}
	for i := range held { // otherwise one by one
		if b.Atomic && ops[0].Outcome == history.Failed || c.percent(5) {
			held[i].settle(ctx, history.Complete)
		}
	}
}
