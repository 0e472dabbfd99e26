package index

import "slices"

// ranked is a member of a ranking. It embeds its slot.
type ranked interface {
	contender
	// rank returns the rank of its first task in the order.
	rank(o order) rank
}

// ranking finds which of its members has the first task, as a tournament does, but lazily: it only
// notes a change, and asks for ranks and plays when an order is asked for. Most changes concern
// orders that no claim asks for, or the same member again.
type ranking struct {
	all    []ranked
	orders [orders]played
}

// played is a ranking in one order.
type played struct {
	rounds  [][]rank // as in a tournament
	changed []slot   // since it was played
	stale   bool     // too many have changed: play all
}

// changedShare limits the noted changes to one in this many. Beyond that, playing everything
// costs no more than playing each.
const changedShare = 16

// newRanking returns an empty ranking. An order takes memory only once it is asked for.
func newRanking() ranking {
	var r ranking
	for o := range orders {
		r.orders[o].stale = true
	}
	return r
}

// add adds a member that is not in the ranking.
func (r *ranking) add(c ranked) {
	*c.seat() = slot(len(r.all))
	r.all = append(r.all, c)
	for o := range orders {
		if p := &r.orders[o]; !p.stale && len(r.all) > len(p.rounds[0]) {
			p.grow()
		}
	}
	r.change(*c.seat())
}

// change notes that the first task of the member at the slot may have changed.
func (r *ranking) change(at slot) {
	for o := range orders {
		p := &r.orders[o]
		switch n := len(p.changed); {
		case p.stale || n > 0 && p.changed[n-1] == at:
		case n > len(r.all)/changedShare:
			p.stale, p.changed = true, p.changed[:0]
		default:
			p.changed = append(p.changed, at)
		}
	}
}

// remove removes a member. The last one takes over its slot.
func (r *ranking) remove(c ranked) {
	at, end := *c.seat(), slot(len(r.all)-1)
	last := r.all[end]
	*last.seat() = at
	r.all[at] = last
	r.all[end] = nil
	r.all = r.all[:end]
	r.change(at)
	r.change(end)
	for o := range orders {
		if p := &r.orders[o]; len(p.rounds) > 0 && len(p.rounds[0]) > max(tournamentKept, roundOf*len(r.all)) {
			*p = played{stale: true}
		}
	}
}

// rank returns the rank of the first task in the order.
func (r *ranking) rank(o order) rank {
	switch len(r.all) {
	case 0:
		return noRank
	case 1:
		return r.all[0].rank(o)
	}
	p := r.play(o)
	last := p.rounds[len(p.rounds)-1]
	return last[0].or(last[1]).or(last[2].or(last[3]))
}

// first returns the id of the first task; ok is false if the ranking is empty.
func (r *ranking) first(o order) (id uint64, ok bool) { return r.rank(o).task(o) }

// winner returns the member that has the first task. One must have a task.
func (r *ranking) winner(o order) ranked {
	first, at := r.rank(o), 0
	if len(r.all) == 1 {
		return r.all[0]
	}
	for _, round := range slices.Backward(r.orders[o].rounds) {
		at *= roundOf
		at += slices.Index(round[at:at+roundOf], first)
	}
	return r.all[at]
}

// bySlot returns the ranks in the order, by slot. There must be several.
func (r *ranking) bySlot(o order) []rank { return r.play(o).rounds[0] }

// play brings the order up to date.
func (r *ranking) play(o order) *played {
	p := &r.orders[o]
	if p.stale {
		p.stale = false
		for len(p.rounds) == 0 || len(p.rounds[0]) < len(r.all) {
			p.grow()
		}
		for at := range p.rounds[0] {
			p.rounds[0][at] = r.at(slot(at), o)
		}
		for four := range len(p.rounds[0]) / roundOf {
			p.playFour(four)
		}
	}
	for _, at := range p.changed {
		if its := r.at(at, o); its != p.rounds[0][at] {
			p.rounds[0][at] = its
			p.playFour(int(at) / roundOf)
		}
	}
	p.changed = p.changed[:0]
	return p
}

// at returns the rank of the member at the slot, noRank if the slot is empty.
func (r *ranking) at(at slot, o order) rank {
	if int(at) >= len(r.all) {
		return noRank
	}
	return r.all[at].rank(o)
}

// grow adds four slots without tasks.
func (p *played) grow() {
	if len(p.rounds) == 0 {
		p.rounds = [][]rank{nil}
	}
	p.rounds[0] = append(p.rounds[0], noRank, noRank, noRank, noRank)
	for i := 0; len(p.rounds[i]) > roundOf; i++ {
		if i+1 == len(p.rounds) {
			first := (*[roundOf]rank)(p.rounds[i])
			p.rounds = append(p.rounds, []rank{first[0].or(first[1]).or(first[2].or(first[3])), noRank, noRank, noRank})
		}
		if len(p.rounds[i]) > roundOf*len(p.rounds[i+1]) {
			p.rounds[i+1] = append(p.rounds[i+1], noRank, noRank, noRank, noRank)
		}
	}
}

// playFour plays one group of four in the first round, and later rounds while the first of them
// changes.
func (p *played) playFour(at int) {
	for i, round := range p.rounds[:len(p.rounds)-1] {
		four := (*[roundOf]rank)(round[at*roundOf:])
		first, next := four[0].or(four[1]).or(four[2].or(four[3])), &p.rounds[i+1][at]
		if *next == first {
			return
		}
		*next = first
		at /= roundOf
	}
}
