package sim

import (
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
)

// idle lets all clients pause for a long time.
func (w *world) idle(_ *replica, d *dice) {
	span := d.n(30 * second)
	if w.profile.long && d.in(300) {
		span = 11 * minute
	}
	w.until(w.now + span)
}

// depose ends the leadership in one of several ways, and lets another begin after a while.
func (w *world) depose(_ *replica, d *dice) {
	l := w.leader
	if l == nil {
		return
	}
	w.leader, w.watch.leaderless = nil, w.now
	if l.flight != nil && d.in(500) {
		w.lost = l.flight // its proposers get no answer, or an unknown outcome
	}
	switch d.n(3) {
	case 0:
		w.say("%s crashes", l.replica.name)
		l.end()
		l.replica.crash(d.n(3 * second))
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

// elections elects a leader after a while, and again if that fails.
func (w *world) elections(gap int64, d *dice) {
	w.after(gap, func() {
		if w.leader != nil {
			return
		}
		first := d.n(replicaCount)
		for i := range int64(replicaCount) {
			if r := w.replicas[(first+i)%replicaCount]; r.paused() == 0 {
				w.elect(r)
				return
			}
		}
		w.elections(500*millisecond, d)
	})
}

// pause pauses the leader's process without ending its leadership.
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

// restart restarts a follower's process.
func (w *world) restart(r *replica, d *dice) {
	if w.leader == nil || w.leader.replica != r {
		r.crash(d.n(second))
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
