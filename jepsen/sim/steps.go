package sim

import (
	"fmt"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

func (w *world) worker(d *dice) *worker { return w.workers[d.n(int64(len(w.workers)))] }

// submit submits one or more tasks, either all with a key or none.
func (w *world) submit(d *dice, name string) {
	c := command.Submit{Tasks: make([]fsm.NewTask, pick(d, 1, 1, 1, 4))}
	keys := d.in(900)
	for i := range c.Tasks {
		c.Tasks[i] = w.newTask(d, fmt.Sprintf("%s.%d", name, i), keys)
	}
	w.call(d, name, c, keys, nil)
}

func (w *world) claimSome(d *dice, name string) { w.claim(d, name, 0) }

// claim claims, sometimes by id. Like the client, it claims again when the claims of an
// earlier try are over by the time of the answer. Some workers then settle all their
// claims; the others only do so in other steps.
func (w *world) claim(d *dice, name string, again int) {
	k, leaseMS := w.worker(d), leaseOf(d)
	request, repeatable := fmt.Sprintf("q-%s.%d", name, again), true
	switch {
	case d.in(50): // not like our clients
		request, repeatable = "", false
	case d.in(30): // an id used for two requests
		request = fmt.Sprintf("shared-%d", d.n(3))
	}
	var c command.Command = command.ClaimTask{ID: w.anyID(d), WorkerID: k.name, LeaseMS: leaseMS, RequestID: request}
	if d.in(850) {
		next := w.claimNext(d, k.name, request)
		leaseMS, c = next.LeaseMS, next
	}
	w.call(d, name, c, repeatable, func(asked *call, o outcome) {
		switch {
		case o.code != "":
		case k.takeClaims(asked, leaseMS, &o.result, o.stamp) > 0:
			if d.in(300) {
				w.work(d, k, name, 8)
			}
		case again < 2:
			w.claim(d, name, again+1)
		}
	})
}

// work lets the worker settle its claims, and those that it gets meanwhile, one after the
// other, at most times.
func (w *world) work(d *dice, k *worker, name string, times int) {
	if times == 0 || len(k.held) == 0 || d.in(40) { // it dies
		return
	}
	h := k.hold(k.held[len(k.held)-1])
	w.settleOf(k, d, fmt.Sprintf("%s.%d", name, times), h, func() { w.work(d, k, name, times-1) })
}

// settleHeld settles or extends a claim that the worker believes to hold.
func (w *world) settleHeld(d *dice, name string) {
	k := w.worker(d)
	if len(k.held) == 0 {
		w.claimSome(d, name)
		return
	}
	h := k.hold(k.held[d.n(int64(len(k.held)))])
	w.settleOf(k, d, name, h, func() {})
}

// settleOf sends a worker's command about its claim, and calls then after the answer.
func (w *world) settleOf(k *worker, d *dice, name string, h command.Hold, then func()) {
	w.call(d, name, w.settle(d, h, name), true, func(asked *call, o outcome) {
		k.settled(asked, h, o)
		if o.code != codeUnknown {
			then()
		}
	})
}

// die lets a worker die silently.
func (w *world) die(d *dice, _ string) {
	k := w.worker(d)
	k.over = lastOf(overMax, k.over, k.held...)
	k.held = nil
}

// meddle settles a claim that is over, like a worker that was suspended, or does something
// that our clients never do.
func (w *world) meddle(d *dice, name string) {
	k := w.worker(d)
	h := command.Hold{ID: w.anyID(d), WorkerID: k.name, Token: uint64(d.n(int64(w.tokens) + 2))}
	all := k.over
	if d.in(200) {
		all = append(k.held[:len(k.held):len(k.held)], k.over...)
	}
	if len(all) > 0 && d.in(800) {
		h = k.hold(all[d.n(int64(len(all)))])
	}
	switch d.n(8) {
	case 0:
		h.Token = 0
	case 1:
		h.WorkerID = w.worker(d).name
	case 2:
		h.Token += uint64(d.n(3))
	}
	w.call(d, name, w.settle(d, h, name), d.in(500), nil)
}

// retry returns a retry of some task, mostly without a token.
func (w *world) retry(d *dice) command.Command {
	c := command.Retry{ID: w.anyID(d), AddAttempts: int32(d.n(3))}
	if k := w.worker(d); d.in(300) && len(k.over) > 0 {
		cl := k.over[d.n(int64(len(k.over)))]
		c.ID, c.Token = cl.id, cl.token
	}
	return c
}

// batch sends several commands in one.
func (w *world) batch(d *dice, name string) {
	k := w.worker(d)
	c := command.Batch{Atomic: d.in(500)}
	for i := range 1 + d.n(4) {
		c.Ops = append(c.Ops, w.op(d, k, fmt.Sprintf("%s.%d", name, i)))
	}
	w.call(d, name, c, false, func(asked *call, o outcome) {
		if o.code != "" {
			return
		}
		for i := range o.result.Results {
			if one := &o.result.Results[i]; one.Code == "" {
				k.takeSettled(asked, c.Ops[i], one, o.stamp)
			}
		}
	})
}

// op draws an op of a batch. It contains nothing that is drawn when it is applied, because
// the result of a refused op is not reported.
func (w *world) op(d *dice, k *worker, name string) command.Command {
	switch d.n(8) {
	case 0, 1:
		return command.Submit{Tasks: []fsm.NewTask{w.newTask(d, name, d.in(800))}}
	case 2:
		return command.ClaimNext{WorkerID: k.name, LeaseMS: leaseOf(d), Limit: 2, RequestID: "q-" + name}
	case 3:
		return w.retry(d)
	case 4:
		return command.Cancel{ID: w.anyID(d)}
	case 5:
		return command.Delete{ID: w.anyID(d)}
	}
	h := command.Hold{ID: w.anyID(d), WorkerID: k.name, Token: uint64(d.n(int64(w.tokens) + 2))}
	if len(k.held) > 0 {
		h = k.hold(k.held[d.n(int64(len(k.held)))])
	}
	return pick[command.Command](d, command.Complete{Hold: h}, command.Extend{Hold: h}, command.Release{Hold: h}, command.Fail{Hold: h, RetryIn: true})
}

// evict logs an eviction of some or all ended tasks.
func (w *world) evict(_ *replica, d *dice) {
	if l := w.leader; l != nil && l.serving {
		w.decide(command.Evict{Bytes: pick(d, 0, d.n(l.machine.EndedBytes()+1))})
	}
}

// slot waits until about the next slot of a schedule, and then injects a fault, or sets the
// schedule again.
func (w *world) slot(d *dice, name string) {
	l := w.leader
	next, some := w.state.NextSlot()
	if l == nil || !some {
		w.call(d, name, w.schedule(d), false, nil)
		return
	}
	if wait := next - l.clock.Now().T; wait < 60_000 {
		w.say("%s's next slot is in %d ms", l.replica.name, wait)
		early := 30 * millisecond
		if d.in(500) {
			early = (w.profile.netMS + w.profile.entryMS) * millisecond
		}
		w.until(w.now + max(wait*millisecond+d.n(40*millisecond)-early, 0))
	}
	if w.failure != "" {
		return
	}
	wrong := pick(d, (*world).depose, (*world).depose, (*world).pause, (*world).jumpWalls, (*world).restart, nil, nil, nil)
	if wrong != nil {
		fault(wrong)(w, d, name)
		return
	}
	for _, v := range w.state.Schedules() {
		if v.NextRunAt == next {
			w.call(d, name, command.SetSchedule{Schedule: v.Schedule}, true, nil)
			return
		}
	}
}

// repeatOld delivers an old request again.
func (w *world) repeatOld(d *dice, _ string) {
	if len(w.sent) > 0 {
		w.arrive(w.sent[d.n(int64(len(w.sent)))])
	}
}

// proposeOld proposes an old duty again.
func (w *world) proposeOld(d *dice, _ string) {
	if len(w.late) > 0 {
		w.decide(w.late[d.n(int64(len(w.late)))])
	}
}
