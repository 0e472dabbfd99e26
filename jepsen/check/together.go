package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// checkTogether checks the rules about claims of several tasks: those of one
// group do not overlap, and no more of a type live than it allows. Only what is
// certain counts: a claim lived from its answer to the first call that may have
// ended it, or to its lease's end.
func (c *checker) checkTogether() {
	limits := c.claimLimits()
	groups, types := map[groupName][]*hold{}, map[string][]*hold{}
	for _, id := range c.ids {
		t := c.tasks[id]
		limit := limits[t.kind]
		if t.group == "" && limit == nil || t.parent {
			continue
		}
		for _, h := range c.holds(t) {
			if h.ret >= h.until() {
				continue
			}
			if name := (groupName{t.kind, t.group}); t.group != "" {
				groups[name] = append(groups[name], h)
			}
			if limit != nil && h.ret >= limit.since {
				types[t.kind] = append(types[t.kind], h)
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(groups), func(a, b groupName) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.group, b.group)) })
	for _, name := range names {
		c.checkCrowds(RuleGroup, groups[name], 1, fmt.Sprintf("group %q of type %s", name.group, name.kind))
	}
	for _, kind := range slices.Sorted(maps.Keys(types)) {
		c.checkCrowds(RuleLimit, types[kind], int(limits[kind].most), "type "+kind)
	}
}

// groupName names a group: each type has its own.
type groupName struct{ kind, group string }

// checkCrowds checks that no more than most of the claims live together.
func (c *checker) checkCrowds(rule Rule, holds []*hold, most int, what string) {
	slices.SortStableFunc(holds, func(a, b *hold) int { return cmp.Compare(a.ret, b.ret) })
	var live []*hold
	for _, h := range holds {
		live = append(slices.DeleteFunc(live, func(o *hold) bool { return o.until() <= h.ret }), h)
		if len(live) > most {
			var ops []int
			for _, o := range live {
				ops = append(ops, o.op)
			}
			c.Violate(rule, h.task, ops, "%s: %d claims lived at %s together, %d may", what, len(live), clock(h.ret), most)
		}
	}
}

// claimLimit is how many claims of a type may live, and since when that is certain.
type claimLimit struct {
	most   int32
	since  int64
	unsure bool // it was set to another number, too
}

// claimLimits returns the limits of the types that were set to one and the same by
// every call that may have had an effect.
func (c *checker) claimLimits() map[string]*claimLimit {
	limits := map[string]*claimLimit{}
	for _, op := range c.took(history.SetType) {
		if op.Paused != nil {
			continue
		}
		l := limits[op.TaskType]
		if l == nil {
			l = &claimLimit{most: op.MaxClaimed, since: never}
			limits[op.TaskType] = l
		}
		l.since = min(l.since, ended(op))
		l.unsure = l.unsure || l.most != op.MaxClaimed
	}
	maps.DeleteFunc(limits, func(_ string, l *claimLimit) bool { return l.unsure })
	return limits
}
