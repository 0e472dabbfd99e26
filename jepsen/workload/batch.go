package workload

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

const (
	// batchPercent is how many of a hundred claims of many are settled by one
	// batch, atomicPercent how many of a hundred batches are atomic.
	batchPercent  = 80
	atomicPercent = 65
	// stalePercent is how many of a hundred batches settle a claim, too, that this
	// worker has given up: an atomic one is refused for it.
	stalePercent = 25
)

// handleMany is what a worker does with the claims that one call got.
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
		s := h.by
		switch kind {
		case history.Complete:
			s.Result = json.RawMessage(fmt.Sprintf(`{"token":%d}`, s.ClaimToken))
		case history.Fail:
			s.Error = "it went wrong"
		}
		b.Ops = append(b.Ops, wire.Op{Op: string(kind), ID: h.id, Fields: s})
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
	if old := c.givenUp; old.id != 0 && c.percent(stalePercent) && !has(held, old.id) {
		settle(&old, history.Complete)
	}
	if c.percent(10) { // about when the leases end
		held[0].wait(ctx, held[0].lease*9/10, held[0].lease/5)
	}
	var ops []history.Op
	first := c.again(ctx, func() history.Op {
		ops = c.Batch(ctx, b)
		return ops[0]
	})
	refused := b.Atomic && first.Outcome == history.Failed
	for i := range ops {
		switch ops[i].Kind {
		case history.Submit:
			c.submitted(ops[i])
		case history.Complete, history.Fail:
			held[0].settled(ops[i])
		}
	}
	for i := range held { // each by itself, then
		if refused || c.percent(5) {
			held[i].settle(ctx, history.Complete)
		}
	}
}

// has reports whether one of the holds is of the task.
func has(held []hold, id uint64) bool {
	for i := range held {
		if held[i].id == id {
			return true
		}
	}
	return false
}
