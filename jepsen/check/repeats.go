package check

import (
	"cmp"
	"maps"
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// checkKeys checks that all answers for one idempotency key name one task, which was created once.
// A key may be used again once its task was deleted.
func (c *checker) checkKeys() {
	for _, name := range slices.Sorted(maps.Keys(c.keys)) {
		k := c.keys[name]
		created := map[uint64]int{} // task → op that created it
		for _, i := range k.answers {
			op := &c.ops[i]
			if !op.Created {
				continue
			}
			if has(created, op.TaskID) {
				c.Violate(RuleKey, op.TaskID, []int{created[op.TaskID], i}, "task %d was created twice by key %q", op.TaskID, name)
			}
			created[op.TaskID] = i
		}
		ids := slices.Sorted(maps.Keys(k.seen))
		for n, id := range ids {
			if have := c.tasks[id].key; have != name {
				c.Violate(RuleKey, id, []int{k.seen[id]}, "task %d was answered with key %q and with key %q", id, name, have)
			}
			if n > 0 && !c.mayBeDeleted(c.tasks[ids[n-1]]) {
				a := ids[n-1]
				c.Violate(RuleKey, id, []int{k.seen[a], k.seen[id]}, "key %q has two tasks, %d and %d, and the first was never deleted", name, a, id)
			}
		}
	}
}

// checkSent checks that answers and the final state show each task as submitted, and that an
// answer is for the task that the call named.
func (c *checker) checkSent() {
	look := func(seen *history.Task, op int) {
		sent := cmp.Or(c.keys[seen.Key], &key{}).sent
		if sent.TaskType != "" && seen.Type != "" && (seen.Type != sent.TaskType || seen.Group != sent.Group || seen.ShareKey != sent.ShareKey || seen.Priority != sent.Priority) ||
			sent.Params != "" && seen.Params != "" && seen.Params != sent.Params {
			c.Violate(RuleSent, seen.ID, []int{op}, "task %d is another one than was submitted: %s and %s", seen.ID, asJSON(seen), asJSON(sent))
		}
	}
	for i := range c.ops {
		op := &c.ops[i]
		if op.Seen != nil {
			look(op.Seen, i)
			if op.Seen.ID != op.TaskID {
				c.Violate(RuleSent, op.TaskID, []int{i}, "task %d was asked for, and the answer is about %d", op.TaskID, op.Seen.ID)
			}
		}
		for n := range op.Listed {
			look(&op.Listed[n], i)
		}
	}
	for i := range cmp.Or(c.final, &history.Final{}).Tasks {
		look(&c.final.Tasks[i], -1)
	}
}

// mayBeDeleted reports whether a call may have deleted the task or its parent.
func (x *index) mayBeDeleted(t *task) bool {
	return x.mayHave(t, history.Delete) || t.parentID != 0 && x.mayHave(x.tasks[t.parentID], history.Delete)
}

// checkUnsubmitted checks that every task in an answer or in the final state was submitted.
func (c *checker) checkUnsubmitted() {
	for _, id := range c.ids {
		if t := c.tasks[id]; t.submit == nil && c.exists(t) && !c.ofHidden(t) {
			c.Violate(RuleUnsubmitted, id, t.ops[:min(1, len(t.ops))], "task %d (key %q) exists, and no submit can have made it", id, t.key)
		}
	}
}

// exists reports whether an answer or the final state shows the task.
func (c *checker) exists(t *task) bool {
	return t.final != nil || slices.ContainsFunc(t.ops, func(i int) bool { return c.ops[i].Outcome == history.OK })
}

// checkRepeats checks that all answers to one claim_request_id name the same tasks and tokens.
func (c *checker) checkRepeats() {
	type taken struct{ task, token uint64 }
	for _, id := range slices.Sorted(maps.Keys(c.requests)) {
		answers := c.requests[id].answers
		var first, answer []taken
		for n, i := range answers {
			op := &c.ops[i]
			answer = append(answer, taken{op.TaskID, op.Token})
			if n+1 < len(answers) && madeBy(&c.ops[answers[n+1]]) == madeBy(op) {
				continue // the same answer goes on
			}
			slices.SortFunc(answer, func(a, b taken) int { return cmp.Compare(a.token, b.token) })
			if first == nil {
				first = answer
			} else if !slices.Equal(first, answer) {
				c.Violate(RuleRepeat, op.TaskID, []int{answers[0], i},
					"claim request %q was answered with %v and, repeated, with %v (task and token)", id, first, answer)
			}
			answer = nil
		}
	}
}
