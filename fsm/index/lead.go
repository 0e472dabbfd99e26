package index

import (
	"math"
	"math/bits"
)

// lead is the place of a share in the order in which the shares of a type take turns: by the
// highest priority of its tasks, then by its tag there, and of equal tags the one that has been
// there longest. No two shares have the same.
type lead struct {
	priority uint64 // as in a rank of highest
	tag      uint64 // compared by the sign of the difference, because tags may wrap
	since    uint64 // the oldest task, if the tag has its first value; else the tag's number with isSaved, so after all others
	of       *stock
}

// isSaved is set in lead.since for tags that are saved.
const isSaved = 1 << 63

// noLead is the place of shares without a task that can be claimed: after all others.
var noLead = lead{priority: math.MaxUint64}

// before returns 1 if a comes before b, else 0. It has no branch, because the result is
// unpredictable.
func (a *lead) before(b *lead) uint64 {
	_, less := bits.Sub64(a.since, b.since, 0)
	_, less = bits.Sub64(a.priority, b.priority, (a.tag-b.tag-less)>>63)
	return less
}

// leads finds which share of a fair type is next. After its turn a share mostly comes after all
// others: those stand in line, so that a turn touches only both ends. A share that comes elsewhere
// is loose until its place changes.
type leads struct {
	count int // its shares, also those without a task
	line
	loose
}

// stand says where a share is kept in leads.
type stand uint8

const (
	nowhere stand = iota
	inLine
	isLoose
)

// add adds a share, without a task that can be claimed.
func (l *leads) add(s *stock) {
	l.count++
	s.stand = nowhere
}

// remove removes a share.
func (l *leads) remove(s *stock) {
	l.leave(s)
	l.count--
}

// put sets the place of a share that has a task.
func (l *leads) put(to lead) {
	switch s := to.of; {
	case s.stand == inLine && *l.at(uint32(s.place)) == to, s.stand == isLoose && l.rounds[0][s.place] == to:
		return
	default:
		l.leave(s)
	}
	if l.taken == 0 || l.at(l.end-1).before(&to) == 1 {
		l.push(to)
		return
	}
	l.loosen(to)
}

// leave takes out a share that has no claimable task any more.
func (l *leads) leave(s *stock) {
	switch s.stand {
	case inLine:
		l.quit(uint32(s.place))
	case isLoose:
		l.tighten(s.place)
	}
	s.stand = nowhere
}

// first returns the share that is next, and its place. At least one share must have a task.
func (l *leads) first() (*stock, lead) {
	first := noLead
	if l.slots > 0 {
		first = l.firstLoose()
	}
	if l.taken > 0 && l.at(l.head).before(&first) == 1 {
		first = *l.at(l.head)
	}
	return first.of, first
}

// line has leads in order, at places that count up. Those at both ends are taken.
type line struct {
	ring  []lead // by place modulo its length, a power of two; of is nil at free places
	head  uint32
	end   uint32
	taken int
}

// lineKept is the length for which a line keeps room once it had it.
const lineKept = 64

func (l *line) at(place uint32) *lead { return &l.ring[place&uint32(len(l.ring)-1)] }

// push adds a share that comes last.
func (l *line) push(to lead) {
	if int(l.end-l.head) == len(l.ring) {
		l.fit()
	}
	*l.at(l.end) = to
	to.of.stand, to.of.place = inLine, int32(l.end)
	l.end++
	l.taken++
}

// quit frees a place.
func (l *line) quit(place uint32) {
	l.at(place).of = nil
	l.taken--
	for l.head != l.end && l.at(l.head).of == nil {
		l.head++
	}
	for l.head != l.end && l.at(l.end-1).of == nil {
		l.end--
	}
	if len(l.ring) > max(lineKept, 8*l.taken) {
		l.fit()
	}
}

// fit closes the gaps, in a ring with room for half as many shares more to as many again.
func (l *line) fit() {
	old := *l
	*l = line{ring: make([]lead, 1<<bits.Len(uint(old.taken+old.taken/2)))}
	for place := old.head; place != old.end; place++ {
		if its := old.at(place); its.of != nil {
			l.push(*its)
		}
	}
}

// loose finds the first of shares in any order. Like a tournament it plays in groups
// of four, but in one order, and only when it is asked.
type loose struct {
	slots  int      // how many are taken: the first ones
	rounds [][]lead // the first has the leads by slot, each other one the first of each four of the round before
	fours  []int32  // groups of four in the first round that have changed
	all    bool     // too many have changed; play them all
}

// loosen adds a share.
func (l *loose) loosen(to lead) {
	to.of.stand, to.of.place = isLoose, int32(l.slots)
	l.slots++
	for n, at := l.slots, 0; at == 0 || n > 1; n, at = (n+roundOf-1)/roundOf, at+1 {
		if at == len(l.rounds) {
			l.rounds = append(l.rounds, nil)
		}
		if n <= len(l.rounds[at]) {
			continue
		}
		l.rounds[at] = append(l.rounds[at], noLead, noLead, noLead, noLead)
		if n == 2 && at > 0 {
			l.rounds[at][0] = firstOf(l.rounds[at-1][:roundOf])
		}
	}
	l.set(to.of.place, to)
}

// set sets the lead at a slot.
func (l *loose) set(slot int32, to lead) {
	l.rounds[0][slot] = to
	switch four, n := slot/roundOf, len(l.fours); {
	case l.all || n > 0 && l.fours[n-1] == four:
	case n > l.slots/changedShare:
		l.all, l.fours = true, l.fours[:0]
	default:
		l.fours = append(l.fours, four)
	}
}

// tighten frees a slot. The last share takes it over.
func (l *loose) tighten(slot int32) {
	last := int32(l.slots - 1)
	if slot != last {
		moved := l.rounds[0][last]
		moved.of.place = slot
		l.set(slot, moved)
	}
	l.set(last, noLead)
	l.slots--
	if len(l.rounds[0]) > max(tournamentKept, roundOf*l.slots) {
		l.shrink()
	}
}

// shrink releases memory.
func (l *loose) shrink() {
	all := l.rounds[0][:l.slots]
	*l = loose{}
	for _, its := range all {
		l.loosen(its)
	}
}

// firstLoose returns the first share of those that are loose. There must be one.
func (l *loose) firstLoose() lead {
	if l.all {
		for four := range len(l.rounds[0]) / roundOf {
			l.play(four)
		}
		l.all = false
	}
	for _, four := range l.fours {
		l.play(int(four))
	}
	l.fours = l.fours[:0]
	return firstOf(l.rounds[len(l.rounds)-1][:roundOf])
}

// play plays one group of four in the first round, and later rounds while the first of them
// changes.
func (l *loose) play(at int) {
	for i, round := range l.rounds[:len(l.rounds)-1] {
		first, next := firstOf(round[at*roundOf:]), &l.rounds[i+1][at]
		if *next == first {
			return
		}
		*next = first
		at /= roundOf
	}
}

// firstOf returns the first of a group of four.
func firstOf(leads []lead) lead {
	four := (*[roundOf]lead)(leads)
	a, b := four[1].before(&four[0]), 2+four[3].before(&four[2])
	return four[a+(b-a)*four[b].before(&four[a])]
}
