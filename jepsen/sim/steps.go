package sim

import (
	"fmt"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/repeat"
	"github.com/claimq/claimq/jepsen/sim/model"
)

// do does one step.
func (w *world) do(s step) {
	d := newDice(w.seed, s.seed|1<<63)
	if s.kind >= stepIdle && w.tracing() {
		w.say("-- step %d: %v", s.number, s.kind)
	}
	w.mix(uint64(s.number), uint64(s.kind), uint64(w.now))
	name := fmt.Sprintf("c%d", s.number)
	switch s.kind {
	case stepSubmit, stepSubmitMany, stepSubmitRaw:
		w.stepSubmit(s.kind, d, name)
	case stepClaim, stepClaimTask:
		w.stepClaim(s.kind, d, name, 0)
	case stepComplete, stepFail, stepExtend, stepRelease, stepChain:
		w.stepSettle(s.kind, d, name)
	case stepLate:
		w.stepLate(d, name)
	case stepMeddle:
		w.stepMeddle(d, name)
	case stepDie:
		k := w.worker(d)
		k.over = append(k.over, k.held...)
		k.over = k.over[max(len(k.over)-8, 0):]
		k.held = nil
	case stepRetry:
		w.call(d, name, w.retry(d), false, nil)
	case stepDelete:
		w.call(d, name, &model.Command{Verb: model.VerbDelete, ID: w.anyID(d)}, true, nil)
	case stepCancel:
		w.call(d, name, &model.Command{Verb: model.VerbCancel, ID: w.anyID(d)}, true, nil)
	case stepPatch:
		w.call(d, name, w.patch(d), false, nil)
	case stepType:
		if d.in(250) && w.model.Level >= model.ActsLevel {
			w.call(d, name, w.setDefaults(d), false, nil)
			return
		}
		w.call(d, name, w.setType(d), false, nil)
	case stepSchedule, stepAct, stepSlot:
		w.sighted(s, d, name)
	case stepParent, stepWork, stepFinalize, stepOver, stepRevise:
		w.stepped(s, d, name)
	case stepBatch:
		w.stepBatch(d, name)
	case stepRead:
		k := &call{w: w, name: name, d: d, id: w.anyID(d), repeats: repeat.Call{Repeatable: true}, done: func(reply, bool) {}}
		k.begin()
	case stepRepeat:
		if len(w.sent) > 0 {
			w.arrive(w.sent[d.n(int64(len(w.sent)))])
		}
	case stepOld:
		if l := w.leader; l != nil && len(w.late) > 0 {
			l.propose(&proposal{c: w.late[d.n(int64(len(w.late)))], sentAt: w.now, done: func(outcome) {}})
		}
	default:
		w.fault(s.kind, d)
	}
}

// fault does a step that is no client's.
func (w *world) fault(k kind, d *dice) {
	r := w.replicas[d.n(replicaCount)]
	switch k {
	case stepIdle:
		w.idle(d)
	case stepDepose:
		w.depose(d)
	case stepPause:
		w.pause(d)
	case stepWall:
		w.jumpWalls(r, d)
	case stepRestart:
		w.restart(r, d)
	case stepInstall:
		w.install(d)
	case stepCapture:
		r.capture()
	case stepWrite:
		for _, r := range w.replicas {
			r.write()
		}
	case stepLag:
		r.lags = !r.lags && (w.leader == nil || w.leader.replica != r)
	case stepSkew:
		w.skew(r)
	case stepUpgrade:
		w.upgrade()
	case stepEvict:
		w.evict(d)
	default:
		w.admin(d)
	}
}

// typeName and keyName name types and keys of this world.
func (w *world) typeName(d *dice) string { return "t" + string(rune('a'+d.n(w.profile.types))) }

func (w *world) worker(d *dice) *worker { return w.workers[d.n(int64(len(w.workers)))] }

// anyID returns the id of a task that was submitted, mostly a late one, or one
// that never was.
func (w *world) anyID(d *dice) uint64 {
	n := int64(len(w.model.Tasks)) + 1
	if d.in(700) {
		return uint64(max(n-d.n(12), 1))
	}
	return uint64(1 + d.n(n))
}

func leaseOf(d *dice) int64 { return pick[int64](d, 0, 0, 100, 250, 999, 1999, 1999, 5000, 20_000) }

// call makes a call of a command.
func (w *world) call(d *dice, name string, c *model.Command, repeatable bool, done func(r reply, unknown bool)) *call {
	if done == nil {
		done = func(reply, bool) {}
	}
	k := &call{w: w, name: name, d: d, c: c, repeats: repeat.Call{Repeatable: repeatable}, done: done}
	k.begin()
	return k
}

func (w *world) stepSubmit(k kind, d *dice, name string) {
	count := int64(1)
	if k == stepSubmitMany {
		count = 2 + d.n(5)
	}
	c := &model.Command{Verb: model.VerbSubmit, Tasks: make([]model.NewTask, count)}
	for i := range c.Tasks {
		c.Tasks[i] = w.newWork(d, fmt.Sprintf("%s.%d", name, i), k != stepSubmitRaw)
	}
	w.call(d, name, c, k != stepSubmitRaw, func(r reply, _ bool) {
		if r.ok {
			w.acked.take(w, c, &r.o.result)
		}
	})
}

// stepClaim claims, and asks again when what an earlier try claimed is over by
// the time of the answer, as the client does.
func (w *world) stepClaim(kind kind, d *dice, name string, again int) {
	k := w.worker(d)
	c := &model.Command{Verb: model.VerbClaimNext, Worker: k.name, LeaseMS: leaseOf(d), Limit: 1, Request: fmt.Sprintf("q-%s.%d", name, again)}
	switch {
	case kind == stepClaimTask:
		c.Verb, c.ID, c.Limit = model.VerbClaimTask, w.anyID(d), 0
	case d.in(250):
		c.Limit = int(2 + d.n(4))
	}
	if c.Verb == model.VerbClaimNext {
		w.fillClaim(c, d)
	}
	repeatable := true
	switch {
	case d.in(50): // not one of our clients
		c.Request, repeatable = "", false
	case d.in(30): // an id used for two requests
		c.Request = fmt.Sprintf("shared-%d", d.n(3))
	}
	var asked *call
	asked = w.call(d, name, c, repeatable, func(r reply, _ bool) {
		if !r.ok {
			return
		}
		w.acked.claims++
		if live := k.takeClaims(asked, c, &r.o.result, r.o.stamp); live == 0 && again < 2 {
			w.stepClaim(kind, d, name, again+1)
		}
	})
}

// stepSettle settles or extends a claim that the worker takes for its own.
func (w *world) stepSettle(kind kind, d *dice, name string) {
	k := w.worker(d)
	if len(k.held) == 0 {
		w.stepClaim(stepClaim, d, name, 0)
		return
	}
	cl := k.held[d.n(int64(len(k.held)))]
	c := &model.Command{ID: cl.id, Worker: k.name, Token: cl.token}
	w.fillSettle(c, kind, d, name)
	var asked *call
	asked = w.call(d, name, c, true, func(r reply, unknown bool) {
		switch {
		case kind == stepExtend && r.ok:
			k.takeExtend(asked, r)
		case r.ok:
			w.acked.take(w, c, &r.o.result)
			k.forget(cl.token)
			if c.Next != nil {
				k.takeClaims(asked, c.Next, &r.o.result, r.o.stamp)
			}
		case !unknown && r.code != "":
			k.forget(cl.token)
		}
	})
}

// retry is a retry of some task, mostly without a token.
func (w *world) retry(d *dice) *model.Command {
	c := &model.Command{Verb: model.VerbRetry, ID: w.anyID(d), Add: int32(d.n(3))}
	if k := w.worker(d); d.in(300) && len(k.over) > 0 {
		cl := k.over[d.n(int64(len(k.over)))]
		c.ID, c.Token = cl.id, cl.token
	}
	return c
}

// stepLate settles a claim that is over, or not: the worker had slept.
func (w *world) stepLate(d *dice, name string) {
	k := w.worker(d)
	if len(k.over) == 0 {
		w.stepClaim(stepClaim, d, name, 0)
		return
	}
	cl := k.over[d.n(int64(len(k.over)))]
	c := &model.Command{ID: cl.id, Worker: k.name, Token: cl.token}
	w.fillSettle(c, pick(d, stepComplete, stepFail, stepExtend, stepRelease), d, name)
	w.call(d, name, c, true, func(r reply, _ bool) {
		if r.ok {
			w.acked.take(w, c, &r.o.result)
		}
	})
}

// stepMeddle sends what our clients never would.
func (w *world) stepMeddle(d *dice, name string) {
	c := &model.Command{ID: w.anyID(d), Worker: w.worker(d).name, Token: uint64(d.n(int64(w.model.Tokens) + 2))}
	if d.in(600) {
		k := w.worker(d)
		if all := append(k.held[:len(k.held):len(k.held)], k.over...); len(all) > 0 {
			cl := all[d.n(int64(len(all)))]
			c.ID, c.Token, c.Worker = cl.id, cl.token, k.name
		}
	}
	switch d.n(4) {
	case 0:
		c.Token = 0
	case 1:
		c.Worker = w.worker(d).name
	case 2:
		c.Token += uint64(d.n(3))
	}
	w.fillSettle(c, pick(d, stepComplete, stepFail, stepExtend, stepRelease), d, name)
	w.call(d, name, c, false, nil)
}

// idle lets nobody ask for anything for long.
func (w *world) idle(d *dice) {
	span := d.n(30 * second)
	if w.profile.long && d.in(300) {
		span = 11 * minute
	}
	w.until(w.now + span)
}

// depose ends the leadership in one of the ways that there are, and lets
// another begin after a while.
func (w *world) depose(d *dice) {
	l := w.leader
	if l == nil {
		return
	}
	w.leader, w.watch.leaderless = nil, w.now
	if f := l.flight; f != nil {
		if d.in(500) {
			w.lost = f // its proposers are told nothing, or that it is unknown
		}
	}
	switch d.n(3) {
	case 0:
		w.say("%s crashes", l.replica.name)
		l.end()
		l.replica.stop()
		w.after(d.n(3*second), func() {
			if l.replica.machine == nil && !l.replica.old {
				l.replica.restart(len(w.log))
			}
		})
	case 1:
		w.say("%s steps down", l.replica.name)
		l.end()
	default:
		w.say("%s is cut off and does not know it", l.replica.name)
		l.cut = true
		w.deposed = append(w.deposed, l)
		w.after(d.n(8*second), l.end)
	}
	gap := d.n(1500 * millisecond)
	if d.in(200) {
		gap = d.n(20 * second)
	}
	w.elections(gap, newDice(w.seed, d.Uint64()|1<<62))
}

// elections elects a leader after a while, and again if that does not work.
func (w *world) elections(gap int64, d *dice) {
	w.after(gap, func() {
		if w.leader != nil {
			return
		}
		first := d.n(replicaCount)
		for i := range int64(replicaCount) {
			r := w.replicas[(first+i)%replicaCount]
			if r.paused() == 0 && w.elect(r) {
				r.lags = false
				return
			}
		}
		w.elections(500*millisecond, d)
	})
}

// pause lets the leader's process stand still, without losing its leadership.
func (w *world) pause(d *dice) {
	l := w.leader
	if l == nil {
		return
	}
	span := pick(d, 50*millisecond, 700*millisecond, 2*second, 4*second)
	span = span/2 + d.n(span/2+1)
	w.say("%s stands still for %.3f s", l.replica.name, float64(span)/float64(second))
	l.replica.pausedUntil = max(l.replica.pausedUntil, w.now+span)
	w.watch.waitUntil = max(w.watch.waitUntil, l.replica.pausedUntil+latePauseAllowed)
}

// restart starts a follower's process again.
func (w *world) restart(r *replica, d *dice) {
	if w.leader != nil && w.leader.replica == r || r.machine == nil {
		return
	}
	// It may stay behind for long.
	r.restart(int(d.n(int64(len(w.log)) + 1)))
}

// install gives the follower that is the farthest behind the snapshot of one
// that is not; if it has none that is new enough, it takes one for that.
func (w *world) install(d *dice) {
	behind, from := w.replicas[0], w.replicas[d.n(replicaCount)]
	for _, r := range w.replicas {
		if r.machine != nil && (behind.machine == nil || r.applied < behind.applied) {
			behind = r
		}
	}
	if w.leader != nil && w.leader.replica == behind {
		return
	}
	if d.in(700) {
		from.capture()
		from.write()
	}
	behind.install(from)
}

// skew makes a follower an old one, and logs what that does not know.
func (w *world) skew(r *replica) {
	l := w.leader
	if l == nil || l.replica == r || !l.serving || r.machine == nil {
		return
	}
	for _, other := range w.replicas {
		if other.old {
			return
		}
	}
	r.old = true
	w.say("%s runs an older version", r.name)
	l.propose(&proposal{c: &model.Command{Verb: model.VerbCheckpoint}, sentAt: w.now, tooNew: true, done: func(outcome) {}})
}

// upgrade gives the old replica the new version.
func (w *world) upgrade() {
	for _, r := range w.replicas {
		if r.old {
			r.old = false
			w.say("%s is upgraded", r.name)
			if r.machine == nil {
				r.restart(len(w.log))
			}
		}
	}
}

// admin logs what operators and nodes do.
func (w *world) admin(d *dice) {
	l := w.leader
	if l == nil {
		return
	}
	c := pick(d, &model.Command{Verb: model.VerbCheckpoint}, &model.Command{Verb: model.VerbSetNode, Node: pick(d, "n1", "n2", "n3")}, &model.Command{Verb: model.VerbSetLevel, Level: uint32(d.n(6)), By: pick(d, "", "ann")},
		&model.Command{Verb: model.VerbTell, Told: pick(d, "member_added", "snapshot_taken", "keys_reloaded", "backup_begun", "restore_broken_off"), By: pick(d, "", "ann"), What: pick(d, "", "n2")},
		&model.Command{Verb: model.VerbSetTrail, Bounds: model.Bounds{Bytes: pick[int64](d, 1<<20, 64<<20), AgeMS: pick[int64](d, 60_000, 10*60_000, model.DayMS)}})
	if command.LevelOf(realOf(c)) > w.model.Level {
		return
	}
	l.propose(&proposal{c: c, sentAt: w.now, done: func(outcome) {}})
}

// keepLate remembers a duty, to be proposed again when it is too late.
func (w *world) keepLate(c *model.Command) {
	w.late = append(w.late, c)
	if len(w.late) > 8 {
		w.late = w.late[1:]
	}
}
