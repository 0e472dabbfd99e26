package sim

import (
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
)

// idle lets nobody ask for anything for long.
func (w *world) idle(_ *replica, d *dice) {
	span := d.n(30 * second)
	if w.profile.long && d.in(300) {
		span = 11 * minute
	}
	w.until(w.now + span)
}

// depose ends the leadership in one of the ways that there are, and lets
// another begin after a while.
func (w *world) depose(_ *replica, d *dice) {
	l := w.leader
	if l == nil {
		return
	}
	w.leader, w.watch.leaderless = nil, w.now
	if l.flight != nil && d.in(500) {
		w.lost = l.flight // its proposers are told nothing, or that it is unknown
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
func (w *world) pause(_ *replica, d *dice) {
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
func (w *world) install(_ *replica, d *dice) {
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
func (w *world) skew(r *replica, _ *dice) {
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
func (w *world) admin(_ *replica, d *dice) {
	node := pick(d, "n1", "n2", "n3")
	w.decide(pick[command.Command](d, command.Checkpoint{},
		command.SetNode{Node: fsm.NodeRecord{UUID: "uuid-" + node, NodeID: node, PeerAddr: node + ":1", Version: "v1", Level: 1}},
		command.SetLevel{Level: uint32(d.n(6)), By: pick(d, "", "ann")},
		command.Tell{Kind: pick(d, event.MemberAdded, event.SnapshotTaken, event.KeysReloaded, event.BackupBegun, event.RestoreBroken), By: pick(d, "", "ann"), What: pick(d, "", "n2")},
		command.SetTrail{Bytes: pick[int64](d, 1<<20, 64<<20), AgeMS: pick[int64](d, 60_000, 10*60_000, 24*60*60_000)}))
}

// lag lets a follower stop applying, or go on.
func (w *world) lag(r *replica, _ *dice) {
	r.lags = !r.lags && (w.leader == nil || w.leader.replica != r)
}

// writeAll lets all replicas write what they have captured.
func (w *world) writeAll(*replica, *dice) {
	for _, r := range w.replicas {
		r.write()
	}
}
