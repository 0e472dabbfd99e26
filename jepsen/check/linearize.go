package check

import (
	"cmp"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/claimq/claimq/jepsen/history"
)

// hiddenMax bounds the unseen claims of one task that the search tries.
const hiddenMax = 8

// verdict is the result of the search for one task.
type verdict struct {
	result porcupine.CheckResult
	ops    []int // if illegal: the ops that fit in no order
	calls  int
}

// taskTimeout bounds the search for one task. A task whose search runs out of time is undecided,
// and then the run does not pass.
const taskTimeout = 10 * time.Second

// checkOrders looks, for each task, for an order of its calls that explains all answers.
func (p *Part) checkOrders(x *index) {
	verdicts := make([]verdict, len(x.ids))
	var wait sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wait.Go(func() {
			for i := w; i < len(x.ids); i += workers {
				verdicts[i] = x.linearize(x.tasks[x.ids[i]])
			}
		})
	}
	wait.Wait()
	for i, v := range verdicts {
		id := x.ids[i]
		switch v.result {
		case porcupine.Illegal:
			p.Violate(RuleOrder, id, v.ops, "task %d: no order of its %d calls explains all their answers; %s", id, v.calls, x.noPlace(x.tasks[id], v.ops))
		case porcupine.Unknown:
			p.Undecided = append(p.Undecided, id)
		}
	}
}

// noPlace describes the ops of the task that the longest possible order leaves out.
func (x *index) noPlace(t *task, ops []int) string {
	switch {
	case len(ops) == 0 && t.final == nil:
		return "the state at the end does not have it"
	case len(ops) == 0:
		return fmt.Sprintf("the state at the end has no place in it: %s, token %d, %d attempts, result %q", t.final.Status, t.final.Token, t.final.Attempts, t.final.Result)
	}
	var said []string
	for _, i := range ops {
		said = append(said, string(x.ops[i].Kind))
	}
	return "the longest that fits has no place for: " + strings.Join(said, ", ")
}

// linearize searches for an order of the task's calls.
func (x *index) linearize(t *task) verdict {
	l := x.limits(t)
	ops := x.calls(t)
	v := verdict{calls: len(ops)}
	v.result = porcupine.CheckOperationsTimeout(l.model(), ops, taskTimeout)
	if v.result == porcupine.Illegal {
		_, info := porcupine.CheckOperationsVerbose(l.model(), ops, taskTimeout)
		v.ops = leftOut(ops, info)
	}
	return v
}

// leftOut returns the answered ops that the longest possible order leaves out.
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

// limits returns the facts about the task that its model needs.
func (x *index) limits(t *task) limits {
	l := limits{parent: t.parent, auto: t.plan != nil && !t.plan.ByClaim, reopened: some(x.reopened(t))}
	if t.submit != nil {
		l.maxAttempts = t.submit.maxAttempts
	} else {
		l.maxAttempts, l.unlimitedToo = 1, true // the limit is not known
	}
	for range x.of(t, history.Retry) {
		l.unlimitedToo = true // it may have raised the limit
	}
	switch {
	case t.parentID != 0:
		l.step = x.stepLimits(t)
	case t.orphan(): // its parent is not known
		l.step = stepLimits{is: true, depends: true, cancelled: true, retried: true, deleted: true}
	}
	hidden := min(x.hiddenClaims, hiddenMax)
	if t.final != nil {
		// The attempts in the final state include each unseen claim that was not given back.
		// Without this bound every search would try all numbers of unseen claims.
		hidden = min(hidden, int(t.final.Attempts)-x.attempts(t)+x.givenBack[t.id])
	}
	l.hiddenMax = int32(hidden)
	return l
}

// attempts returns the least number of attempts that the seen claims of t account for. A release
// may have taken one off.
func (x *index) attempts(t *task) int {
	released := map[uint64]bool{}
	for _, op := range x.of(t, history.Release) {
		released[op.Token] = true
	}
	return len(t.claims) - len(released)
}

// calls returns the task's calls for the search. Submits and claims are combined, calls that
// neither change nor show the task are left out, and the final state is added as a last read.
func (x *index) calls(t *task) []porcupine.Operation {
	var ops []porcupine.Operation
	put := func(from, to int64, in call) {
		ops = append(ops, porcupine.Operation{Call: from, Return: to, Input: &in})
	}
	s := cmp.Or(t.submit, &submit{ret: never, acked: -1}) // submitted by a call whose answer is not known
	made := call{kind: history.Submit, outcome: history.OK, op: s.acked}
	if s.acked < 0 {
		made.outcome = history.Unknown
	}
	put(s.call, s.ret, made)
	for i := range t.claims {
		cl := &t.claims[i]
		if t.parent { // a claim of the finalization, see leases.go
			break
		}
		put(cl.call, cl.ret, call{kind: history.Claim, outcome: history.OK, token: cl.token, attempts: cl.attempts, op: cl.op})
	}
	for _, i := range t.ops {
		op := &x.ops[i]
		if x.folded(t, op) || t.saysNothing(op) || (t.parentID != 0 || t.orphan()) && saysOfParent(op) {
			continue
		}
		in := call{
			kind: op.Kind, token: op.Token, outcome: op.Outcome, code: op.Code, repeated: op.Repeated, attempts: -1, seen: op.Seen,
			worker: op.Worker, result: op.Result, goal: op.Goal, op: i,
		}
		if in.outcome == history.Unknown {
			in.code = ""
		}
		put(min(earliest(op), op.Return), ended(op), in)
	}
	for _, i := range t.acts {
		op := &x.ops[i]
		in := call{kind: history.Kind(op.Action), outcome: op.Outcome, attempts: -1, many: true, only: op.Status, op: i}
		if op.More {
			in.outcome = history.Unknown // it may not have reached this task
		}
		put(op.Call, ended(op), in)
	}
	if f := x.final; f != nil {
		end := call{kind: history.Get, outcome: history.OK, seen: t.final, op: -1}
		if t.final == nil {
			end.outcome, end.code = history.Failed, "task_not_found"
		}
		put(f.Call, f.Return, end)
	}
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return int(min(max(a.Call-b.Call, -1), 1)) })
	return ops
}

// stepLimits returns what may happen to a step without a call that names it.
func (x *index) stepLimits(t *task) stepLimits {
	parent := x.tasks[t.parentID]
	l := stepLimits{is: true, depends: len(parent.plan.Steps[t.place].DependsOn) > 0}
	l.deleted, l.retried = x.mayHave(parent, history.Delete), x.mayHave(parent, history.Retry)
	for place := range parent.plan.Steps {
		s := x.tasks[parent.stepID(place)]
		// A step that fails, or whose lease may end, cancels others.
		if s != nil && (parent.plan.Steps[place].MaxAttempts > 0 || x.mayHave(s, history.Fail)) {
			l.cancelled = true
		}
	}
	return l
}

// reopened yields the calls by which an ended parent may have run again for the sake of a step: the
// retries of its steps, if it ends although some fail.
func (x *index) reopened(parent *task) iter.Seq[*history.Op] {
	return func(yield func(*history.Op) bool) {
		if parent.plan == nil || !parent.plan.Continue {
			return
		}
		for place := range parent.plan.Steps {
			s := x.tasks[parent.stepID(place)]
			if s == nil {
				continue
			}
			for _, op := range x.of(s, history.Retry) {
				if !yield(op) {
					return
				}
			}
			for _, i := range s.acts {
				if x.ops[i].Action == string(history.Retry) && !yield(&x.ops[i]) {
					return
				}
			}
		}
	}
}

// some reports whether there is such a call.
func some(calls iter.Seq[*history.Op]) bool {
	for range calls {
		return true
	}
	return false
}

// saysOfParent reports whether a call for a step was refused because of its parent: a step is never
// deleted alone, and not retried once its parent has ended, unless that may run again.
func saysOfParent(op *history.Op) bool {
	return op.Outcome == history.Failed && (op.Kind == history.Delete || op.Kind == history.Retry)
}

// folded reports whether the op is part of the task's submit or of one of its claims.
func (x *index) folded(t *task, op *history.Op) bool {
	switch op.Kind {
	case history.Submit, history.Claim:
		return op.Outcome != history.Failed
	case history.ClaimTask:
		if op.Outcome == history.Unknown { // of an answered request?
			r := x.requests[op.RequestID]
			return r != nil && len(r.answers) > 0
		}
		return op.Outcome == history.OK
	}
	return false
}

// saysNothing reports whether the op neither changes the task nor shows its current state.
func (t *task) saysNothing(op *history.Op) bool {
	switch op.Kind {
	case history.Get:
		if op.Stale {
			return true
		}
	case history.ClaimFinalization, history.ExtendFinalization, history.ReleaseFinalization:
		return true // they do not change the state
	case history.AddSteps:
		return op.Outcome != history.OK // it may be refused for the sake of other steps
	case history.Finalize:
		if !t.parent { // the refusal says nothing about a task without steps
			return true
		}
	}
	switch op.Outcome {
	case history.Failed: // a refusal for a parent shows that its finalization is held, or something about its steps
		return !saysOfTask(op.Code) || t.parent && op.Code != "task_not_found"
	case history.Unknown:
		return op.Kind == history.Extend || op.Kind == history.Get
	}
	return false
}
