package fsm

import (
	"math/bits"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// pick draws a number below total: from a hash of the log index, the command's place
// in the entry and the pick's number. So it is the same on every node.
func (m *Machine) pick(total int) int {
	hi, _ := bits.Mul64(hashOfPick(m.header.Index, m.command, m.picks), uint64(total))
	return int(hi)
}

// climber finds the tasks that one claim of any type takes that wants attempts left, or
// takes them at random. Then each is the k-th of all that it may take, by attempts left,
// type and id.
type climber struct {
	m      *Machine
	more   int32
	order  index.Order
	random bool
}

// next returns the id of the next task to take.
func (c *climber) next() (id uint64, ok bool) {
	c.m.climb()
	if !c.random {
		id, rung := c.m.ladder.First(c.more, c.order)
		if rung != nil {
			c.m.recent = rung.Of.(*typeState)
		}
		return id, rung != nil
	}
	total := c.m.ladder.Count(c.more)
	if total == 0 {
		return 0, false
	}
	rung, k := c.m.ladder.At(c.more, c.m.pick(total))
	ts := rung.Of.(*typeState)
	c.m.recent = ts
	at, _ := ts.findQueue(rung.Left)
	return ts.queues[at].At(k), true
}

// taken is called when the task that next named has been claimed.
func (c *climber) taken() {
	if c.random {
		c.m.picks++
	}
}

// draw finds the tasks that one random claim of listed types takes: each is the k-th of
// all that it may take, by type, attempts left and id.
type draw struct {
	m      *Machine
	queues []*index.Queue
	types  []*typeState // of each queue
	// counts is a Fenwick tree over the queues' numbers of tasks: element i,
	// from 1, is the sum of the queues (i - lowest bit of i, i].
	counts []int
	total  int
	at     int // the queue of the task that first named
}

// newDraw returns the draw of c.
func (m *Machine) newDraw(c command.ClaimNext) *draw {
	d := &draw{m: m}
	for _, name := range c.Types {
		ts := m.types[name]
		if ts == nil || ts.standing != typeOpen {
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
	k := d.m.pick(d.total)
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
	d.m.picks++
	ts := d.types[d.at]
	d.change(d.at, -1)
	if ts.standing == typeOpen {
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

// hashOfPick returns the hash that a random claim goes by. It decides what is
// in the state, so it never changes.
func hashOfPick(index uint64, place, pick int) uint64 {
	return uint64(record.HashStart.Number(index).Number(uint64(place)).Number(uint64(pick)).Mixed())
}
