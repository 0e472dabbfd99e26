package fsm

import (
	"cmp"
	"maps"
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// modelTurns is the order of the shares of fair types, and what has been seen of it: that is held
// against what is promised of any stretch of claims.
type modelTurns struct {
	tags   map[record.Turn]modelTag // by share and priority
	clocks map[record.Turn]uint64   // by priority
	moves  int                      // so often tags have changed
	open   map[record.Turn]bool     // shares that could be claimed from before

	first map[record.Turn]bool // tags of shares that are open at the highest priority of their type
	pairs map[modelPair]modelStretch
	newer map[modelPair]int // claims of one since the other, which has had none, began to wait
}

// modelTag is where a share is in the order of turns.
type modelTag struct {
	value uint64
	since int // the move with which it got there; 0 for its first value
}

// modelPair is two tags of a type and priority.
type modelPair struct{ a, b record.Turn }

// modelStretch is how far the claims of two shares have been apart, in turns, since both are
// open at the highest priority and have their weights.
type modelStretch struct {
	together               bool // both began to wait at its start
	apart, lowest, highest int64
	turnA, turnB           int64
}

func newModelTurns() modelTurns {
	return modelTurns{
		tags: map[record.Turn]modelTag{}, clocks: map[record.Turn]uint64{}, open: map[record.Turn]bool{},
		first: map[record.Turn]bool{}, pairs: map[modelPair]modelStretch{}, newer: map[modelPair]int{},
	}
}

func (u *modelTurns) copy() modelTurns {
	return modelTurns{maps.Clone(u.tags), maps.Clone(u.clocks), u.moves, maps.Clone(u.open), maps.Clone(u.first), maps.Clone(u.pairs), maps.Clone(u.newer)}
}

// turnOf returns the key of the tag that the task shares with the others of its type, share key
// and priority.
func turnOf(t *record.Task) record.Turn {
	return record.Turn{Type: t.Type, ShareKey: t.Opts().ShareKey, Priority: t.Priority}
}

// clockOf returns the key of the clock of a tag.
func clockOf(tag record.Turn) record.Turn {
	return record.Turn{Type: tag.Type, Priority: tag.Priority, Clock: true}
}

// turn returns one turn of the share of a tag.
func (s *model) turn(tag record.Turn) uint64 {
	return 1_000_000_000 / uint64(cmp.Or(s.share(shareName{tag.Type, tag.ShareKey}).Weight, 100))
}

// reweigh moves the tags of a share that has got another weight to a turn behind their clocks, if
// they are further behind.
func (s *model) reweigh(n shareName) {
	s.turns.moves++
	for tag, at := range s.turns.tags {
		if tag.Type != n.taskType || tag.ShareKey != n.key {
			continue
		}
		value := at.value
		if most := s.turns.clocks[clockOf(tag)] + s.turn(tag); int64(value-most) > 0 {
			value = most
		}
		if value != at.value || at.since == 0 || value == s.turn(tag) {
			s.setTag(tag, value)
		}
	}
}

// settleTurns lets the tags of shares of fair types begin and end, and opens shares.
func (s *model) settleTurns() {
	u := &s.turns
	waits, open := map[record.Turn]bool{}, map[record.Turn]bool{}
	for _, t := range s.tasks {
		if s.settings(t.Type).Fair && s.ready(t) {
			waits[turnOf(t)] = true
			open[shareOf(turnOf(t))] = s.roomIn(ofShare(t), s.t) > 0
		}
	}
	begun := map[record.Turn]bool{}
	u.moves++
	for tag := range waits {
		v := u.clocks[clockOf(tag)]
		switch at, known := u.tags[tag]; {
		case !known:
			s.setTag(tag, v+s.turn(tag))
			begun[tag] = true
		case open[shareOf(tag)] && !u.open[shareOf(tag)] && int64(at.value-v) < 0:
			s.setTag(tag, v)
		}
	}
	maps.DeleteFunc(u.tags, func(tag record.Turn, _ modelTag) bool { return !waits[tag] })
	maps.DeleteFunc(u.clocks, func(clock record.Turn, _ uint64) bool {
		for tag := range waits {
			if clockOf(tag) == clock {
				return false
			}
		}
		return true
	})
	u.open = open
	for tag, at := range u.tags {
		if behind := at.value - u.clocks[clockOf(tag)]; open[shareOf(tag)] && behind > s.turn(tag) {
			s.fault("tag %+v is %d behind its clock", tag, behind)
		}
	}
	s.watchTurns(begun)
}

// setTag moves a tag.
func (s *model) setTag(tag record.Turn, value uint64) {
	at := modelTag{value, s.turns.moves}
	if value == s.turn(tag) {
		at.since = 0
	}
	s.turns.tags[tag] = at
}

// shareOf returns the share of a tag.
func shareOf(tag record.Turn) record.Turn {
	return record.Turn{Type: tag.Type, ShareKey: tag.ShareKey}
}

// watchTurns begins and ends stretches after tags, some of them new, have changed.
func (s *model) watchTurns(begun map[record.Turn]bool) {
	u := &s.turns
	highest := map[string]int32{}
	for tag := range u.tags {
		if p, known := highest[tag.Type]; u.open[shareOf(tag)] && (!known || p < tag.Priority) {
			highest[tag.Type] = tag.Priority
		}
	}
	u.first = map[record.Turn]bool{}
	for tag := range u.tags {
		if p, known := highest[tag.Type]; known && u.open[shareOf(tag)] && tag.Priority == p {
			u.first[tag] = true
		}
	}
	pairs, newer := map[modelPair]modelStretch{}, map[modelPair]int{}
	for a := range u.first {
		for b := range u.first {
			if a == b || clockOf(a) != clockOf(b) {
				continue
			}
			pair := modelPair{a, b}
			stretch, goesOn := u.pairs[pair]
			turnA, turnB := int64(s.turn(a)), int64(s.turn(b))
			if !goesOn || begun[a] || begun[b] || stretch.turnA != turnA || stretch.turnB != turnB {
				stretch = modelStretch{together: begun[a] && begun[b], turnA: turnA, turnB: turnB}
				delete(u.newer, pair)
			}
			pairs[pair] = stretch
			if n, isNew := u.newer[pair]; isNew || begun[b] {
				newer[pair] = n
			}
		}
	}
	u.pairs, u.newer = pairs, newer
}

// tookTurn moves the clock to the turn that the claimed task took, its share one turn behind it,
// and holds the claim against what is promised.
func (s *model) tookTurn(t *record.Task) {
	u, tag := &s.turns, turnOf(t)
	value := u.tags[tag].value
	for pair, stretch := range u.pairs {
		switch tag {
		case pair.a:
			stretch.apart += stretch.turnA
		case pair.b:
			stretch.apart -= stretch.turnB
		default:
			continue
		}
		stretch.lowest, stretch.highest = min(stretch.lowest, stretch.apart), max(stretch.highest, stretch.apart)
		most := stretch.turnA + stretch.turnB
		if stretch.turnA == stretch.turnB {
			most = stretch.turnA
		}
		if stretch.highest-stretch.lowest > most || stretch.together && max(stretch.highest, -stretch.lowest) > max(stretch.turnA, stretch.turnB) {
			s.fault("the claims of %+v are not one in turn with another's: %+v", pair, stretch)
		}
		u.pairs[pair] = stretch
	}
	for pair := range u.newer {
		switch tag {
		case pair.b:
			delete(u.newer, pair)
		case pair.a:
			if u.newer[pair]++; uint64(u.newer[pair]) > max(1, (s.turn(pair.b)+s.turn(pair.a)-1)/s.turn(pair.a)) {
				s.fault("%+v had %d claims before the first of %+v", pair.a, u.newer[pair], pair.b)
			}
		}
	}
	s.settleTurns()
	if _, waits := u.tags[tag]; waits {
		u.moves++
		s.setTag(tag, value+s.turn(tag))
	}
	for other := range u.tags {
		if clockOf(other) == clockOf(tag) {
			u.clocks[clockOf(tag)] = value
		}
	}
}

// nextByTurn is the task whose turn it is among those like best: the oldest of the share with the
// smallest tag, of equal tags the one that has been there longest. Of several that got there in
// one step the machine may have taken any; the last one that it took is then the one.
func (s *model) nextByTurn(c command.ClaimNext, best *record.Task, took uint64) *record.Task {
	var all []*record.Task
	for _, t := range s.tasks {
		if t.Type == best.Type && t.Priority == best.Priority && s.claimable(c, t) {
			all = append(all, t)
		}
	}
	tagOf := func(t *record.Task) modelTag { return s.turns.tags[turnOf(t)] }
	next := slices.MinFunc(all, func(a, b *record.Task) int {
		return cmp.Or(cmp.Compare(int64(tagOf(a).value-tagOf(b).value), 0), cmp.Compare(tagOf(a).since, tagOf(b).since), cmp.Compare(a.ID, b.ID))
	})
	t := s.find(took)
	if t == nil || !slices.Contains(all, t) || tagOf(next).since == 0 || tagOf(t) != tagOf(next) {
		return next
	}
	return all[slices.IndexFunc(all, func(o *record.Task) bool { return turnOf(o) == turnOf(t) })]
}
