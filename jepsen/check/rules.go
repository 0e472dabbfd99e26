package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// Rule names the rule that a violation broke.
type Rule string

// The rules for answers.
const (
	RuleKey         Rule = "key"         // one key, one task
	RuleUnsubmitted Rule = "unsubmitted" // every task was submitted
	RuleSent        Rule = "sent"        // a task keeps what it was submitted with
	RuleRepeat      Rule = "repeat"      // a repeat gets the first answer
	RuleOverlap     Rule = "overlap"     // claims of one task never overlap
	RuleLeaseEarly  Rule = "lease-early" // a lease never ends early
	RuleLate        Rule = "lease-late"  // an ended lease is requeued in time
	RuleDelay       Rule = "delay-early" // no claim before the task's time
	RuleWait        Rule = "wait-early"  // a read that waits for the end does so
	RuleUnfinished  Rule = "unfinished"  // after a drain, all tasks have ended
	RuleFinalizers  Rule = "finalizers"  // one processor at a time holds a parent
)

// The rules for the log indexes in answers.
const (
	RuleIndex Rule = "index"       // every answer carries its index
	RuleTime  Rule = "index-time"  // indexes keep real time
	RuleOrder Rule = "index-order" // the log's order explains the answers about a task
)

// The rules for the trail.
const (
	RuleTrailOrder   Rule = "trail-order"   // places, ids and tokens grow, the calendar does not go back
	RuleTrailLife    Rule = "trail-life"    // the events of a task are one life
	RuleTrailAcked   Rule = "trail-acked"   // an acknowledged change has its event, once
	RuleTrailUnasked Rule = "trail-unasked" // every event has a call that asked for it
	RuleTrailWhole   Rule = "trail-whole"   // an atomic call is applied in one entry, or has no effect
	RuleGroup        Rule = "group"         // claims of one group do not overlap
	RuleLimit        Rule = "max-claimed"   // a type or a share never has more live claims than its limit
	RuleFair         Rule = "fair"          // shares of a fair type take turns
	RuleTrailPaused  Rule = "trail-paused"  // only a claim by id takes a task of a paused type
	RuleTrailActs    Rule = "trail-acts"    // an action on many tasks changed as many as it says
	RuleTrailSteps   Rule = "trail-steps"   // steps wait for each other, and their parent for all of them
	RuleSlots        Rule = "slots"         // a schedule continues while the log does
	RuleChoice       Rule = "choice"        // a claim takes the first task that it may
	RuleNone         Rule = "no-task"       // "no task" is answered only if there is no task
	RuleShown        Rule = "shown"         // reads and lists show the state
	RuleList         Rule = "list"          // lists are in order and complete
)

// The rules for the run as a whole.
const (
	RuleRecovery   Rule = "recovery"    // the cluster recovers in time
	RuleEqual      Rule = "equal"       // all nodes have the same state
	RuleTrailEqual Rule = "trail-equal" // all nodes have the same trail
	RuleExit       Rule = "exit"        // no process exits by itself
	RuleBounds     Rule = "bounds"      // memory, files and goroutines are bounded
	RuleInternal   Rule = "internal"    // no answer reports a bug of the server
	RuleReads      Rule = "reads"       // heavy reads are answered or refused with a known code
	RuleKeeps      Rule = "keeps"       // without faults the leader stays
	RuleTurns      Rule = "turns"       // a lone reader does not wait for a crowd with another key
	RuleBeside     Rule = "beside"      // no answer to a tenant has another caller's mark
)

// Violation is one answer or event that a correct queue would not produce.
type Violation struct {
	Rule Rule
	Task uint64 // 0 = no particular task
	Text string
	Ops  []int // indexes into the history's ops
	At   int64 // when it was seen, in ns of the recorder's clock; 0: the ops' own times
}

// Part is the result of one check.
type Part struct {
	Name string // of the check
	// Summary is one line on what the check looked at.
	Summary string
	// Violations has the first of ViolationCount violations.
	Violations     []Violation
	ViolationCount int
	// Undecided are the tasks whose search for an order ran out of time.
	Undecided []uint64
}

// violationsMax bounds the violations that a part keeps. All are counted.
const violationsMax = 100

// OK reports whether the part has no violation and no undecided task.
func (p *Part) OK() bool { return p.ViolationCount == 0 && len(p.Undecided) == 0 }

// Violate notes a violation by ops, those below 0 left out.
func (p *Part) Violate(rule Rule, taskID uint64, ops []int, format string, args ...any) {
	if p.ViolationCount++; len(p.Violations) < violationsMax {
		ops = slices.DeleteFunc(slices.Clone(ops), func(i int) bool { return i < 0 })
		slices.Sort(ops)
		p.Violations = append(p.Violations, Violation{Rule: rule, Task: taskID, Text: fmt.Sprintf(format, args...), Ops: slices.Compact(ops)})
	}
}

// ViolateAt notes a violation that was seen at a time, by no op.
func (p *Part) ViolateAt(at int64, rule Rule, format string, args ...any) {
	p.Violate(rule, 0, nil, "%s: %s", clock(at), fmt.Sprintf(format, args...))
	if p.ViolationCount == len(p.Violations) {
		p.Violations[len(p.Violations)-1].At = at
	}
}

// Found says what was found in h, each violation with the calls that it is about; ""
// if nothing.
func (p *Part) Found(h *history.History) string {
	var b strings.Builder
	for _, v := range p.Violations {
		fmt.Fprintf(&b, "\n[%s: %s] %s\n", p.Name, v.Rule, v.Text)
		for _, i := range v.Ops {
			fmt.Fprintf(&b, "    #%d %s\n", i, Describe(&h.Ops[i]))
		}
	}
	if more := p.ViolationCount - len(p.Violations); more > 0 {
		fmt.Fprintf(&b, "\n%s: ... and %d more\n", p.Name, more)
	}
	if len(p.Undecided) > 0 {
		fmt.Fprintf(&b, "\n%s: undecided tasks: %v\n", p.Name, p.Undecided)
	}
	return b.String()
}

// Describe says one op in a line: when it was, and all that the history has of it but the
// tasks of a list.
func Describe(op *history.Op) string {
	said := *op
	said.Listed = nil
	return fmt.Sprintf("%s..%s %s", clock(op.Call), clock(op.Return), asJSON(said))
}

// tell says an event of the trail in a line.
func tell(e *history.Told) string { return asJSON(e) }

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// clock is a time of the recorder in seconds.
func clock(ns int64) string { return fmt.Sprintf("%.6fs", time.Duration(ns).Seconds()) }
