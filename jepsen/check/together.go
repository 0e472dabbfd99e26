package check

import (
	"cmp"
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
	groups, types := map[groupName][]*spell{}, map[string][]*spell{}
	for _, id := range c.ids {
		t := c.tasks[id]
		p := c.placeOf(t)
		if p.group == "" && limits[p.kind] == nil || t.parent {
			continue
		}
		for _, h := range c.holds(t) {
			s := &spell{hold: h, task: id}
			if s.ret >= s.until() {
				continue
			}
			if p.group != "" {
				name := groupName{p.kind, p.group}
				groups[name] = append(groups[name], s)
			}
			if l := limits[p.kind]; l != nil && s.ret >= l.since {
				types[p.kind] = append(types[p.kind], s)
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(groups), func(a, b groupName) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.group, b.group)) })
	for _, name := range names {
		for _, crowd := range crowds(groups[name], 1) {
			c.violate(RuleGroup, crowd[len(crowd)-1].task, opsOf(crowd), "group %q of type %s: claims of tasks %v lived at %s together",
				name.group, name.kind, tasksOf(crowd), clock(crowd[len(crowd)-1].ret))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(types)) {
		for _, crowd := range crowds(types[kind], int(limits[kind].most)) {
			c.violate(RuleLimit, crowd[len(crowd)-1].task, opsOf(crowd), "type %s: %d claims lived at %s together, %d may",
				kind, len(crowd), clock(crowd[len(crowd)-1].ret), limits[kind].most)
		}
	}
}

// groupName names a group: each type has its own.
type groupName struct{ kind, group string }

// spell is the time that a claim of a task certainly lived.
type spell struct {
	*hold
	task uint64
}

// claimLimit is how many claims of a type may live, and since when that is certain.
type claimLimit struct {
	most  int32
	since int64
}

// claimLimits returns the limits of the types that were set to one and the same by
// every call that may have had an effect.
func (c *checker) claimLimits() map[string]*claimLimit {
	limits, unsure := map[string]*claimLimit{}, map[string]bool{}
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		if op.Kind != history.SetType || op.Paused != nil || op.Outcome == history.Failed {
			continue
		}
		l := limits[op.TaskType]
		switch {
		case l == nil:
			limits[op.TaskType] = &claimLimit{most: op.MaxClaimed, since: ended(op)}
			l = limits[op.TaskType]
		case l.most != op.MaxClaimed:
			unsure[op.TaskType] = true
		}
		l.since = min(l.since, ended(op))
	}
	for kind := range unsure {
		delete(limits, kind)
	}
	return limits
}

// place is where a task is among others.
type place struct {
	kind, group string // its type and group
	priority    int32
}

// placeOf returns the place of the task, as far as answers or the calls that made it say.
func (x *index) placeOf(t *task) (p place) {
	look := func(seen *history.Task) {
		if seen != nil && seen.Type != "" {
			p = place{seen.Type, seen.Group, seen.Priority}
		}
	}
	look(t.final)
	for _, i := range t.ops {
		if p.kind != "" {
			break
		}
		look(x.h.Ops[i].Seen)
		if op := &x.h.Ops[i]; op.Kind == history.Submit && op.Created {
			p = place{op.TaskType, op.Group, op.Priority}
		}
	}
	return p
}

// crowds returns the spells that live together whenever one more than most do.
func crowds(spells []*spell, most int) [][]*spell {
	slices.SortStableFunc(spells, func(a, b *spell) int { return cmp.Compare(a.ret, b.ret) })
	var found [][]*spell
	var live []*spell
	for _, s := range spells {
		live = slices.DeleteFunc(live, func(o *spell) bool { return o.until() <= s.ret })
		live = append(live, s)
		if len(live) > most {
			found = append(found, slices.Clone(live))
		}
	}
	return found
}

func opsOf(spells []*spell) (ops []int) {
	for _, s := range spells {
		ops = append(ops, s.op)
	}
	return ops
}

func tasksOf(spells []*spell) (ids []uint64) {
	for _, s := range spells {
		ids = append(ids, s.task)
	}
	return ids
}
