package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
)

// Rules of this package.
const (
	RuleLate     check.Rule = "lease-late" // an ended lease is requeued in time
	RuleRecovery check.Rule = "recovery"   // the cluster recovers in time
	RuleEqual    check.Rule = "equal"      // all nodes hold the same
	RuleExit     check.Rule = "exit"       // no process ends by itself
	RuleBounds   check.Rule = "bounds"     // memory, files and goroutines are bounded
	RuleInternal check.Rule = "internal"   // no answer is a bug's
)

// Verdict is what was found in a run.
type Verdict struct {
	Parts   []check.Part
	Elapsed time.Duration

	history *history.History
}

// OK reports whether the run passes.
func (v Verdict) OK() bool {
	return !slices.ContainsFunc(v.Parts, func(p check.Part) bool { return !p.OK() })
}

// Judge judges h.
func Judge(h *history.History) Verdict {
	started := time.Now()
	v := Verdict{history: h}
	drained := (h.Run == nil || h.Run.Drained) && h.Final != nil // else the run could not be finished
	v.Parts = check.Parts(h, check.Options{Drained: drained})
	if h.Run != nil {
		v.Parts = append(v.Parts, leases(h), recovery(h), equality(h), processes(h))
	}
	v.Elapsed = time.Since(started)
	return v
}

// String says what was found, each violation with the calls it is about.
func (v Verdict) String() string {
	var b strings.Builder
	for _, p := range v.Parts {
		mark := "ok  "
		if !p.OK() {
			mark = "FAIL"
		}
		fmt.Fprintf(&b, "%s %-9s %s\n", mark, p.Name, p.Summary)
	}
	for _, p := range v.Parts {
		b.WriteString(p.Found(v.history))
	}
	verdict := "the run passes"
	if !v.OK() {
		verdict = "THE RUN FAILS"
	}
	fmt.Fprintf(&b, "%s (judged in %v)\n", verdict, v.Elapsed.Round(time.Millisecond))
	return b.String()
}

// First returns the first rule that was broken, in the order of the parts, and
// the part. ok is false if nothing was found.
func (v Verdict) First() (part string, rule check.Rule, ok bool) {
	for _, p := range v.Parts {
		if len(p.Violations) > 0 {
			return p.Name, p.Violations[0].Rule, true
		}
	}
	return "", "", false
}

// CaughtAfter returns how much of a run that fails would have been enough: the
// time after which the answers alone, without the state at the end, fail. It is
// the run's end if they never do.
func (v Verdict) CaughtAfter() time.Duration {
	last := end(v.history)
	low, high := time.Duration(0), last // passes until low, fails at high or needs the end
	for high-low > caughtStep {
		middle := (low + high) / 2
		if fails(until(v.history, int64(middle))) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// caughtStep is how exactly CaughtAfter looks.
const caughtStep = 100 * time.Millisecond

// fails reports whether the answers of h fail.
func fails(h *history.History) bool {
	all := append(check.Parts(h, check.Options{}), leases(h))
	return slices.ContainsFunc(all, func(p check.Part) bool { return !p.OK() })
}

// until returns what was known of h at a time.
func until(h *history.History, at int64) *history.History {
	early := &history.History{Run: h.Run, Events: h.Events, Samples: h.Samples}
	for i, op := range h.Ops {
		switch {
		case op.Call > at:
			continue
		case op.Return > at: // nobody knows yet the outcome
			op = history.Op{
				Process: op.Process, Kind: op.Kind, Call: op.Call, Return: at, Outcome: history.Unknown, TaskID: asked(&op), Token: sent(&op),
				RequestID: op.RequestID, Worker: op.Worker, Key: op.Key, Limit: op.Limit, LeaseMS: op.LeaseMS, MaxAttempts: op.MaxAttempts,
				Plan: op.Plan, Goal: op.Goal,
			}
			if asked := &h.Ops[i]; asked.Kind == history.Act {
				op.TaskType, op.Status, op.Action = asked.TaskType, asked.Status, asked.Action
			}
		}
		early.Ops = append(early.Ops, op)
	}
	return early
}

// asked returns the task that op asked for, 0 if its answer names it.
func asked(op *history.Op) uint64 {
	if op.Kind == history.Submit || op.Kind == history.Claim {
		return 0
	}
	return op.TaskID
}

// sent returns the token that op sent, 0 if its answer names it.
func sent(op *history.Op) uint64 {
	if op.Kind == history.Claim || op.Kind == history.ClaimTask || op.Kind == history.ClaimFinalization {
		return 0
	}
	return op.Token
}

// end returns when the last call returned.
func end(h *history.History) time.Duration {
	last := int64(0)
	for i := range h.Ops {
		last = max(last, h.Ops[i].Return)
	}
	return time.Duration(last)
}
