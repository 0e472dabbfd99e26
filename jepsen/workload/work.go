package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/history"
)

const claimManyMax = 4

// work claims tasks and settles them, until Drain.
func (c *client) work() {
	ctx := context.Background() // its calls have deadlines of their own
	for {
		select {
		case <-c.w.drained:
			return
		default:
		}
		c.breathe(ctx)
		c.claim(ctx)
	}
}

// worker returns the name that the caller has as a worker.
func (c *client) worker() string { return fmt.Sprintf("w%d", c.number) }

func (c *client) newClaim() wire.Claim {
	req := wire.Claim{
		WorkerID: c.worker(), LeaseMS: leases[c.rng.Intn(len(leases))], ClaimRequestID: c.w.name("r"),
	}
	if c.w.drain.Load() {
		return req // of any type
	}
	switch n := c.rng.Intn(100); { // none = any
	case n < 10:
		req.TaskTypes = []string{groupedType}
		return c.waiting(req)
	case n < 20:
		req.TaskTypes = []string{limitedType}
		return c.waiting(req)
	case n < 30:
		req.TaskTypes = []string{pausedType}
		return c.waiting(req)
	case n < 40:
		req.TaskTypes = []string{delayedType}
		return c.waiting(req)
	case n < 48:
		req.TaskTypes = []string{actedType}
		return c.waiting(req)
	}
	for n := c.rng.Intn(3); n > 0; n-- {
		req.TaskTypes = append(req.TaskTypes, typeName((c.rng.Intn(2)+2*n)%typeCount))
	}
	if len(req.TaskTypes) == 2 && req.TaskTypes[0] == req.TaskTypes[1] {
		req.TaskTypes = req.TaskTypes[:1]
	}
	if c.percent(30) {
		req.SortBy = "created_at"
	}
	return c.waiting(req)
}

// waiting lets some claims wait for a task.
func (c *client) waiting(req wire.Claim) wire.Claim {
	if c.percent(30) {
		req.WaitMS = 1 + c.rng.Int63n(waitMSMax)
	}
	return req
}

// claim claims in one of the ways there are, and handles what it got.
func (c *client) claim(ctx context.Context) {
	req := c.newClaim()
	switch n := c.rng.Intn(100); {
	case n < 22:
		req.Limit = 1 + c.rng.Intn(claimManyMax)
		var ops []history.Op
		c.again(ctx, func() history.Op {
			ops = c.ClaimMany(ctx, req)
			return ops[0]
		})
		if c.percent(batchPercent) {
			c.handleMany(ctx, ops)
			return
		}
		for _, op := range ops {
			c.handle(ctx, op)
		}
	case n < 26 && !c.w.drain.Load():
		id, ok := c.w.tasks.pick(&c.w.tasks.recent, c.rng)
		if !ok {
			return
		}
		req.TaskTypes, req.SortBy, req.WaitMS = nil, "", 0
		c.handle(ctx, c.again(ctx, func() history.Op { return c.ClaimTask(ctx, id, req) }))
	case n < 31: // the same request from two sides at once
		var both sync.WaitGroup
		both.Go(func() { c.twin.Claim(ctx, req) })
		op := c.again(ctx, func() history.Op { return c.Claim(ctx, req) })
		both.Wait()
		c.handle(ctx, op)
	default:
		op := c.again(ctx, func() history.Op { return c.Claim(ctx, req) })
		if op.Outcome == history.OK && c.percent(4) { // it was not sure
			c.note(c.Claim(ctx, req))
		}
		c.handle(ctx, op)
	}
}

// handle is what a worker does with a claim, if it got one.
func (c *client) handle(ctx context.Context, claim history.Op) {
	if claim.Outcome != history.OK || claim.TaskID == 0 {
		return
	}
	h := c.hold(&claim)
	h.goOn()
	n := c.rng.Intn(1000)
	if c.w.drain.Load() {
		n = 999
	}
	switch {
	case n < 60:
		h.settle(ctx, history.Fail)
	case n < 110:
		h.settle(ctx, history.Release)
		c.givenUp = h
	case n < 200: // it takes longer
		h.extend(ctx)
		h.wait(ctx, 0, 20*time.Millisecond)
		h.settle(ctx, history.Complete)
	case n < 230: // it extends about when the lease ends
		h.wait(ctx, h.lease*95/100, h.lease/10)
		h.extend(ctx)
		h.wait(ctx, 0, h.lease)
		h.settle(ctx, history.Complete)
	case n < 250: // much too late
		h.wait(ctx, h.lease, 2*h.lease)
		h.settle(ctx, history.Complete)
	case n < 275: // about when the lease ends
		h.wait(ctx, h.lease*9/10, h.lease/5)
		h.settle(ctx, history.Complete)
	case n < 300: // it dies
		c.w.tasks.add(&c.w.tasks.abandoned, h.id)
	case n < 330: // it was not sure
		h.settle(ctx, history.Complete)
		h.settle(ctx, history.Complete)
	case n < 345: // it mixes them up
		h.settle(ctx, history.Complete)
		h.settle(ctx, history.Fail)
	case n < 370: // it gets its task again, and takes the old token for the new
		h.wait(ctx, h.lease, time.Second)
		again := c.newClaim()
		again.TaskTypes, again.SortBy, again.WaitMS = nil, "", 0
		second := c.again(ctx, func() history.Op { return c.ClaimTask(ctx, h.id, again) })
		h.settle(ctx, history.Complete)
		if second.Outcome == history.OK && second.Token != h.by.ClaimToken {
			h.by.ClaimToken = second.Token
			h.goOn()
			h.settle(ctx, history.Complete)
		}
	case n < 500:
		h.wait(ctx, 0, 100*time.Millisecond)
		h.settle(ctx, history.Complete)
	default:
		h.settle(ctx, history.Complete)
	}
	c.handle(ctx, h.next)
}

// hold is a claim in its worker's hands.
type hold struct {
	*client
	id    uint64
	lease time.Duration
	by    wire.Settle
	// follow and ask are what every complete of the claim submits and claims, so
	// that a repeat is one.
	follow []wire.NewTask
	ask    *wire.Claim
	next   history.Op // the claim that a complete got
}

const (
	// followPercent is how many of a hundred completes submit tasks that follow,
	// followMax how many at most; nextPercent how many of a hundred claim the next.
	followPercent = 12
	followMax     = 3
	nextPercent   = 15
)

// hold returns the claim that the op got.
func (c *client) hold(claim *history.Op) hold {
	return hold{
		client: c, id: claim.TaskID, lease: time.Duration(claim.LeaseMS) * time.Millisecond,
		by: wire.Settle{WorkerID: claim.Worker, ClaimToken: claim.Token},
	}
}

// goOn chooses what the completes of the claim submit and claim.
func (h *hold) goOn() {
	h.follow, h.ask = nil, nil
	if h.percent(followPercent) && !h.w.drain.Load() {
		for range 1 + h.rng.Intn(followMax) {
			h.follow = append(h.follow, h.newTask())
		}
	}
	if h.percent(nextPercent) {
		req := h.newClaim()
		req.WaitMS = 0
		h.ask = &req
	}
}

// wait waits for at least least, and up to more longer.
func (h *hold) wait(ctx context.Context, least, more time.Duration) {
	pause.For(ctx, least+time.Duration(h.rng.Int63n(int64(more)+1)))
}

func (h *hold) extend(ctx context.Context) {
	s := h.by
	s.LeaseMS = leases[h.rng.Intn(len(leases))]
	h.again(ctx, func() history.Op { return h.Settle(ctx, history.Extend, h.id, s) })
}

func (h *hold) settle(ctx context.Context, kind history.Kind) {
	s := h.by
	if kind == history.Complete {
		h.settled(h.complete(ctx))
		return
	}
	switch {
	case kind == history.Fail:
		s.Error = "it went wrong"
	case kind == history.Release && h.percent(30):
		s.DelayMS = 1 + h.rng.Int63n(delayMSMax)
	}
	h.settled(h.again(ctx, func() history.Op { return h.Settle(ctx, kind, h.id, s) }))
}

// complete completes the task, and takes what follows.
func (h *hold) complete(ctx context.Context) history.Op {
	s := h.by
	s.Result = json.RawMessage(fmt.Sprintf(`{"token":%d}`, s.ClaimToken))
	s.Submit, s.Claim = h.follow, h.ask
	var ops []history.Op
	op := h.again(ctx, func() history.Op {
		ops = h.Complete(ctx, h.id, s)
		return ops[0]
	})
	for _, part := range ops[1:] {
		if part.Kind == history.Submit {
			h.submitted(part)
		} else if h.next.TaskID == 0 {
			h.next = part
		}
	}
	return op
}

// settled tells the others of what a settling call did.
func (h *hold) settled(op history.Op) {
	if op.Outcome == history.OK && op.Kind != history.Release && !op.Repeated {
		h.w.open.Add(-1) // or not, if it is pending again: count puts that right
		h.w.tasks.add(&h.w.tasks.ended, op.TaskID)
		if op.Seen != nil && op.Seen.ParentID != 0 && h.percent(30) {
			h.w.tasks.add(&h.w.tasks.ended, op.Seen.ParentID) // or will have
		}
	}
}
