package claimable

import (
	"math/bits"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/index"
)

// draw finds the tasks that one random claim of listed types takes: each is the k-th of
// all that it may take, by type, attempts left and id.
type draw struct {
	dice   *Dice
	queues []*index.Queue
	types  []*Type // of each queue
	// counts is a Fenwick tree over the queues' numbers of tasks: element i,
	// from 1, is the sum of the queues (i - lowest bit of i, i].
	counts []int
	total  int
	at     int // the queue of the task that first named
}

// newDraw returns the draw of c.
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
	d.counts = make([]int, len(d.queues)+1)
	for i, q := range d.queues {
		d.change(i, q.Len())
	}
	return d
}

// change adds n to the number of tasks of a queue.
func (d *draw) change(at, n int) {
	d.total += n
	for i := at + 1; i < len(d.counts); i += i & -i {
		d.counts[i] += n
	}
}

// first returns the id of the next task to take.
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
	return d.queues[d.at].At(k), true
}

// taken is called when the task that first named has been claimed.
func (d *draw) taken() {
	d.dice.picks++
	ts := d.types[d.at]
	d.change(d.at, -1)
	if ts.standing == open {
		return
	}
	// Its limits are reached: none of its queues is left.
	for at := d.at; at >= 0 && d.types[at] == ts; at-- {
		d.change(at, -d.queues[at].Len())
	}
	for at := d.at + 1; at < len(d.types) && d.types[at] == ts; at++ {
		d.change(at, -d.queues[at].Len())
	}
}
