package check

import (
	"maps"
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// checkKeys checks that all answers about one idempotency key name one task,
// and that it was created once. A key is free again once its task was deleted.
func (c *checker) checkKeys() {
	for _, name := range slices.Sorted(maps.Keys(c.keys)) {
		k := c.keys[name]
		created := map[uint64]int{} // task → op that created it
		for _, i := range k.answers {
			op := &c.h.Ops[i]
			if !op.Created {
				continue
			}
			if first, ok := created[op.TaskID]; ok {
				c.violate(RuleKey, op.TaskID, []int{first, i}, "task %d was created twice by key %q", op.TaskID, name)
			}
			created[op.TaskID] = i
		}
		ids := slices.Sorted(maps.Keys(k.seen))
		for _, id := range ids {
			if have := c.tasks[id].key; have != name {
				c.violate(RuleKey, id, known(k.seen[id]), "task %d was answered with key %q and with key %q", id, name, have)
			}
		}
		for n := 1; n < len(ids); n++ {
			a, b := ids[n-1], ids[n]
			if !c.mayBeDeleted(a) {
				c.violate(RuleKey, b, known(k.seen[a], k.seen[b]), "key %q has two tasks, %d and %d, and the first was never deleted", name, a, b)
			}
		}
	}
}

// known drops the ops that are none (-1): what only the final state says.
func known(ops ...int) []int {
	return slices.DeleteFunc(ops, func(i int) bool { return i < 0 })
}

// mayBeDeleted reports whether anybody may have deleted the task, or its parent.
func (x *index) mayBeDeleted(id uint64) bool {
	t := x.tasks[id]
	return t != nil && (x.mayHave(t, history.Delete) || t.parentID != 0 && x.mayHave(x.tasks[t.parentID], history.Delete))
}

// mayHave reports whether a call of the kind that names the task, or acts on all of its
// type, may have had an effect.
func (x *index) mayHave(t *task, kind history.Kind) bool {
	acted := func(i int) bool { return x.h.Ops[i].Action == string(kind) }
	return slices.ContainsFunc(t.acts, acted) || slices.ContainsFunc(t.ops, func(i int) bool {
		op := &x.h.Ops[i]
		return op.Kind == kind && op.Outcome != history.Failed
	})
}

// checkUnsubmitted checks that every task that an answer or the final state
// shows was submitted. Submits without a key and without an answer may each
// have made one task.
func (c *checker) checkUnsubmitted() {
	allowed := c.hiddenSubmits
	for _, id := range c.ids {
		t := c.tasks[id]
		if t.submit != nil || !c.exists(t) {
			continue
		}
		if c.ofHidden(id) {
			continue
		}
		if t.key == "" && allowed > 0 {
			allowed--
			continue
		}
		c.violate(RuleUnsubmitted, id, t.ops[:min(1, len(t.ops))], "task %d (key %q) exists, and no submit can have made it", id, t.key)
	}
}

// exists reports whether anything shows that the task was there.
func (c *checker) exists(t *task) bool {
	return t.final != nil || slices.ContainsFunc(t.ops, func(i int) bool {
		op := &c.h.Ops[i]
		return op.Outcome == history.OK && (op.Kind != history.Get || op.Seen.Status != "")
	})
}
