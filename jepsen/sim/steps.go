package sim

import (
	"fmt"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/internal/repeat"
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
		w.call(d, name, command.Delete{ID: w.anyID(d)}, true, nil)
	case stepCancel:
		w.call(d, name, command.Cancel{ID: w.anyID(d)}, true, nil)
	case stepPatch:
		w.call(d, name, w.patch(d, w.anyID(d)), false, nil)
	case stepType:
		if d.in(250) && w.knows(levelActs) {
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
	n := int64(w.ids) + 1
	if d.in(700) {
		return uint64(max(n-d.n(12), 1))
	}
	return uint64(1 + d.n(n))
}

func leaseOf(d *dice) int64 { return pick[int64](d, 0, 0, 100, 250, 999, 1999, 1999, 5000, 20_000) }

// call makes a call of a command.
func (w *world) call(d *dice, name string, c command.Command, repeatable bool, done func(r reply, unknown bool)) *call {
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
	c := command.Submit{Tasks: make([]fsm.NewTask, count)}
	for i := range c.Tasks {
		c.Tasks[i] = w.newWork(d, fmt.Sprintf("%s.%d", name, i), k != stepSubmitRaw)
	}
	w.call(d, name, c, k != stepSubmitRaw, nil)
}

// stepClaim claims, and asks again when what an earlier try claimed is over by
// the time of the answer, as the client does.
func (w *world) stepClaim(kind kind, d *dice, name string, again int) {
	k, leaseMS := w.worker(d), leaseOf(d)
	request, repeatable := fmt.Sprintf("q-%s.%d", name, again), true
	switch {
	case d.in(50): // not one of our clients
		request, repeatable = "", false
	case d.in(30): // an id used for two requests
		request = fmt.Sprintf("shared-%d", d.n(3))
	}
	var c command.Command
	if kind == stepClaimTask {
		c = command.ClaimTask{ID: w.anyID(d), WorkerID: k.name, LeaseMS: leaseMS, RequestID: request}
	} else {
		next := command.ClaimNext{WorkerID: k.name, LeaseMS: leaseMS, Limit: 1, RequestID: request}
		if d.in(250) {
			next.Limit = 2 + int32(d.n(4))
		}
		w.fillClaim(&next, d)
		c = next
	}
	var asked *call
	asked = w.call(d, name, c, repeatable, func(r reply, _ bool) {
		if r.ok && k.takeClaims(asked, leaseMS, &r.o.result, r.o.stamp) == 0 && again < 2 {
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
	h := k.hold(k.held[d.n(int64(len(k.held)))])
	var asked *call
	asked = w.call(d, name, w.settle(kind, h, d, name), true, func(r reply, unknown bool) { k.settled(asked, h, r, unknown) })
}

// retry is a retry of some task, mostly without a token.
func (w *world) retry(d *dice) command.Retry {
	c := command.Retry{ID: w.anyID(d), AddAttempts: int32(d.n(3))}
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
	h := k.hold(k.over[d.n(int64(len(k.over)))])
	w.call(d, name, w.settle(pick(d, stepComplete, stepFail, stepExtend, stepRelease), h, d, name), true, nil)
}

// stepMeddle sends what our clients never would.
func (w *world) stepMeddle(d *dice, name string) {
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
	w.call(d, name, w.settle(pick(d, stepComplete, stepFail, stepExtend, stepRelease), h, d, name), false, nil)
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
	l.propose(&proposal{c: command.Checkpoint{}, sentAt: w.now, tooNew: true, done: func(outcome) {}})
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
	node := pick(d, "n1", "n2", "n3")
	c := pick[command.Command](d, command.Checkpoint{},
		command.SetNode{Node: fsm.NodeRecord{UUID: "uuid-" + node, NodeID: node, PeerAddr: node + ":1", Version: "v1", Level: 1}},
		command.SetLevel{Level: uint32(d.n(6)), By: pick(d, "", "ann")},
		command.Tell{Kind: pick(d, event.MemberAdded, event.SnapshotTaken, event.KeysReloaded, event.BackupBegun, event.RestoreBroken), By: pick(d, "", "ann"), What: pick(d, "", "n2")},
		command.SetTrail{Bytes: pick[int64](d, 1<<20, 64<<20), AgeMS: pick[int64](d, 60_000, 10*60_000, 24*60*60_000)})
	if !w.knows(command.LevelOf(c)) {
		return
	}
	l.propose(&proposal{c: c, sentAt: w.now, done: func(outcome) {}})
}

// keepLate remembers a duty, to be proposed again when it is too late.
func (w *world) keepLate(c command.Command) {
	w.late = append(w.late, c)
	if len(w.late) > 8 {
		w.late = w.late[1:]
	}
}
