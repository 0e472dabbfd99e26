package check

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/claimq/claimq/jepsen/history"
)

// hiddenMax bounds the unseen claims of one task that the search considers.
const hiddenMax = 8

// verdict is what the search for an order said of one task.
type verdict struct {
	result porcupine.CheckResult
	ops    []int // of an illegal one: those that no order has a place for
	calls  int
}

// checkLinearizable looks, for each task that no rule complained about, for an
// order of its calls that explains all their answers.
func (c *checker) checkLinearizable() {
	var ids []uint64
	for _, id := range c.ids {
		if !c.broken[id] && c.tasks[id].plan == nil { // parents have rules of their own
			ids = append(ids, id)
		}
	}
	verdicts := make([]verdict, len(ids))
	var wait sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wait.Go(func() {
			for i := w; i < len(ids); i += workers {
				verdicts[i] = c.linearize(c.tasks[ids[i]])
			}
		})
	}
	wait.Wait()
	for i, v := range verdicts {
		switch v.result {
		case porcupine.Illegal:
			c.violate(RuleLinearizable, ids[i], v.ops, "task %d: no order of its %d calls explains all their answers; %s", ids[i], v.calls, noPlace(c.h, v.ops))
		case porcupine.Unknown:
			c.report.Undecided = append(c.report.Undecided, ids[i])
		}
	}
}

// noPlace says which ops the longest order that fits leaves out.
func noPlace(h *history.History, ops []int) string {
	if len(ops) == 0 {
		return "the state at the end has no place in it"
	}
	var said []string
	for _, i := range ops {
		said = append(said, string(h.Ops[i].Kind))
	}
	return "the longest that fits has no place for: " + strings.Join(said, ", ")
}

// linearize searches an order of the task's calls.
func (c *checker) linearize(t *task) verdict {
	l := c.limits(t)
	ops := c.calls(t)
	v := verdict{calls: len(ops)}
	v.result = porcupine.CheckOperationsTimeout(l.model(), ops, c.opts.TaskTimeout)
	if v.result == porcupine.Illegal {
		_, info := porcupine.CheckOperationsVerbose(l.model(), ops, c.opts.TaskTimeout)
		v.ops = leftOut(ops, info)
	}
	return v
}

// leftOut returns the answered ops that the longest partial order leaves out.
func leftOut(ops []porcupine.Operation, info porcupine.LinearizationInfo) []int {
	var longest []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, order := range partition {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	placed := map[*call]bool{}
	for i := range longest {
		placed[longest[i].Input.(*call)] = true
	}
	var left []int
	for i := range ops {
		in := ops[i].Input.(*call)
		if !placed[in] && in.op >= 0 && in.outcome != history.Unknown {
			left = append(left, in.op)
		}
	}
	return left
}

// limits says what the model needs to know of the task.
func (c *checker) limits(t *task) limits {
	l := limits{}
	if t.submit != nil {
		l.maxAttempts = t.submit.maxAttempts
	} else {
		l.maxAttempts, l.unlimitedToo = 1, true // nobody knows
	}
	for _, i := range t.ops {
		op := &c.h.Ops[i]
		if op.Kind == history.Retry && op.Outcome != history.Failed {
			l.unlimitedToo = true // it may have raised the limit
		}
	}
	switch {
	case t.parentID != 0:
		l.step = c.stepLimits(t)
	case t.orphan: // nothing is known of its parent
		l.step = stepLimits{is: true, depends: true, cancelled: true, retried: true, deleted: true}
	}
	hidden := min(c.hiddenClaims, hiddenMax)
	if t.final != nil && !c.hiddenReleases {
		// Each unseen claim is in the count of attempts, which the state at the
		// end tells. Without this the search of every task would try them all.
		low, _ := c.attempts(t)
		hidden = min(hidden, int(t.final.Attempts)-low)
	}
	l.hiddenMax = int32(hidden)
	return l
}

// calls returns the task's calls for the search: submits and claims folded,
// without those that cannot change the task and whose answers say nothing
// of it, and with the state at the end as a last read.
func (c *checker) calls(t *task) []porcupine.Operation {
	var ops []porcupine.Operation
	put := func(from, to int64, in call) {
		ops = append(ops, porcupine.Operation{Call: from, Return: to, Input: &in})
	}
	switch s := t.submit; {
	case s == nil: // made by a submit that nobody knows the answer of
		put(0, never, call{kind: history.Submit, outcome: history.Unknown, op: -1})
	case s.acked < 0:
		put(s.call, never, call{kind: history.Submit, outcome: history.Unknown, op: -1})
	default:
		put(s.call, s.ret, call{kind: history.Submit, outcome: history.OK, op: s.acked})
	}
	for i := range t.claims {
		cl := &t.claims[i]
		put(cl.call, cl.ret, call{kind: history.Claim, outcome: history.OK, token: cl.token, attempts: cl.attempts, op: cl.op})
	}
	for _, i := range t.ops {
		op := &c.h.Ops[i]
		if c.folded(t, op) || saysNothing(op) || (t.parentID != 0 || t.orphan) && saysOfParent(op) {
			continue
		}
		in := call{kind: op.Kind, token: op.Token, outcome: op.Outcome, code: op.Code, repeated: op.Repeated, attempts: -1, seen: op.Seen, op: i}
		if in.outcome == history.Unknown {
			in.code = ""
		}
		put(c.earliest(op), ended(op), in)
	}
	for _, i := range t.acts {
		op := &c.h.Ops[i]
		in := call{kind: history.Kind(op.Action), outcome: op.Outcome, attempts: -1, many: true, op: i}
		if op.More {
			in.outcome = history.Unknown // it may not have come to this one
		}
		in.only, _ = phaseOf(op.Status)
		put(op.Call, ended(op), in)
	}
	if f := c.h.Final; f != nil {
		end := call{kind: history.Get, outcome: history.OK, seen: t.final, op: -1}
		if t.final == nil {
			end.outcome, end.code = history.Failed, "task_not_found"
		}
		put(f.Call, f.Return, end)
	}
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return int(min(max(a.Call-b.Call, -1), 1)) })
	return ops
}

// waitMargin is how much sooner than it was asked to a node may look again at the task
// whose end a read waits for: times are rounded where a wait is passed on.
const waitMargin = 5 * int64(time.Millisecond)

// earliest returns when op took effect at the earliest. A read that waits and shows a
// task that has not ended looked at it when its time was over.
func (c *checker) earliest(op *history.Op) int64 {
	if op.Kind != history.Get || op.WaitMS == 0 || op.Outcome != history.OK || hasEnded(op.Seen.Status) {
		return op.Call
	}
	return max(op.Call, min(op.Return, op.Call+op.WaitMS*int64(time.Millisecond)-waitMargin))
}

// stepLimits says what may become of a step without a call that names it.
func (c *checker) stepLimits(t *task) stepLimits {
	parent := c.tasks[t.parentID]
	l := stepLimits{is: true, depends: len(parent.plan.Steps[t.place].DependsOn) > 0}
	l.deleted, l.retried = c.mayHave(parent, history.Delete), c.mayHave(parent, history.Retry)
	for place := range parent.plan.Steps {
		s := c.tasks[t.parentID+1+uint64(place)]
		// One that fails, or may when its lease ends, cancels others.
		if s != nil && (parent.plan.Steps[place].MaxAttempts > 0 || c.mayHave(s, history.Fail)) {
			l.cancelled = true
		}
	}
	return l
}

// saysOfParent reports whether a call of a step was refused for the sake of its
// parent: a step is never deleted by itself, and one of a parent that has ended
// not retried.
func saysOfParent(op *history.Op) bool {
	return op.Outcome == history.Failed && (op.Kind == history.Delete || op.Kind == history.Retry)
}

// folded reports whether the op is in the task's submit or one of its claims.
func (c *checker) folded(t *task, op *history.Op) bool {
	switch op.Kind {
	case history.Submit, history.Claim:
		return op.Outcome != history.Failed
	case history.ClaimTask:
		if op.Outcome == history.Unknown { // of an answered request?
			r := c.requests[op.RequestID]
			return r != nil && len(r.answers) > 0
		}
		return op.Outcome == history.OK
	}
	return false
}

// saysNothing reports whether the op neither changes the task nor says
// anything about its state now.
func saysNothing(op *history.Op) bool {
	switch op.Kind {
	case history.Get:
		if op.Stale {
			return true
		}
	case history.ClaimFinalization, history.ExtendFinalization, history.ReleaseFinalization, history.Finalize:
		return true // of a task without steps they say nothing
	}
	switch op.Outcome {
	case history.Failed:
		return !saysOfTask(op.Code)
	case history.Unknown:
		return op.Kind == history.Extend || op.Kind == history.Get
	}
	return false
}
