package fsm

import (
	"math/bits"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// chooser finds the tasks that one ClaimNext takes, first to last.
type chooser struct {
	m       *Machine
	order   index.Order
	any     *index.Tournament // of the types, if every type will do
	climber *climber          // the same, if they need attempts left or are taken at random
	draw    *draw             // of listed types, if tasks are taken at random
	// listed are the slots of the listed types, if one task is all there is to take:
	// to look at each once is cheapest then.
	listed []int32
	ready  []index.Rank // of all types
	// sources are what the listed types have to take, none of them empty: a
	// binary heap, the one with the first task on top.
	sources []source
}

// source is an open type, or one of its queues.
type source struct {
	*index.Ranks
	of    *typeState
	queue *index.Queue // nil: all of the type's
}

// empty reports whether nothing is left to take.
func (s *source) empty() bool {
	return s.of.standing != typeOpen || s.queue != nil && s.queue.Len() == 0
}

// newChooser returns the chooser of c. It looks at the first tasks of the types
// asked for, at nothing else. There is one at a time.
func (m *Machine) newChooser(c command.ClaimNext) chooser {
	n := chooser{m: m, order: orderOf(c)}
	switch {
	case c.Types == nil && c.SortBy != command.SortRandom && c.MoreAttempts == 0:
		n.any = &m.ready
	case c.Types == nil:
		n.climber = &climber{m: m, more: c.MoreAttempts, order: n.order, random: c.SortBy == command.SortRandom}
	case c.SortBy == command.SortRandom:
		n.draw = m.newDraw(c)
	case c.Limit == 1 && c.MoreAttempts == 0:
		n.listed, n.ready = m.locate(c.Types), m.ready.BySlot(n.order)
	default:
		clear(m.sources)
		m.sources = m.sourcesOf(c, m.sources[:0])
		n.sources = m.sources
		for at := len(n.sources)/2 - 1; at >= 0; at-- {
			n.down(at)
		}
	}
	return n
}

// orderOf returns the order that a ClaimNext asks for.
func orderOf(c command.ClaimNext) index.Order {
	switch {
	case c.SortBy == command.SortCreatedAt && c.Ascending:
		return index.Oldest
	case c.SortBy == command.SortCreatedAt:
		return index.Newest
	case c.Ascending:
		return index.Lowest
	}
	return index.Highest
}

// sourcesOf appends what the listed types have to take.
func (m *derived) sourcesOf(c command.ClaimNext, sources []source) []source {
	for _, name := range c.Types {
		ts := m.types[name]
		if ts == nil || ts.standing != typeOpen {
			continue
		}
		if c.MoreAttempts == 0 {
			sources = append(sources, source{Ranks: ts.first.Top(), of: ts})
			continue
		}
		for _, q := range ts.queuesAbove(c.MoreAttempts) {
			sources = append(sources, source{Ranks: q.First(), of: ts, queue: q})
		}
	}
	return sources
}

// first returns the id of the next task to take.
func (n *chooser) first() (id uint64, ok bool) {
	switch {
	case n.any != nil:
		if id, ok = n.any.First(n.order); ok {
			n.m.recent = n.any.Winner(n.order).Of.(*typeState)
		}
		return id, ok
	case n.climber != nil:
		return n.climber.next()
	case n.draw != nil:
		return n.draw.first()
	case n.ready != nil:
		first, of := index.NoRank, int32(0)
		for _, slot := range n.listed {
			if r := n.ready[slot]; r.Before(first) == 1 {
				first, of = r, slot
			}
		}
		if id, ok = first.Task(n.order); ok {
			n.m.recent = n.m.ready.At(of).Of.(*typeState)
		}
		return id, ok
	case len(n.sources) == 0:
		return 0, false
	}
	return n.sources[0].Ranks[n.order].Task(n.order)
}

// taken is called when the task that first named has been claimed.
func (n *chooser) taken() {
	switch {
	case n.any != nil, n.ready != nil:
		return // kept up to date by the types themselves
	case n.climber != nil:
		n.climber.taken()
		return
	case n.draw != nil:
		n.draw.taken()
		return
	}
	n.refit()
	// A type that its limits closed may have more sources than the first.
	for len(n.sources) > 0 && n.sources[0].empty() {
		n.refit()
	}
}

// refit restores the order after the first source changed.
func (n *chooser) refit() {
	if n.sources[0].empty() {
		last := len(n.sources) - 1
		n.sources[0] = n.sources[last]
		n.sources = n.sources[:last]
	}
	n.down(0)
}

func (n *chooser) down(at int) {
	for {
		child := 2*at + 1
		if child >= len(n.sources) {
			return
		}
		if right := child + 1; right < len(n.sources) && n.before(right, child) {
			child = right
		}
		if !n.before(child, at) {
			return
		}
		n.sources[at], n.sources[child] = n.sources[child], n.sources[at]
		at = child
	}
}

func (n *chooser) before(a, b int) bool {
	return n.sources[a].Ranks[n.order].Before(n.sources[b].Ranks[n.order]) == 1
}

// locate returns the slots in ready of the listed types that there are.
func (m *Machine) locate(types []string) []int32 {
	list := m.answers.commands.ListOf(types)
	if list == nil {
		return m.appendSlots(nil, types)
	}
	if !list.Located || list.AsOf != m.typesChanged {
		list.Slots = m.appendSlots(list.Slots[:0], types)
		list.Located, list.AsOf = true, m.typesChanged
	}
	return list.Slots
}

func (m *derived) appendSlots(slots []int32, types []string) []int32 {
	for _, name := range types {
		if ts := m.types[name]; ts != nil {
			slots = append(slots, ts.Slot())
		}
	}
	return slots
}

// pick draws a number below total: from a hash of the log index, the command's place
// in the entry and the pick's number. So it is the same on every node.
func (m *Machine) pick(total int) int {
	hi, _ := bits.Mul64(hashOfPick(m.Index(), m.command, m.picks), uint64(total))
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
