package operations

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/recorder"
)

// stage is one act with the load during it.
type stage struct {
	name     string
	from, to int64         // of the recorder's clock
	writes   int           // answered during it
	pause    time.Duration // the longest time without an answered write
}

// Report holds the result of a run.
type Report struct {
	check.Part // findings other than the verdicts

	stages   []stage
	verdicts []verdict
	refused  map[string]int // calls that were not done, by code

	backupIndex            uint64
	lost                   int    // answers after the backup, which were allowed to be lost
	backupFrom, restoredAt int64  // of the recorder's clock
	lostToken, lostID      uint64 // the highest that were answered before the loss
}

// verdict is the judgement of a part of the answers.
type verdict struct {
	check.Verdict
	what string
}

// Rules of this package.
const (
	ruleOdd    check.Rule = "odd"    // operators' acts affect no answer except by "try again"
	rulePause  check.Rule = "pause"  // writes hardly pause while nodes are restarted
	ruleReuse  check.Rule = "reuse"  // a restored cluster never reuses an id or a token
	ruleBackup check.Rule = "backup" // what was answered before a backup began is in it
	ruleAgree  check.Rule = "agree"  // all nodes have the same state after a restore
	ruleReader check.Rule = "reader" // a reader of the trail from before a restore misses nothing and sees nothing twice, or is told
)

// steady lists the stages during which writes may pause for at most PauseMax.
var steady = []string{"grow from 3 nodes to 5", "hand the leadership over", "restart each node, SIGTERM", "restart each node, kill -9", "shrink to 3 nodes, the leader first", "back up"}

// OK reports whether the run passed.
func (r *Report) OK() bool {
	return r.Part.OK() && len(r.verdicts) > 0 && !slices.ContainsFunc(r.verdicts, func(v verdict) bool { return !v.OK() })
}

// First returns the first rule that was broken, those of this package before the verdicts'; "" if none was.
func (r *Report) First() check.Rule {
	if len(r.Violations) > 0 {
		return r.Violations[0].Rule
	}
	for _, v := range r.verdicts {
		if _, rule, _, found := v.First(); found {
			return rule
		}
	}
	return ""
}

// judge judges the answers until the end of all tasks.
func (r *Report) judge(what string, h *history.History) {
	r.verdicts = append(r.verdicts, verdict{check.Judge(h), what})
}

// found records a problem with the op that shows it, nil if none does.
func (r *Report) found(rule check.Rule, op *history.Op, format string, args ...any) {
	if op != nil {
		format, args = format+": %s", append(args, check.Describe(op))
	}
	r.Violate(rule, 0, nil, format, args...)
}

// measure fills in the figures that follow from the history.
func (r *Report) measure(h *history.History, cfg Config) {
	r.refused = map[string]int{}
	var done []int64 // when writes were answered
	for i := range h.Ops {
		op := &h.Ops[i]
		if op.Outcome != history.OK {
			r.refused[op.Code]++
			if odd(op) {
				r.found(ruleOdd, op, "an odd answer")
			}
		}
		if op.Changes() {
			done = append(done, op.Return)
		}
	}
	slices.Sort(done)
	for i := range r.stages {
		s := &r.stages[i]
		s.measure(done)
		if !cfg.Patient && slices.Contains(steady, s.name) && s.pause >= PauseMax {
			r.found(rulePause, nil, "%s: no write was answered for %v, below %v is promised", s.name, s.pause.Round(time.Millisecond), PauseMax)
		}
	}
}

// measure finds the longest time in the stage without an answered write.
func (s *stage) measure(done []int64) {
	last := s.from
	for _, at := range done {
		if at < s.from || at > s.to {
			continue
		}
		s.writes++
		s.pause = max(s.pause, time.Duration(at-last))
		last = at
	}
	s.pause = max(s.pause, time.Duration(s.to-last))
}

// odd reports whether operators' acts must not cause such an answer: it comes from a bug, or says
// neither to try again nor what state the task is in.
func odd(op *history.Op) bool {
	switch code := wire.Code(op.Code); {
	case code == wire.CodeInternal, code == recorder.CodeOddAnswer:
		return true
	case code == recorder.CodeWithOthers, recorder.Again(*op):
		return false
	default:
		return code.Status() != http.StatusNotFound && code.Status() != http.StatusConflict || code == wire.CodeMembershipRefused || code == wire.CodeClusterNotEmpty
	}
}

// measureLoss records the highest token and id that were answered before the loss.
func (r *Report) measureLoss(h *history.History) {
	for i := range h.Ops {
		r.lostToken, r.lostID = max(r.lostToken, h.Ops[i].Token), max(r.lostID, h.Ops[i].TaskID)
	}
}

// judgeReuse checks whether the new cluster gave an id or a token that the old one may have given.
func (r *Report) judgeReuse(h *history.History) {
	for i := range h.Ops {
		op := &h.Ops[i]
		if op.Call < r.restoredAt || op.Outcome != history.OK {
			continue
		}
		if op.Kind == history.Submit && op.Created && op.TaskID <= r.lostID {
			r.found(ruleReuse, op, "the id %d was given after the restore; the old cluster had reached %d", op.TaskID, r.lostID)
		}
		if op.Kind == history.Claim && !op.Repeated && op.TaskID != 0 && op.Token <= r.lostToken {
			r.found(ruleReuse, op, "the token %d was given after the restore; the old cluster had reached %d", op.Token, r.lostToken)
		}
	}
}

// String formats the report: the table, and below it the findings.
func (r *Report) String() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "act\ttook\twrites answered\tlongest time without one\n")
	for i := range r.stages {
		s := &r.stages[i]
		fmt.Fprintf(table, "%s\t%v\t%d\t%v\n", s.name, time.Duration(s.to-s.from).Round(100*time.Millisecond), s.writes, s.pause.Round(time.Millisecond))
	}
	_ = table.Flush() // into memory
	fmt.Fprintf(&b, "\nnot done, by code: %v\n", r.refused)
	for _, v := range r.verdicts {
		fmt.Fprintf(&b, "\n%s:\n%s", v.what, v)
	}
	fmt.Fprintf(&b, "%s\nviolations beside these: %d\n", r.Found(nil), r.ViolationCount)
	return b.String()
}
