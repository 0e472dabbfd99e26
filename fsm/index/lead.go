package index

import (
	"math"
	"math/bits"
)

// lead is the place of a share in the order in which the shares of a type take turns: by the
// highest priority of its tasks, then by its tag there, and of equal tags the one that has been
// there longest.
type lead struct {
	priority uint64 // as in a rank of highest
	tag      uint64 // compared by the sign of the difference, because tags may wrap
	since    uint64 // the oldest of the tasks of a tag with its first value; behind those the number of a saved one
	slot     uint64
}

// isSaved is set in lead.since of tags that are saved.
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

// leads finds which of the shares of a fair type is next. Like a tournament it plays in groups
// of four, but in one order, and only when it is asked.
type leads struct {
	shares []*stock
	rounds [][]lead // the first has the leads by slot, each of the others the first of four of it
	fours  []int32  // groups of four in the first round that have changed
	all    bool     // too many have changed; play them all
}

// add adds a share, without a task.
func (l *leads) add(s *stock) {
	s.place = int32(len(l.shares))
	l.shares = append(l.shares, s)
	for n, at := len(l.shares), 0; at == 0 || n > 1; n, at = (n+roundOf-1)/roundOf, at+1 {
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
}

// put sets the place of the share.
func (l *leads) put(s *stock, to lead) {
	to.slot = uint64(s.place)
	if at := &l.rounds[0][s.place]; *at != to {
		*at = to
		l.note(s.place / roundOf)
	}
}

// note notes a group of four to play, or that all must be played.
func (l *leads) note(four int32) {
	switch n := len(l.fours); {
	case l.all || n > 0 && l.fours[n-1] == four:
	case n > len(l.shares)/changedShare:
		l.all, l.fours = true, l.fours[:0]
	default:
		l.fours = append(l.fours, four)
	}
}

// remove removes a share. The last one takes over its slot.
func (l *leads) remove(s *stock) {
	last := len(l.shares) - 1
	its, moved := l.rounds[0][last], l.shares[last]
	l.put(moved, noLead)
	l.shares[last] = nil
	l.shares = l.shares[:last]
	if moved != s {
		moved.place = s.place
		l.shares[s.place] = moved
		l.put(moved, its)
	}
	if len(l.rounds[0]) > max(tournamentKept, roundOf*len(l.shares)) {
		l.shrink()
	}
}

// shrink releases memory.
func (l *leads) shrink() {
	all, before := l.shares, l.rounds[0]
	*l = leads{}
	for at, s := range all {
		l.add(s)
		l.put(s, before[at])
	}
}

// first returns the share that is next and its place. There must be one with a task.
func (l *leads) first() (*stock, lead) {
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
	first := firstOf(l.rounds[len(l.rounds)-1][:roundOf])
	return l.shares[first.slot], first
}

// play plays one group of four in the first round, and later rounds while the first of them
// changes.
func (l *leads) play(at int) {
	for i, round := range l.rounds[:len(l.rounds)-1] {
		first, next := firstOf(round[at*roundOf:]), &l.rounds[i+1][at]
		if *next == first {
			return
		}
		*next = first
		at /= roundOf
	}
}

// firstOf returns the first of the first four.
func firstOf(leads []lead) lead {
	four := (*[roundOf]lead)(leads)
	a, b := four[1].before(&four[0]), 2+four[3].before(&four[2])
	return four[a+(b-a)*four[b].before(&four[a])]
}
