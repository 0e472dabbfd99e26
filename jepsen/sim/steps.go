package sim

import (
	"fmt"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// typeName names a type of this world.
func (w *world) typeName(d *dice) string { return "t" + string(rune('a'+d.n(w.profile.types))) }

func (w *world) worker(d *dice) *worker { return w.workers[d.n(int64(len(w.workers)))] }

// anyID returns the id of a task that was submitted, mostly a late one, or one
// that never was.
func (w *world) anyID(d *dice) uint64 {
	n := int64(w.ids) + 1
	if d.in(700) {
		return uint64(max(n-d.n(12), 1))
	}
	return uint64(1 + d.n(n))
}

func leaseOf(d *dice) int64 { return pick[int64](d, 0, 0, 100, 250, 999, 1999, 1999, 5000, 20_000) }

// submits is a step that submits so many tasks, 0: some, all with a key or none.
func submits(count int64, keys bool) func(*world, *dice, string) {
	return func(w *world, d *dice, name string) {
		count := count
		if count == 0 {
			count = 2 + d.n(5)
		}
		c := command.Submit{Tasks: make([]fsm.NewTask, count)}
		for i := range c.Tasks {
			c.Tasks[i] = w.newWork(d, fmt.Sprintf("%s.%d", name, i), keys)
		}
		w.call(d, name, c, keys, nil)
	}
}

func (w *world) claimSome(d *dice, name string) { w.claim(false, d, name, 0) }

// claim claims by id or not, and asks again when what an earlier try claimed is over by
// the time of the answer, as the client does.
func (w *world) claim(byID bool, d *dice, name string, again int) {
	k, leaseMS := w.worker(d), leaseOf(d)
	request, repeatable := fmt.Sprintf("q-%s.%d", name, again), true
	switch {
	case d.in(50): // not one of our clients
		request, repeatable = "", false
	case d.in(30): // an id used for two requests
		request = fmt.Sprintf("shared-%d", d.n(3))
	}
	var c command.Command
	if byID {
		c = command.ClaimTask{ID: w.anyID(d), WorkerID: k.name, LeaseMS: leaseMS, RequestID: request}
	} else {
		next := command.ClaimNext{WorkerID: k.name, LeaseMS: leaseMS, Limit: 1, RequestID: request}
		if d.in(250) {
			next.Limit = 2 + int32(d.n(4))
		}
		w.fillClaim(&next, d)
		c = next
	}
	w.call(d, name, c, repeatable, func(asked *call, r reply, _ bool) {
		if r.ok && k.takeClaims(asked, leaseMS, &r.o.result, r.o.stamp) == 0 && again < 2 {
			w.claim(byID, d, name, again+1)
		}
	})
}

// settles is a step that settles or extends a claim which the worker takes for its own.
func settles(how how) func(*world, *dice, string) {
	return func(w *world, d *dice, name string) {
		k := w.worker(d)
		if len(k.held) == 0 {
			w.claimSome(d, name)
			return
		}
		h := k.hold(k.held[d.n(int64(len(k.held)))])
		w.settleOf(k, d, name, h, w.settle(how, h, d, name), nil)
	}
}

// settleOf sends what a worker says of its claim. then, if not nil, is called once it has
// an answer.
func (w *world) settleOf(k *worker, d *dice, name string, h command.Hold, c command.Command, then func()) {
	w.call(d, name, c, true, func(asked *call, r reply, unknown bool) {
		k.settled(asked, h, r, unknown)
		if !unknown && then != nil {
			then()
		}
	})
}

// die lets a worker die without a word.
func (w *world) die(d *dice, _ string) {
	k := w.worker(d)
	k.over = append(k.over, k.held...)
	k.over = k.over[max(len(k.over)-8, 0):]
	k.held = nil
}

// retry is a retry of some task, mostly without a token.
func (w *world) retry(d *dice) command.Command {
	c := command.Retry{ID: w.anyID(d), AddAttempts: int32(d.n(3))}
	if k := w.worker(d); d.in(300) && len(k.over) > 0 {
		cl := k.over[d.n(int64(len(k.over)))]
		c.ID, c.Token = cl.id, cl.token
	}
	return c
}

// settleLate settles a claim that is over, or not: the worker had slept.
func (w *world) settleLate(d *dice, name string) {
	k := w.worker(d)
	if len(k.over) == 0 {
		w.claimSome(d, name)
		return
	}
	h := k.hold(k.over[d.n(int64(len(k.over)))])
	w.call(d, name, w.settle(pick(d, complete, fail, extend, release), h, d, name), true, nil)
}

// meddle sends what our clients never would.
func (w *world) meddle(d *dice, name string) {
	h := command.Hold{ID: w.anyID(d), WorkerID: w.worker(d).name, Token: uint64(d.n(int64(w.tokens) + 2))}
	if d.in(600) {
		k := w.worker(d)
		if all := append(k.held[:len(k.held):len(k.held)], k.over...); len(all) > 0 {
			h = k.hold(all[d.n(int64(len(all)))])
		}
	}
	switch d.n(4) {
	case 0:
		h.Token = 0
	case 1:
		h.WorkerID = w.worker(d).name
	case 2:
		h.Token += uint64(d.n(3))
	}
	w.call(d, name, w.settle(pick(d, complete, fail, extend, release), h, d, name), false, nil)
}

// repeatOld delivers an old request once more.
func (w *world) repeatOld(d *dice, _ string) {
	if len(w.sent) > 0 {
		w.arrive(w.sent[d.n(int64(len(w.sent)))])
	}
}

// proposeOld proposes an old duty once more.
func (w *world) proposeOld(d *dice, _ string) {
	if l := w.leader; l != nil && len(w.late) > 0 {
		l.decide(w.late[d.n(int64(len(w.late)))], nil)
	}
}
