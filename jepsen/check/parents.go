package check

import (
	"bytes"
	"encoding/json"

	"github.com/claimq/claimq/jepsen/history"
)

// checkParents checks the rules about parents and their steps that the model does not
// know, as it is of one task.
func (c *checker) checkParents() {
	for _, id := range c.ids {
		t := c.tasks[id]
		if t.plan == nil {
			continue
		}
		c.checkStepsWait(t)
		c.checkEnded(t)
		c.checkFinalParent(t)
	}
}

// steps returns the parent's steps, in the plan's order.
func (c *checker) steps(parent *task) []*task {
	steps := make([]*task, len(parent.plan.Steps))
	for place := range steps {
		steps[place] = c.tasks[parent.id+1+uint64(place)]
	}
	return steps
}

// checkStepsWait checks that no step was handed out, or shown as claimable,
// before somebody had begun to complete each step that it depends on.
func (c *checker) checkStepsWait(parent *task) {
	steps := c.steps(parent)
	for place, t := range steps {
		for _, on := range parent.plan.Steps[place].DependsOn {
			if on < 0 || on >= len(steps) {
				continue
			}
			from, by := c.firstComplete(steps[on])
			if i, ok := c.openBefore(t, from); ok {
				c.violate(RuleStepEarly, t.id, known(i, by), "task %d, step %s of task %d, was not blocked at %s, and step %s, which it depends on, was not completed before %s",
					t.id, parent.plan.Steps[place].Name, parent.id, clock(c.h.Ops[i].Return), parent.plan.Steps[on].Name, clockOrNever(from))
			}
		}
	}
}

// firstComplete returns when the first call was made that may have completed the
// task, never if there is none, and the op.
func (c *checker) firstComplete(t *task) (at int64, op int) {
	at, op = never, -1
	for _, i := range t.ops {
		if o := &c.h.Ops[i]; o.Kind == history.Complete && o.Outcome != history.Failed && o.Call < at {
			at, op = o.Call, i
		}
	}
	return at, op
}

// openBefore returns the first op that was answered before at and says that the
// task is or was claimable.
func (c *checker) openBefore(t *task, at int64) (op int, ok bool) {
	for _, i := range t.ops {
		o := &c.h.Ops[i]
		if o.Outcome != history.OK || o.Return >= at {
			continue
		}
		switch o.Kind {
		case history.Claim, history.ClaimTask, history.Complete, history.Fail, history.Release, history.Extend:
			return i, true
		case history.Get:
			switch o.Seen.Status {
			case statusPending, statusClaimed, statusCompleted, statusFailed:
				return i, true
			}
		}
	}
	return 0, false
}

func clockOrNever(ns int64) string {
	if ns == never {
		return "any time"
	}
	return clock(ns)
}

// checkEnded checks that the steps of a parent that is shown as ended had ended, and
// that nothing is done to them then, until somebody may have retried it.
func (c *checker) checkEnded(parent *task) {
	first := -1 // the answer that came first of those that show it as ended
	for _, i := range parent.ops {
		op := &c.h.Ops[i]
		if op.Outcome != history.OK || op.Seen == nil || !hasEnded(op.Seen.Status) {
			continue
		}
		if first < 0 || op.Return < c.h.Ops[first].Return {
			first = i
		}
		for place, status := range op.Seen.Steps {
			if !hasEnded(status) {
				c.violate(RuleParentEnd, parent.id, []int{i}, "task %d is shown as %s, and its step at place %d as %s", parent.id, op.Seen.Status, place, status)
			}
		}
	}
	if first < 0 {
		return
	}
	end := &c.h.Ops[first]
	retried := int64(never)
	for _, i := range parent.ops {
		if op := &c.h.Ops[i]; op.Kind == history.Retry && op.Outcome != history.Failed && ended(op) >= end.Call {
			retried = min(retried, op.Call)
		}
	}
	for _, t := range c.steps(parent) {
		for _, i := range t.ops {
			op := &c.h.Ops[i]
			if op.Call > end.Return && op.Return < retried && acts(op) {
				c.violate(RuleParentEnd, t.id, []int{first, i}, "task %d, a step of task %d: its %s took effect after its parent had ended", t.id, parent.id, op.Kind)
			}
		}
	}
}

// acts reports whether the op's answer says that it just did something to a task
// that has not ended.
func acts(op *history.Op) bool {
	if op.Outcome != history.OK || op.Repeated {
		return false
	}
	switch op.Kind {
	case history.Claim, history.ClaimTask, history.Complete, history.Fail, history.Release, history.Extend, history.Retry:
		return true
	}
	return false
}

// checkFinalParent checks how the parent ended by what its steps are at the end.
// How one ends that a processor ends is the processor's choice.
func (c *checker) checkFinalParent(parent *task) {
	f := parent.final
	if f == nil || !hasEnded(f.Status) {
		return
	}
	results := map[string]json.RawMessage{}
	completed := 0
	for place, t := range c.steps(parent) {
		if t.final == nil {
			return // it is lost, as the search says
		}
		if !hasEnded(t.final.Status) {
			c.violate(RuleParentEnd, parent.id, nil, "task %d is %s at the end, and its step %d is %s", parent.id, f.Status, t.id, t.final.Status)
		}
		if t.final.Status == statusCompleted {
			completed++
			results[parent.plan.Steps[place].Name] = raw(t.final.Result)
		}
	}
	if parent.plan.ByClaim {
		if f.Worker == "" {
			c.violate(RuleParentEnd, parent.id, nil, "task %d is %s at the end, and no processor did it", parent.id, f.Status)
		}
		return
	}
	want := statusFailed
	if completed == len(parent.plan.Steps) || parent.plan.Continue && completed > 0 {
		want = statusCompleted
	}
	if f.Status != want || f.Worker != "" {
		c.violate(RuleParentEnd, parent.id, nil, "task %d ended as %s of %q, by itself; %d of its %d steps completed, so it should be %s", parent.id, f.Status, f.Worker, completed, len(parent.plan.Steps), want)
		return
	}
	if want == statusCompleted && !sameResults(f.Result, results) {
		c.violate(RuleParentEnd, parent.id, nil, "task %d has the result %s; those of its steps are %s", parent.id, f.Result, results)
	}
}

// raw is a result as JSON, null if there is none.
func raw(result string) json.RawMessage {
	if result == "" {
		return json.RawMessage("null")
	}
	return json.RawMessage(result)
}

// sameResults reports whether result is an object of just these.
func sameResults(result string, want map[string]json.RawMessage) bool {
	var got map[string]json.RawMessage
	if json.Unmarshal([]byte(result), &got) != nil || len(got) != len(want) {
		return false
	}
	for name := range want {
		if !bytes.Equal(compact(got[name]), compact(want[name])) {
			return false
		}
	}
	return true
}

// compact drops the spaces of JSON; what is none stays as it is.
func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}
