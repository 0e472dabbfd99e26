package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/history"
)

const claimManyMax = 4

// worker returns the caller's name as a worker.
func (c *client) worker() string { return fmt.Sprintf("w%d", c.number) }

// heldTypes are the types whose tasks cannot be claimed at once, or not all at the same
// time.
var heldTypes = []string{groupedType, limitedType, sharedType, pausedType, delayedType, actedType}

func (c *client) newClaim() wire.Claim {
	req := wire.Claim{
		WorkerID: c.worker(), LeaseMS: leases[c.rng.Intn(len(leases))],
	}
	if !c.anonymous {
		req.ClaimRequestID = c.w.name("r")
	}
	if c.w.drain.Load() {
		return req // of any type
	}
	if held := c.rng.Intn(12); held < len(heldTypes) {
		req.TaskTypes = heldTypes[held : held+1]
	} else {
		for _, n := range c.rng.Perm(typeCount)[:c.rng.Intn(typeCount)] { // none = any
			req.TaskTypes = append(req.TaskTypes, typeName(n))
		}
		if c.percent(30) {
			req.SortBy = "created_at"
		}
	}
	if c.percent(30) {
		req.WaitMS = 1 + c.rng.Int63n(waitMSMax)
	}
	return req
}

// claim claims in one of several ways, and handles the result.
func (c *client) claim(ctx context.Context) {
	req := c.newClaim()
	switch n := c.rng.Intn(100); {
	case n < 22:
		req.Limit = 1 + c.rng.Intn(claimManyMax)
		ops := c.againAll(ctx, func() []history.Op { return c.ClaimMany(ctx, req) })
		if c.percent(batchPercent) {
			c.handleMany(ctx, ops)
			return
		}
		for _, op := range ops {
			c.handle(ctx, op)
		}
	case n < 26 && !c.w.drain.Load():
		id, ok := c.w.tasks.pick(recent, c.rng)
		if !ok {
			return
		}
		req.TaskTypes, req.SortBy, req.WaitMS = nil, "", 0
		var op history.Op
		c.hedged(c.hedges, func() { op = c.again(ctx, func() history.Op { return c.ClaimTask(ctx, id, req) }) }, func() { c.twin.ClaimTask(ctx, id, req) })
		c.handle(ctx, op)
	default:
		hedges := c.hedges
		if n < 31 { // our clients do it sometimes
			hedges = 100
		}
		var op history.Op
		c.hedged(hedges, func() { op = c.again(ctx, func() history.Op { return c.Claim(ctx, req) }) }, func() { c.twin.Claim(ctx, req) })
		if op.Outcome == history.OK && c.percent(4) { // as if it did not know the outcome
			c.note(c.Claim(ctx, req))
		}
		c.handle(ctx, op)
	}
}

// act is an action of a worker with its claim.
type act func(h *hold, ctx context.Context)

// waits returns an act that waits for a percentage of the lease, and up to more longer.
func waits(least, more time.Duration) act {
	return func(h *hold, ctx context.Context) { pause.For(ctx, h.lease*least/100+h.upTo(h.lease*more/100)) }
}

func naps(most time.Duration) act {
	return func(h *hold, ctx context.Context) { pause.For(ctx, h.upTo(most)) }
}

func settles(kind history.Kind) act {
	return func(h *hold, ctx context.Context) { h.settle(ctx, kind) }
}

var (
	completes = settles(history.Complete)
	fails     = settles(history.Fail)
	releases  = settles(history.Release)
	extends   = (*hold).extend
)

// courses lists what a worker does with its claims, with the frequency in a thousand. All
// others it completes at once.
var courses = []struct {
	perMille int
	acts     []act
}{
	{60, []act{fails}},
	{50, []act{releases, (*hold).giveUp}},
	{90, []act{extends, naps(20 * time.Millisecond), completes}},  // a longer task
	{30, []act{waits(95, 10), extends, waits(0, 100), completes}}, // it extends near the end of the lease
	{20, []act{waits(100, 200), completes}},                       // much too late
	{25, []act{waits(90, 20), completes}},                         // near the end of the lease
	{25, []act{(*hold).die}},
	{30, []act{completes, completes}}, // as if it did not know the outcome
	{60, []act{(*hold).addSteps, completes}},
	{15, []act{completes, fails}}, // it mixes them up
	{25, []act{waits(100, 0), naps(time.Second), (*hold).confuse}},
	{130, []act{naps(100 * time.Millisecond), completes}},
}

// handle handles a claim, if there is one.
func (c *client) handle(ctx context.Context, claim history.Op) {
	if claim.Outcome != history.OK || claim.TaskID == 0 {
		return
	}
	h := c.hold(&claim)
	h.goOn()
	acts, n := []act{completes}, c.rng.Intn(1000)
	for i := 0; i < len(courses) && n >= 0 && !c.w.drain.Load(); i++ {
		if n -= courses[i].perMille; n < 0 {
			acts = courses[i].acts
		}
	}
	for _, do := range acts {
		do(&h, ctx)
	}
	c.handle(ctx, h.next)
}

// giveUp remembers the claim, to settle it again later.
func (h *hold) giveUp(context.Context) {
	h.givenUp = *h
	h.givenUp.follow, h.givenUp.ask = nil, nil
}

// die ends silently.
func (h *hold) die(context.Context) { h.w.tasks.add(abandoned, h.id) }

// addSteps adds steps to the parent of a claimed step: always the same, so that each attempt repeats those before it.
func (h *hold) addSteps(ctx context.Context) {
	if h.parent == 0 {
		return
	}
	first := fmt.Sprintf("of-%d", h.id)
	op := h.callAgain(ctx, history.Op{
		Kind: history.AddSteps, TaskID: h.id, Worker: h.by.WorkerID, Token: h.by.ClaimToken, TaskType: typeName(int(h.id) % typeCount), Params: fmt.Sprintf(`{"of":%d}`, h.id),
		Plan: &history.Plan{Steps: []history.Step{{Name: first}, {Name: first + "-then", DependsOn: []int{0}, MaxAttempts: 1 + int32(h.id%3)}}},
	})
	if op.Outcome != history.OK || op.Repeated {
		return
	}
	h.w.open.Add(int64(len(op.Added.IDs)))
	for _, id := range op.Added.IDs {
		h.w.tasks.add(recent, id)
	}
}

// confuse claims the task again, and uses the old token instead of the new one.
func (h *hold) confuse(ctx context.Context) {
	req := h.newClaim()
	req.TaskTypes, req.SortBy, req.WaitMS = nil, "", 0
	second := h.again(ctx, func() history.Op { return h.ClaimTask(ctx, h.id, req) })
	h.settle(ctx, history.Complete)
	if second.Outcome == history.OK && second.Token != h.by.ClaimToken {
		h.by.ClaimToken = second.Token
		h.goOn()
		h.settle(ctx, history.Complete)
	}
}

// hold is a claim of its worker.
type hold struct {
	*client
	id     uint64
	parent uint64 // of a step
	lease  time.Duration
	by     wire.Settle
	// follow and ask are submitted and claimed by every complete of the claim, so that a
	// second one is a repeat.
	follow []wire.NewTask
	ask    *wire.Claim
	next   history.Op // the claim that came with a complete
}

const (
	// followPercent of the completes submit follow-up tasks, at most followMax; nextPercent
	// claim the next task.
	followPercent = 12
	followMax     = 3
	nextPercent   = 15
)

// hold returns the claim in the op.
func (c *client) hold(claim *history.Op) hold {
	parent := uint64(0)
	if claim.Seen != nil {
		parent = claim.Seen.ParentID
	}
	return hold{
		client: c, id: claim.TaskID, parent: parent, lease: time.Duration(claim.LeaseMS) * time.Millisecond,
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

func (h *hold) extend(ctx context.Context) {
	s := h.by
	s.LeaseMS = leases[h.rng.Intn(len(leases))]
	h.againAll(ctx, func() []history.Op { return h.Settle(ctx, history.Extend, h.id, s) })
}

// said returns the settle for a call about the claim.
func (h *hold) said(kind history.Kind) wire.Settle {
	s := h.by
	switch {
	case kind == history.Complete:
		s.Result = json.RawMessage(fmt.Sprintf(`{"token":%d}`, s.ClaimToken))
		s.Submit, s.Claim = h.follow, h.ask
	case kind == history.Fail:
		s.Error = "it went wrong"
	case kind == history.Release && h.percent(30):
		s.DelayMS = 1 + h.rng.Int63n(delayMSMax)
	}
	return s
}

// settle settles the claim, and handles the next one.
func (h *hold) settle(ctx context.Context, kind history.Kind) {
	s := h.said(kind)
	var ops []history.Op
	h.hedged(h.hedges, func() { ops = h.againAll(ctx, func() []history.Op { return h.Settle(ctx, kind, h.id, s) }) },
		func() { h.twin.Settle(ctx, kind, h.id, s) })
	for _, part := range ops[1:] {
		if part.Kind == history.Submit {
			h.submitted(part)
		} else if h.next.TaskID == 0 {
			h.next = part
		}
	}
	h.settled(ops[0])
}

// settled tells the others about the result of a settling call.
func (c *client) settled(op history.Op) {
	if op.Outcome != history.OK || op.Kind == history.Release || op.Repeated {
		return
	}
	tasks := &c.w.tasks
	c.w.open.Add(-1) // or not, if it is pending again: count corrects that
	tasks.add(ended, op.TaskID)
	if op.Seen != nil && op.Seen.ParentID != 0 && c.percent(30) {
		tasks.add(ended, op.Seen.ParentID) // or will soon end
	}
}
