package sim

import (
	"fmt"
	"slices"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// parent submits one or several parents.
func (w *world) parent(d *dice, name string) {
	c := command.Submit{Tasks: make([]fsm.NewTask, pick(d, 1, 1, 1, 2))}
	for i := range c.Tasks {
		c.Tasks[i] = w.newParent(d, fmt.Sprintf("%s.%d", name, i), true)
	}
	w.call(d, name, c, true, nil)
}

// work lets a worker claim, and settle what it has, so many times: mostly it
// completes with the next claim in one.
func (w *world) work(d *dice, k *worker, name string, times int) {
	c := command.ClaimNext{WorkerID: k.name, LeaseMS: leaseOf(d), Limit: pick[int32](d, 1, 1, 2), RequestID: "q-" + name}
	w.call(d, name, c, true, func(asked *call, r reply, _ bool) {
		if r.ok {
			k.takeClaims(asked, c.LeaseMS, &r.o.result, r.o.stamp)
			w.settleAll(d, k, name, times)
		}
	})
}

// settleAll settles what the worker holds, one after the other.
func (w *world) settleAll(d *dice, k *worker, name string, times int) {
	if times == 0 || len(k.held) == 0 || d.in(40) { // it dies
		return
	}
	h := k.hold(k.held[len(k.held)-1])
	c := w.settle(pick(d, complete, chain, chain, chain, chain, chain, fail, extend, release), h, d, fmt.Sprintf("%s.%d", name, times))
	if done, ok := c.(command.Complete); ok && done.Claim != nil {
		done.Claim.Types, done.Claim.MoreAttempts = nil, 0
		if done.Claim.SortBy == command.SortRandom {
			done.Claim.SortBy = command.SortPriority
		}
	}
	w.settleOf(k, d, name, h, c, func() { w.settleAll(d, k, name, times-1) })
}

func processorOf(d *dice) string { return pick(d, "p1", "p2", "p3") }

func timeoutOf(d *dice) int64 { return pick[int64](d, 1000, 1000, 2000, 5000, 20_000) }

// finalize lets a processor do something about a parent: all that belongs to
// a finalization, or a part of it.
func (w *world) finalize(d *dice, name string) {
	id, processor := w.readyID(d), processorOf(d)
	var c command.Command
	switch d.n(12) {
	case 0:
		c = command.ExtendFinalization{ID: id, ProcessorID: processor, TimeoutMS: pick(d, 0, timeoutOf(d))}
	case 1:
		c = command.ReleaseFinalization{ID: id, ProcessorID: processor}
	case 2:
		end := newFinalize(d, id, processor, name)
		if d.in(300) {
			end.Token = uint64(d.n(int64(w.tokens) + 2))
		}
		c = end
	case 3, 4: // it dies with the claim
		c = command.ClaimFinalization{ID: id, ProcessorID: processor, TimeoutMS: timeoutOf(d)}
	case 5, 6: // several want it
		for i := range 2 + d.n(2) {
			w.process(newDice(w.seed, d.Uint64()|1<<61), id, fmt.Sprintf("p%d", 1+i), fmt.Sprintf("%s.%d", name, i))
		}
		return
	default:
		w.process(d, id, processor, name)
		return
	}
	w.call(d, name, c, true, nil)
}

func newFinalize(d *dice, id uint64, processor, name string) command.Finalize {
	c := command.Finalize{ID: id, ProcessorID: processor}
	if c.Failed = d.in(300); c.Failed {
		c.Error = "no good: " + name
	} else if d.in(500) {
		c.Result = fmt.Appendf(nil, `{"by":%q}`, name)
	}
	return c
}

// process is what a processor does that means well: it claims, extends, finalizes
// and releases.
func (w *world) process(d *dice, id uint64, processor, name string) {
	claim := command.ClaimFinalization{ID: id, ProcessorID: processor, TimeoutMS: timeoutOf(d)}
	w.call(d, name, claim, true, func(_ *call, r reply, _ bool) {
		if !r.ok || !r.o.result.Parent.Outcome.Claimed() {
			return
		}
		end := newFinalize(d, id, processor, name)
		end.Token = r.o.result.Parent.Token
		w.tokens = max(w.tokens, end.Token)
		after := d.n(300 * millisecond)
		if d.in(200) {
			after = d.n(2 * claim.TimeoutMS * millisecond) // perhaps too late
		}
		w.after(after, func() {
			if d.in(300) {
				w.call(d, name, command.ExtendFinalization{ID: id, ProcessorID: processor, TimeoutMS: pick(d, 0, timeoutOf(d))}, true, nil)
			}
			w.call(d, name, end, true, func(*call, reply, bool) {
				w.call(d, name, command.ReleaseFinalization{ID: id, ProcessorID: processor}, true, nil)
			})
		})
	})
}

// finalizationOver waits until about the time when a claim of a finalization is over, and
// lets something go wrong then, and others try to get it.
func (w *world) finalizationOver(d *dice, name string) {
	l, id, f := w.leader, uint64(0), (*fsm.Finalization)(nil)
	if id, f = w.heldFinalization(); l == nil || f == nil {
		w.finalize(d, name)
		return
	}
	wait := f.OverU() - l.clock.Now().U
	w.say("the finalization of %d is held by %s for %d ms more", id, f.ProcessorID, wait)
	early := d.n((w.profile.netMS + w.profile.entryMS + 5) * 2 * millisecond)
	if d.in(500) {
		// U stands still without a leader: the claim lasts so much longer.
		early += d.n(second)
		w.until(w.now + max(wait*millisecond-early, 0))
		if w.failure != "" {
			return
		}
		fault(pick(d, (*world).depose, (*world).depose, (*world).pause, (*world).jumpWalls, (*world).restart))(w, d, name)
		w.until(w.now + early)
	} else {
		w.until(w.now + max(wait*millisecond-early, 0))
	}
	for i := range 1 + d.n(3) {
		if w.failure == "" {
			w.process(newDice(w.seed, d.Uint64()|1<<61), id, processorOf(d), fmt.Sprintf("%s.%d", name, i))
		}
	}
}

// heldFinalization returns the newest parent whose finalization is held, nil if there
// is none.
func (w *world) heldFinalization() (id uint64, f *fsm.Finalization) {
	for _, t := range slices.Backward(w.tasks()) {
		if p := t.Opts().Parent; p != nil && p.Finalization != nil && t.Status == fsm.StatusRunning && p.Finalization.Holder(w.state.Stamp().U) != "" {
			return t.ID, p.Finalization
		}
	}
	return 0, nil
}

// revise lets an operator do something with a parent or a step.
func (w *world) revise(d *dice, name string) {
	id := w.familyID(d)
	switch d.n(9) {
	case 0, 1:
		w.call(d, name, command.Cancel{ID: id}, true, nil)
	case 2: // and thinks better of it, when the steps that were claimed may be over
		id = w.parentID(d)
		again := command.Retry{ID: id, AddAttempts: int32(d.n(2))}
		w.after(d.n(3*second), func() { w.call(d, name, again, false, nil) })
		w.call(d, name, command.Cancel{ID: id}, true, nil)
	case 3, 4, 5:
		w.call(d, name, command.Retry{ID: id, AddAttempts: int32(d.n(3))}, false, nil)
	case 6:
		w.call(d, name, command.Delete{ID: id}, true, nil)
	case 7:
		w.call(d, name, w.patch(d, id), false, nil)
	default:
		w.call(d, name, command.ClaimTask{ID: id, WorkerID: w.worker(d).name, LeaseMS: leaseOf(d), RequestID: "q-" + name}, true, nil)
	}
}
