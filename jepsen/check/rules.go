package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// Rule names what a violation broke.
type Rule string

// The rules of what was answered.
const (
	RuleKey         Rule = "key"         // one key, one task
	RuleUnsubmitted Rule = "unsubmitted" // a task that nobody submitted
	RuleSent        Rule = "sent"        // a task is what was submitted
	RuleRepeat      Rule = "repeat"      // a repeat gets the first answer
	RuleOverlap     Rule = "overlap"     // claims of one task do not overlap
	RuleLeaseEarly  Rule = "lease-early" // a lease never ends early
	RuleLate        Rule = "lease-late"  // an ended lease is requeued in time
	RuleDelay       Rule = "delay-early" // no claim before the task's time
	RuleWait        Rule = "wait-early"  // a read that waits does, or shows the end
	RuleUnfinished  Rule = "unfinished"  // after draining, all have ended
	RuleFinalizers  Rule = "finalizers"  // one processor at a time has a parent
)

// The rules of the log indexes that answers carry.
const (
	RuleIndex Rule = "index"       // every answer carries its index
	RuleTime  Rule = "index-time"  // indexes keep real time
	RuleOrder Rule = "index-order" // the log's order explains the answers about a task
)

// The rules of the trail.
const (
	RuleTrailOrder   Rule = "trail-order"   // places, ids and tokens grow, the calendar does not go back
	RuleTrailLife    Rule = "trail-life"    // the events of a task are one life
	RuleTrailAcked   Rule = "trail-acked"   // what was acknowledged has its event, once
	RuleTrailUnasked Rule = "trail-unasked" // what nobody asked for has none
	RuleTrailWhole   Rule = "trail-whole"   // what is one step is done in one entry, or not at all
	RuleGroup        Rule = "group"         // claims of one group do not overlap
	RuleLimit        Rule = "max-claimed"   // no more claims of a type live than it allows
	RuleTrailPaused  Rule = "trail-paused"  // no claim takes a task of a paused type
	RuleTrailActs    Rule = "trail-acts"    // an action on many changed as many as it says
	RuleTrailSteps   Rule = "trail-steps"   // steps wait for each other, and their parent for all of them
	RuleSlots        Rule = "slots"         // a schedule goes on while the log does
	RuleChoice       Rule = "choice"        // a claim takes the first task that it can
	RuleNone         Rule = "no-task"       // "no task" only when there is none
	RuleShown        Rule = "shown"         // reads and lists show what there is
	RuleList         Rule = "list"          // lists are in order, and leave out nothing
)

// The rules of the whole run.
const (
	RuleRecovery   Rule = "recovery"    // the cluster recovers in time
	RuleEqual      Rule = "equal"       // all nodes hold the same
	RuleTrailEqual Rule = "trail-equal" // and tell the same trail
	RuleExit       Rule = "exit"        // no process ends by itself
	RuleBounds     Rule = "bounds"      // memory, files and goroutines are bounded
	RuleInternal   Rule = "internal"    // no answer is a bug's
	RuleReads      Rule = "reads"       // heavy reads are answered, or refused by name
	RuleKeeps      Rule = "keeps"       // the leader stays while nothing is done to the nodes
	RuleTurns      Rule = "turns"       // who reads alone waits for few of those that crowd with another key
	RuleBeside     Rule = "beside"      // no answer to a tenant has a mark of another caller
)

// Violation is one thing that a correct queue would not have answered.
type Violation struct {
	Rule Rule
	Task uint64 // 0 = none in particular
	Text string
	Ops  []int // indexes into the history's ops
	At   int64 // when it was seen, ns of the recorder's clock; 0: Ops tell
}

// Part is what one of the checks found.
type Part struct {
	Name string // of the check
	// Summary says in a line what was looked at.
	Summary string
	// Violations are the first of ViolationCount.
	Violations     []Violation
	ViolationCount int
	// Undecided are the tasks whose search for an order ran out of time.
	Undecided []uint64
}

// violationsMax bounds the violations that a part keeps. All are counted.
const violationsMax = 100

// OK reports whether the part found nothing, and left nothing undecided.
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
