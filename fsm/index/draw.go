package index

import (
	"math/bits"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// draw finds tasks of listed types for one random claim. Each is the k-th of all
// candidates, ordered by type, share key, attempts left and id.
type draw struct {
	dice   *Dice
	queues []*queue
	types  []*Type // types[i] is the type of queues[i]
	lens   []int   // tasks of queues[i] that can be taken
	// counts is a Fenwick tree over lens: element i, counted from 1, is the sum of the queues
	// (i - lowest bit of i, i].
	counts []int
	total  int
	at     int // the queue of the task from first
}

// newDraw returns the draw for c.
func (s *Types) newDraw(c command.ClaimNext, dice *Dice) *draw {
	d := &draw{dice: dice}
	for _, name := range c.Types {
		ts := s.byName[name]
		if ts == nil || ts.standing != open {
			continue
		}
		for _, q := range ts.queuesAbove(c.MoreAttempts) {
			d.queues, d.types = append(d.queues, q), append(d.types, ts)
		}
	}
	d.lens, d.counts = make([]int, len(d.queues)), make([]int, len(d.queues)+1)
	for i, q := range d.queues {
		d.change(i, q.len())
	}
	return d
}

// change adds n to the tasks of a queue that can be taken.
func (d *draw) change(at, n int) {
	d.total += n
	d.lens[at] += n
	for i := at + 1; i < len(d.counts); i += i & -i {
		d.counts[i] += n
	}
}

// first returns the id of the next task to claim.
func (d *draw) first() (id uint64, ok bool) {
	if d.total == 0 {
		return 0, false
	}
	k := d.dice.pick(d.total)
	d.at = 0
	for step := 1 << bits.Len(uint(len(d.queues))); step > 0; step >>= 1 {
		if next := d.at + step; next < len(d.counts) && d.counts[next] <= k {
			d.at, k = next, k-d.counts[next]
		}
	}
	return d.queues[d.at].at(k), true
}

// taken must be called when the task from first has been claimed.
func (d *draw) taken() {
	d.dice.picks++
	ts := d.types[d.at]
	of := d.queues[d.at].of
	d.change(d.at, -1)
	if ts.standing == open && !of.closed {
		return
	}
	// The type or the share has reached its limits, so remove all its queues.
	closed := func(at int) bool {
		return d.types[at] == ts && (ts.standing != open || d.queues[at].of == of)
	}
	for at := d.at; at >= 0 && closed(at); at-- {
		d.change(at, -d.lens[at])
	}
	for at := d.at + 1; at < len(d.types) && closed(at); at++ {
		d.change(at, -d.lens[at])
	}
}

// Dice decides which tasks a random claim takes. It is deterministic, so that every node
// takes the same tasks when it applies the entry.
type Dice struct {
	Index uint64 // of the log entry
	Place int    // of the command in the entry
	picks int    // random tasks that the command has taken
}

// pick returns a number below total. It comes from a hash of the log index, the command's
// place in the entry and the number of earlier picks.
func (d *Dice) pick(total int) int {
	hi, _ := bits.Mul64(hashOfPick(d.Index, d.Place, d.picks), uint64(total))
	return int(hi)
}

// hashOfPick returns the hash behind a pick. It decides the state, so it must never change.
func hashOfPick(index uint64, place, pick int) uint64 {
	return uint64(record.HashStart.Number(index).Number(uint64(place)).Number(uint64(pick)).Mixed())
}
