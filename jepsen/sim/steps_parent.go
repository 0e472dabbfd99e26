package sim

import (
	"fmt"

	"github.com/claimq/claimq/jepsen/sim/model"
)

// stepped does a step that only feature level 4 knows; below it nothing.
func (w *world) stepped(s step, d *dice, name string) {
	if !w.parentsKnown() {
		return
	}
	switch s.kind {
	case stepParent:
		w.stepParent(d, name)
	case stepWork:
		w.work(d, w.worker(d), name, 2+int(d.n(10)))
	case stepFinalize:
		w.stepFinalize(d, name)
	case stepOver:
		w.stepOver(d, name)
	default:
		w.revise(d, name)
	}
}

// stepParent submits one or several parents.
func (w *world) stepParent(d *dice, name string) {
	c := &model.Command{Verb: model.VerbSubmit, Tasks: make([]model.NewTask, pick(d, 1, 1, 1, 2))}
	for i := range c.Tasks {
		c.Tasks[i] = w.newParent(d, fmt.Sprintf("%s.%d", name, i), true)
	}
	w.call(d, name, c, true, func(r reply, _ bool) {
		if r.ok {
			w.acked.take(w, c, &r.o.result)
		}
	})
}

// work lets a worker claim, and settle what it has, so many times: mostly it
// completes with the next claim in one.
func (w *world) work(d *dice, k *worker, name string, times int) {
	c := &model.Command{Verb: model.VerbClaimNext, Worker: k.name, LeaseMS: leaseOf(d), Limit: pick(d, 1, 1, 2), Request: "q-" + name}
	var asked *call
	asked = w.call(d, name, c, true, func(r reply, _ bool) {
		if r.ok {
			w.acked.claims++
			k.takeClaims(asked, c, &r.o.result, r.o.stamp)
			w.settleAll(d, k, name, times)
		}
	})
}

// settleAll settles what the worker holds, one after the other.
func (w *world) settleAll(d *dice, k *worker, name string, times int) {
	if times == 0 || len(k.held) == 0 || d.in(40) { // it dies
		return
	}
	cl := k.held[len(k.held)-1]
	kind := pick(d, stepComplete, stepChain, stepChain, stepChain, stepChain, stepChain, stepFail, stepExtend, stepRelease)
	c := &model.Command{ID: cl.id, Worker: k.name, Token: cl.token}
	w.fillSettle(c, kind, d, fmt.Sprintf("%s.%d", name, times))
	if c.Next != nil {
		c.Next.Types, c.Next.Random, c.Next.More = nil, false, 0
	}
	var asked *call
	asked = w.call(d, name, c, true, func(r reply, unknown bool) {
		switch {
		case unknown:
			return
		case kind == stepExtend && r.ok:
			k.takeExtend(asked, r)
		case r.ok:
			w.acked.take(w, c, &r.o.result)
			k.forget(cl.token)
			if c.Next != nil {
				k.takeClaims(asked, c.Next, &r.o.result, r.o.stamp)
			}
		default:
			k.forget(cl.token)
		}
		w.settleAll(d, k, name, times-1)
	})
}

func processorOf(d *dice) string { return pick(d, "p1", "p2", "p3") }

func timeoutOf(d *dice) int64 { return pick[int64](d, 1000, 1000, 2000, 5000, 20_000) }

// stepFinalize lets a processor do something about a parent: all that belongs to
// a finalization, or a part of it.
func (w *world) stepFinalize(d *dice, name string) {
	c := &model.Command{ID: w.readyID(d), Worker: processorOf(d)}
	switch d.n(12) {
	case 0:
		c.Verb, c.TimeoutMS = model.VerbExtendEnd, pick(d, 0, timeoutOf(d))
	case 1:
		c.Verb = model.VerbReleaseEnd
	case 2:
		w.fillFinalize(c, d, name)
		if d.in(300) {
			c.Token = uint64(d.n(int64(w.model.Tokens) + 2))
		}
	case 3, 4: // it dies with the claim
		c.Verb, c.TimeoutMS = model.VerbClaimEnd, timeoutOf(d)
	case 5, 6: // several want it
		for i := range 2 + d.n(2) {
			w.process(newDice(w.seed, d.Uint64()|1<<61), c.ID, fmt.Sprintf("p%d", 1+i), fmt.Sprintf("%s.%d", name, i))
		}
		return
	default:
		w.process(d, c.ID, c.Worker, name)
		return
	}
	w.call(d, name, c, true, nil)
}

func (w *world) fillFinalize(c *model.Command, d *dice, name string) {
	c.Verb = model.VerbFinalize
	if c.Failed = d.in(300); c.Failed {
		c.Reason = "no good: " + name
		return
	}
	c.Result = pick(d, "", fmt.Sprintf(`{"by":%q}`, name))
}

// process is what a processor does that means well: it claims, extends, finalizes
// and releases.
func (w *world) process(d *dice, id uint64, processor, name string) {
	claim := &model.Command{Verb: model.VerbClaimEnd, ID: id, Worker: processor, TimeoutMS: timeoutOf(d)}
	w.call(d, name, claim, true, func(r reply, _ bool) {
		if !r.ok || !r.o.result.Parent.Outcome.Claimed() {
			return
		}
		end := &model.Command{ID: id, Worker: processor, Token: r.o.result.Parent.Token}
		w.fillFinalize(end, d, name)
		after := d.n(300 * millisecond)
		if d.in(200) {
			after = d.n(2 * claim.TimeoutMS * millisecond) // perhaps too late
		}
		w.after(after, func() {
			if d.in(300) {
				w.call(d, name, &model.Command{Verb: model.VerbExtendEnd, ID: id, Worker: processor, TimeoutMS: pick(d, 0, timeoutOf(d))}, true, nil)
			}
			w.call(d, name, end, true, func(reply, bool) {
				w.call(d, name, &model.Command{Verb: model.VerbReleaseEnd, ID: id, Worker: processor}, true, nil)
			})
		})
	})
}

// stepOver waits until about the time when a claim of a finalization is over, and
// lets something go wrong then, and others try to get it.
func (w *world) stepOver(d *dice, name string) {
	l, t := w.leader, w.heldFinalization()
	if l == nil || t == nil {
		w.stepFinalize(d, name)
		return
	}
	wait := t.Final.Over() - l.clock.Now().U
	w.say("the finalization of %d is held by %s for %d ms more", t.ID, t.Final.Processor, wait)
	early := d.n((w.profile.netMS + w.profile.entryMS + 5) * 2 * millisecond)
	if d.in(500) {
		// U stands still without a leader: the claim lasts so much longer.
		early += d.n(second)
		w.until(w.now + max(wait*millisecond-early, 0))
		if w.failure != "" {
			return
		}
		w.fault(pick(d, stepDepose, stepDepose, stepPause, stepWall, stepRestart), d)
		w.until(w.now + early)
	} else {
		w.until(w.now + max(wait*millisecond-early, 0))
	}
	for i := range 1 + d.n(3) {
		if w.failure == "" {
			w.process(newDice(w.seed, d.Uint64()|1<<61), t.ID, processorOf(d), fmt.Sprintf("%s.%d", name, i))
		}
	}
}

// heldFinalization returns a parent whose finalization is held, nil if there is
// none.
func (w *world) heldFinalization() *model.Task {
	for i := len(w.model.Tasks) - 1; i >= 0; i-- {
		if t := w.model.Tasks[i]; t != nil && w.model.HeldBy(t) != "" {
			return t
		}
	}
	return nil
}

// revise lets an operator do something with a parent or a step.
func (w *world) revise(d *dice, name string) {
	c := &model.Command{ID: w.familyID(d)}
	switch d.n(9) {
	case 0, 1:
		c.Verb = model.VerbCancel
	case 2: // and thinks better of it, when the steps that were claimed may be over
		c = &model.Command{Verb: model.VerbCancel, ID: w.parentID(d)}
		again := &model.Command{Verb: model.VerbRetry, ID: c.ID, Add: int32(d.n(2))}
		w.after(d.n(3*second), func() { w.call(d, name, again, false, nil) })
	case 3, 4, 5:
		c.Verb, c.Add = model.VerbRetry, int32(d.n(3))
	case 6:
		c.Verb = model.VerbDelete
	case 7:
		c = w.patch(d)
		c.ID = w.familyID(d)
	default:
		c = &model.Command{Verb: model.VerbClaimTask, ID: c.ID, Worker: w.worker(d).name, LeaseMS: leaseOf(d), Request: "q-" + name}
	}
	w.call(d, name, c, c.Verb != model.VerbRetry && c.Verb != model.VerbPatch, nil)
}
