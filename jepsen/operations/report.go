package operations

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
)

// Stage is one act, and the load beside it.
type Stage struct {
	Name   string
	Writes int           // that were answered during it
	Pause  time.Duration // the longest time without an answered write
	Took   time.Duration

	from, to int64 // of the recorder's clock
}

// Report says the outcome of a run.
type Report struct {
	Seed        int64
	Stages      []Stage
	BackupIndex uint64
	BackupTasks int
	Lost        int // answers after the backup, which nobody promised to keep
	Calls       int
	Unknown     int
	Retried     int // calls that were repeated, because they were refused or their outcome was not known
	Odd         int // answers that no client should see of what operators do
	Tasks       int // submitted and answered
	Claims      int // different tokens
	Wall        time.Duration
	Refused     map[string]int // calls that were not done, by code
	Violations  []string

	checks []finding
	notes  []string // in words

	backupFrom, restoredAt int64
	lostToken, lostID      uint64 // the highest that were answered before the loss
}

// steady are the stages during which writes may pause for PauseMax at most.
var steady = []string{"grow from 3 nodes to 5", "hand the leadership over", "restart each node, SIGTERM", "restart each node, kill -9", "shrink to 3 nodes, the leader first", "back up"}

// OK reports whether all was as it must be.
func (r *Report) OK() bool {
	for i := range r.checks {
		if c := &r.checks[i]; !c.OK() || c.Ops == 0 {
			return false
		}
	}
	return len(r.Violations) == 0 && len(r.checks) > 0
}

// finding is what the checker says of a part of what was answered.
type finding struct {
	check.Report
	what string
}

// check has what was answered until the end of all tasks checked.
func (r *Report) check(what string, h *history.History) {
	r.checks = append(r.checks, finding{check.Check(h, check.Options{Drained: true}), what})
}

func (r *Report) violate(format string, args ...any) {
	r.Violations = append(r.Violations, fmt.Sprintf(format, args...))
}

// measure fills in what follows from the history. If patient, pauses are told alone.
func (r *Report) measure(h *history.History, patient bool) {
	tasks, tokens := map[uint64]bool{}, map[uint64]bool{}
	r.Refused = map[string]int{}
	var done []int64 // when writes were answered
	r.Calls = len(h.Ops)
	for i := range h.Ops {
		op := &h.Ops[i]
		if op.Outcome != history.OK {
			r.Refused[op.Code]++
			if op.Outcome == history.Unknown {
				r.Unknown++
			}
			if slices.Contains(later, op.Code) {
				r.Retried++
			}
			if !slices.Contains(passing, op.Code) {
				r.Odd++
				r.violate("an odd answer: %s", check.Describe(op))
			}
			continue
		}
		switch op.Kind {
		case history.Get, history.List:
			continue
		case history.Submit:
			tasks[op.TaskID] = true
		case history.Claim:
			tokens[op.Token] = true
		}
		done = append(done, op.Return)
	}
	r.Tasks, r.Claims = len(tasks), len(tokens)
	slices.Sort(done)
	for i := range r.Stages {
		s := &r.Stages[i]
		s.measure(done)
		if !patient && slices.Contains(steady, s.Name) && s.Pause >= PauseMax {
			r.violate("%s: no write was answered for %v, below %v is promised", s.Name, s.Pause.Round(time.Millisecond), PauseMax)
		}
	}
}

// measure finds the longest time within the stage without an answered write.
func (s *Stage) measure(done []int64) {
	s.Took = time.Duration(s.to - s.from)
	last := s.from
	for _, at := range done {
		if at < s.from || at > s.to {
			continue
		}
		s.Writes++
		s.Pause = max(s.Pause, time.Duration(at-last))
		last = at
	}
	s.Pause = max(s.Pause, time.Duration(s.to-last))
}

// measureLoss notes the highest token and id that were answered before the loss.
func (r *Report) measureLoss(h *history.History) {
	for i := range h.Ops {
		r.lostToken, r.lostID = max(r.lostToken, h.Ops[i].Token), max(r.lostID, h.Ops[i].TaskID)
	}
}

// judgeReuse looks whether the new cluster gave an id or a token that the old one
// may have given.
func (r *Report) judgeReuse(h *history.History) {
	for i := range h.Ops {
		op := &h.Ops[i]
		if op.Call < r.restoredAt || op.Outcome != history.OK {
			continue
		}
		if op.Kind == history.Submit && op.Created && op.TaskID <= r.lostID {
			r.violate("the id %d was given after the restore; the old cluster had reached %d: %s", op.TaskID, r.lostID, check.Describe(op))
		}
		if op.Kind == history.Claim && !op.Repeated && op.Token <= r.lostToken {
			r.violate("the token %d was given after the restore; the old cluster had reached %d: %s", op.Token, r.lostToken, check.Describe(op))
		}
	}
}

// later are the codes that say to try again, there or elsewhere. Clients do.
var later = []string{"not_connected", "no_leader", "shutting_down", "overloaded", "no_answer", "outcome_unknown"}

// passing are the codes that callers may see: those of later, and those of answers that
// operators have nothing to do with.
var passing = append([]string{
	"no_pending_tasks", "stale_claim", "wrong_worker", "task_not_claimed", "task_completed", "task_failed", "task_cancelled", "max_attempts_reached", "task_not_found",
}, later...)

// violationsShown bounds the violations that are printed.
const violationsShown = 30

// String is the table, and below it what was found.
func (r *Report) String() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "act\ttook\twrites answered\tlongest time without one\n")
	for i := range r.Stages {
		s := &r.Stages[i]
		fmt.Fprintf(table, "%s\t%v\t%d\t%v\n", s.Name, s.Took.Round(100*time.Millisecond), s.Writes, s.Pause.Round(time.Millisecond))
	}
	_ = table.Flush() // into memory
	fmt.Fprintf(&b, "\n%d calls, %d repeated by their callers, %d of unknown outcome; %d tasks, %d claims; seed %d, %v\n",
		r.Calls, r.Retried, r.Unknown, r.Tasks, r.Claims, r.Seed, r.Wall.Round(time.Second))
	fmt.Fprintf(&b, "not done, by code: %v\n", r.Refused)
	for _, note := range r.notes {
		fmt.Fprintln(&b, note)
	}
	for i := range r.checks {
		fmt.Fprintf(&b, "%s: %s", r.checks[i].what, r.checks[i].Report)
	}
	fmt.Fprintf(&b, "violations: %d\n", len(r.Violations))
	for _, v := range r.Violations[:min(len(r.Violations), violationsShown)] {
		fmt.Fprintf(&b, "\n%s\n", v)
	}
	return b.String()
}
