package check

import (
	"cmp"
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// findSights finds the ops to compare with the state: reads and lists, claims that took the first task or found no
// more tasks, and changes of types.
func (c *trailChecker) findSights() {
	taken := 0 // by the current claim so far
	for i := range c.ops {
		op := &c.ops[i]
		if op.Kind == history.SetType && op.Outcome != history.Failed {
			c.limited[op.TaskType] = true
			c.noteChange(op)
		}
		c.noteFair(op)
		if saysHow(op) {
			c.claimedBy[op.Token] = op
		}
		if was, ok := c.delays[op.Token]; op.Kind == history.Release && op.Outcome != history.Failed && (!ok || op.DelayMS < was) {
			c.delays[op.Token] = op.DelayMS
		}
		if saysNoTask(op) && op.Index > 0 && op.WaitMS == 0 && !op.Repeated {
			// A claim that waited and got nothing may have left a task to an earlier one. A repeat gets the first
			// answer.
			c.sights = append(c.sights, i)
		}
		if op.Outcome != history.OK || op.Index == 0 {
			continue
		}
		if k, ok := eventOf(op); op.Seen != nil && did(op) {
			if ok {
				c.shows[k] = i
			}
			for _, kind := range shownBy[op.Kind] {
				if kind != "cancelled at" || !asksOnly(op) {
					c.shows[end{kind, op.TaskID, op.Index}] = i
				}
			}
		}
		switch {
		case op.Kind == history.Get || op.Kind == history.List:
			c.sights = append(c.sights, i)
		case op.Kind == history.Claim && op.TaskID != 0 && !op.Repeated:
			c.claims[end{"claimed", op.TaskID, op.Token}] = i
			if taken++; i+1 < len(c.ops) && c.goesOn(i+1) && c.ops[i+1].RequestID == op.RequestID {
				break
			}
			if taken < op.Limit {
				c.sights = append(c.sights, i)
			}
			taken = 0
		}
	}
	slices.SortStableFunc(c.sights, func(a, b int) int { return cmp.Compare(c.ops[a].Index, c.ops[b].Index) })
}

// shownBy lists the events, followed by " at", of calls without a claim's token.
var shownBy = map[history.Kind][]string{history.Cancel: {"cancelled at", "cancel_requested at"}, history.Retry: {"retried at", "cancelled at"}}

// asksOnly reports whether a cancel asked the holder of a claim. An end of the task in the same entry is then the end
// of that claim.
func asksOnly(op *history.Op) bool {
	return op.Kind == history.Cancel && op.Seen != nil && op.Seen.Status == statusClaimed
}

// showDone compares the state with the answer to the call whose event was the latest, unless the next event belongs to
// the same call. Once the call has given its task back, a cancel belongs to another call.
func (c *trailChecker) showDone(next *history.Told) {
	if c.done < 0 {
		return
	}
	op := &c.ops[c.done]
	given := next.Kind == "cancelled" && c.lives[op.TaskID] != nil && c.lives[op.TaskID].status == statusPending
	if !given && next.Index == op.Index && next.TaskID == op.TaskID && !asksOnly(op) && slices.Contains([]string{"requeued", "scheduled", "cancelled"}, next.Kind) {
		return
	}
	c.checkShown(c.done, op, op.TaskID, op.Seen)
	c.done = -1
}

// noteChange records which entry changes a type, if only one call can have caused it.
func (c *trailChecker) noteChange(op *history.Op) {
	_, another := c.changes[op.Index]
	if c.changes[op.Index] = op; another || op.Outcome != history.OK {
		c.changes[op.Index] = nil
	}
}

// look compares the state with the ops that show it after an entry before index.
func (c *trailChecker) look(index uint64) {
	for ; len(c.sights) > 0 && c.ops[c.sights[0]].Index < index; c.sights = c.sights[1:] {
		i := c.sights[0]
		switch op := &c.ops[i]; op.Kind {
		case history.Get:
			c.checkShown(i, op, op.TaskID, op.Seen)
		case history.List:
			c.checkList(i, op)
		default: // it may have been applied at any place in its entry
			if best := c.best(op, op.Index); best != nil {
				c.Violate(RuleNone, best.id, []int{i}, "the claim got no task, or too few, at index %d, although task %d was pending from index %d on", op.Index, best.id, best.since)
			}
		}
	}
}

// checkShown checks that a read or list shows the task's state at its index.
func (c *trailChecker) checkShown(i int, op *history.Op, id uint64, seen *history.Task) {
	c.shown++
	t := c.lives[id]
	if t == nil {
		t = &life{task: c.known(id)}
	}
	status := c.statusOf(t)
	if t.orphan() && seen.Status == statusBlocked && status == statusPending { // its dependencies are not known
		return
	}
	worker := cmp.Or(c.told[end{"claimed", id, t.last}], &history.Told{}).Worker
	claim := seen.Token == t.last && (seen.Worker == worker || seen.Worker == "") && (seen.Cancelling == t.cancelling || t.isStep() || status == statusCompleted)
	if seen.Status != status || !t.parent && ((status == statusClaimed || status == statusCompleted) && !claim || seen.Attempts != t.attempts) {
		c.Violate(RuleShown, id, []int{i}, "task %d is shown as %s, token %d of %s, %d attempts, cancelled %v at index %d; by the trail it is %q, token %d of %s, %d attempts, %v",
			id, seen.Status, seen.Token, seen.Worker, seen.Attempts, seen.Cancelling, op.Index, status, t.last, worker, t.attempts, t.cancelling)
	}
	for place, shown := range seen.Steps {
		if shown == "scheduled" { // the checker uses the same name
			shown = statusPending
		}
		if t.plan == nil || place >= len(t.plan.Steps) || t.openPlan && place >= len(t.plan.Steps)-len(t.added) {
			break // the rest may be in another order
		}
		if s := c.step(t.task, place); c.statusOf(s) != shown {
			c.Violate(RuleShown, id, []int{i}, "task %d is shown with its step %d as %s at index %d; by the trail it is %q", id, s.id, shown, op.Index, c.statusOf(s))
		}
	}
}

// statusOf returns the status as answers show it. For them, a task that waits for its time is pending.
func (c *trailChecker) statusOf(t *life) string {
	switch {
	case t.status != statusPending:
		return t.status
	case t.parent:
		return statusRunning
	case c.blocked(t.task) != "":
		return statusBlocked
	}
	return statusPending
}

// checkList checks the tasks in the list, and that none is missing.
func (c *trailChecker) checkList(i int, op *history.Op) {
	ordered := slices.IsSortedFunc(op.Listed, func(a, b history.Task) int {
		if op.Desc {
			a, b = b, a
		}
		return cmp.Compare(a.ID, b.ID)
	})
	shown, first := map[uint64]bool{}, c.firstLook(op)
	for n := range op.Listed {
		t := &op.Listed[n]
		if shown[t.ID] || !ordered || op.Status != "" && t.Status != op.Status || op.TaskType != "" && t.Type != op.TaskType {
			c.Violate(RuleList, t.ID, []int{i}, "the list (status %q, type %q) has task %d (%s, %s) where it should not be", op.Status, op.TaskType, t.ID, t.Status, t.Type)
		}
		shown[t.ID] = true
		if first(t.ID) {
			c.checkShown(i, op, t.ID, t)
		}
	}
	for _, t := range c.page(op) {
		if !first(t.id) || shown[t.id] || t.status == "" || t.kind == "" || t.orphan() || op.TaskType != "" && op.TaskType != t.kind {
			continue
		}
		if status := c.statusOf(t); op.Status == "" || op.Status == status && !t.waits {
			c.Violate(RuleList, t.id, []int{i}, "the list (status %q, type %q) at index %d leaves out task %d, which was %s", op.Status, op.TaskType, op.Index, t.id, status)
		}
	}
}

// listLook is the number of tasks that a list reads, in its order, as of the index in its answer. The others are read as of a
// later index. A node reads 500, some of which the history may not know.
const listLook = 450

// firstLook returns a function that says whether a task is among the first listLook.
func (c *trailChecker) firstLook(op *history.Op) func(id uint64) bool {
	count := 0
	for n := range c.all {
		t := c.all[n]
		if op.Desc {
			t = c.all[len(c.all)-1-n]
		}
		if t.status != "" {
			count++
		}
		if count > listLook && op.Kind == history.List { // after the end nothing changes
			return func(id uint64) bool { return op.Desc && id > t.id || !op.Desc && id < t.id }
		}
	}
	return func(uint64) bool { return true }
}

// page returns the tasks from which the op's page of a list is taken.
func (c *trailChecker) page(op *history.Op) []*life {
	switch {
	case !op.More:
		return c.all
	case len(op.Listed) == 0:
		return nil
	}
	last := op.Listed[len(op.Listed)-1].ID
	n, _ := slices.BinarySearchFunc(c.all, last, func(t *life, id uint64) int { return cmp.Compare(t.id, id) })
	if op.Desc {
		return c.all[n:]
	}
	return c.all[:n]
}

// checkPaused checks that only a claim by id takes a task of a paused type.
func (c *trailChecker) checkPaused(t *life, e *history.Told) {
	if p := c.types[t.kind].paused; p != nil && !c.mayHave(t.task, history.ClaimTask) {
		c.fails(RuleTrailPaused, e, "the type %s was paused by %s, and no change of it comes before", t.kind, tell(p))
	}
}

// checkChoice checks that the claim took the first task that it could.
func (c *trailChecker) checkChoice(t *life, e *history.Told) {
	i, ok := c.claims[end{e.Kind, e.TaskID, e.Token}]
	if !ok || t.kind == "" {
		return
	}
	c.chosen++
	op := &c.ops[i]
	if !wants(op, t) {
		c.Violate(RuleChoice, t.id, []int{i}, "the claim asked for types %v and got task %d of type %s", op.Types, t.id, t.kind)
	}
	best := c.best(op, never)
	if best != nil && comesFirst(op, best, t) && (c.fair[t.kind] == nil || op.SortBy != "" || best.priority > t.priority) { // a fair type's oldest task won, another share had its turn
		c.Violate(RuleChoice, t.id, []int{i}, "the claim took task %d (priority %d) at index %d, although task %d (priority %d) was pending from index %d on",
			t.id, t.priority, e.Index, best.id, best.priority, best.since)
	}
}

// best returns the first task that the claim may take and that was certainly pending before the entry, nil if no
// such task exists.
func (c *trailChecker) best(op *history.Op, before uint64) *life {
	var best *life
	for _, t := range c.pending {
		if t.since < before && wants(op, t) && (best == nil || comesFirst(op, t, best)) {
			best = t
		}
	}
	return best
}

// wants reports whether the claim takes tasks of the type.
func wants(op *history.Op, t *life) bool {
	return len(op.Types) == 0 || slices.Contains(op.Types, t.kind)
}

// comesFirst reports whether the claim takes a before b.
func comesFirst(op *history.Op, a, b *life) bool {
	if op.SortBy != "created_at" && a.priority != b.priority {
		return a.priority > b.priority
	}
	return a.id < b.id
}

// follow keeps the tasks that are certainly pending and open to every claim of their type. It leaves out those that
// wait for their time, those that their group or their type's limit or pause may hold back, and steps, whose type is
// not known before an answer shows it.
func (c *trailChecker) follow(t *life) {
	delete(c.pending, t.id)
	if c.isOpen(t) && !c.limited[t.kind] {
		c.pending[t.id] = t
	}
}
