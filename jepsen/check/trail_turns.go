package check

import (
	"cmp"

	"github.com/claimq/claimq/jepsen/history"
)

// fairType follows the shares of a type in which they take turns.
type fairType struct {
	from   uint64 // the entry that made it fair
	keys   []string
	shares map[string]*fairShare
	lanes  map[int32]*lane // by priority
}

// fairShare holds the certain settings of a share.
type fairShare struct {
	turn int64 // what a claim of it counts: less with more weight
	most int   // of its claims at a time, 0 = no bound
}

// lane has the shares of one priority.
type lane struct {
	waiting map[string]int     // tasks that are certainly pending, by share key
	ahead   map[[2]string]lead // pairs of shares, of which both have been open since
}

// lead says how far the turns of the first share of a pair are ahead of those of the second.
type lead struct{ now, least, most int64 }

// turnOfOne is the turn of a share with weight 1.
const turnOfOne, defaultWeight = 1_000_000_000, 100

// noteFair notes a call that made a type fair, or that set a share of one. Callers set each once, before they submit
// tasks of the type.
func (c *trailChecker) noteFair(op *history.Op) {
	if op.Outcome != history.OK || op.Index == 0 {
		return
	}
	f := c.fair[op.TaskType]
	switch {
	case op.Kind == history.SetType && op.Fair && f == nil:
		c.fair[op.TaskType] = &fairType{from: op.Index, shares: map[string]*fairShare{}, lanes: map[int32]*lane{}}
	case op.Kind == history.SetShare && f != nil:
		*f.share(op.ShareKey) = fairShare{turn: turnOfOne / int64(cmp.Or(op.Weight, defaultWeight)), most: int(op.MaxClaimed)}
	}
}

// share returns the share with the key.
func (f *fairType) share(key string) *fairShare {
	s := f.shares[key]
	if s == nil {
		s = &fairShare{turn: turnOfOne / defaultWeight}
		f.shares[key] = s
		f.keys = append(f.keys, key)
	}
	return s
}

// lane returns the lane of the priority.
func (f *fairType) lane(priority int32) *lane {
	l := f.lanes[priority]
	if l == nil {
		l = &lane{waiting: map[string]int{}, ahead: map[[2]string]lead{}}
		f.lanes[priority] = l
	}
	return l
}

// forget ends all comparisons: what was claimed is not certain.
func (f *fairType) forget() {
	for _, l := range f.lanes {
		clear(l.ahead)
	}
}

// checkTurn counts a claim by priority as a turn of its share, and checks that of two shares that have been open since
// the same event neither is ahead of the other by more than a turn of each.
func (c *trailChecker) checkTurn(t *life, e *history.Told) {
	f, by := c.fair[t.kind], c.claimedBy[e.Token]
	switch {
	case t.kind == "": // it may be of any type and share
		c.hidden = true
		for _, f := range c.fair {
			f.forget()
		}
		return
	case f == nil:
		return
	case by == nil, e.Index <= f.from:
		f.forget()
		return
	case by.Kind == history.ClaimTask, by.SortBy != "":
		return // takes no turn
	}
	ahead := f.lane(t.priority).ahead
	for _, other := range f.keys {
		pair, sign := pairOf(t.share, other)
		l, ok := ahead[pair]
		if !ok {
			continue
		}
		l.now += sign * f.share(t.share).turn
		l.least, l.most = min(l.least, l.now), max(l.most, l.now)
		ahead[pair] = l
		c.turns++
		if l.most-l.least > f.share(t.share).turn+f.share(other).turn {
			c.fails(RuleFair, e, "share keys %q and %q of type %s, both with tasks at priority %d, are %d and %d of a turn apart", t.share, other, t.kind, t.priority, l.most, -l.least)
			delete(ahead, pair)
		}
	}
}

// pairOf names a pair of shares. sign is 1 if a is its first, else -1.
func pairOf(a, b string) (pair [2]string, sign int64) {
	if a < b {
		return [2]string{a, b}, 1
	}
	return [2]string{b, a}, -1
}

// followShare keeps which shares of the task's type are open: those with tasks that are certainly pending and with fewer
// claims than they may have.
func (c *trailChecker) followShare(t *life) {
	f := c.fair[t.kind]
	if f == nil || t.share == "" {
		return
	}
	f.share(t.share)
	at := f.lane(t.priority)
	if stands := c.isOpen(t); stands != t.stands {
		t.stands = stands
		if at.waiting[t.share]--; stands {
			at.waiting[t.share] += 2
		}
	}
	for _, l := range f.lanes {
		for _, other := range f.keys {
			if other == t.share {
				continue
			}
			pair, _ := pairOf(t.share, other)
			switch _, ok := l.ahead[pair]; {
			case !c.opens(t.kind, t.share, l) || !c.opens(t.kind, other, l):
				delete(l.ahead, pair)
			case !ok:
				l.ahead[pair] = lead{}
			}
		}
	}
}

// opens reports whether tasks of the share and the lane can certainly be claimed.
func (c *trailChecker) opens(kind, key string, l *lane) bool {
	most := c.fair[kind].share(key).most
	return l.waiting[key] > 0 && (most == 0 || !c.hidden && c.crowds[crowd{kind: kind, share: key}] < most)
}

// isOpen reports whether the task is certainly pending, and held back by nothing of its own. Steps, whose type is not
// known before an answer shows it, and tasks that wait for their time are not.
func (c *trailChecker) isOpen(t *life) bool {
	return t.status == statusPending && !t.waits && !t.parent && !t.isStep() && t.kind != "" && t.group == ""
}

// saysHow reports whether the op is an answer that says how its claim was made: a claim by id that was only told that its
// worker holds the task does not.
func saysHow(op *history.Op) bool {
	return op.Token != 0 && (op.Kind == history.Claim || op.Kind == history.ClaimTask && !op.Repeated) && op.Outcome == history.OK
}
