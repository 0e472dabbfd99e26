package check

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/claimq/claimq/jepsen/history"
)

// queue is a correct one in miniature: entries of a few commands, each answered
// with its entry's index, and reads between them.
type queue struct {
	rng   *rand.Rand
	h     *history.History
	index uint64
	now   int64
	tasks []*history.Task
	token uint64
	names int
	sub   uint32 // of the entry's next event
	// unseen are claims whose answer was lost: they can only end.
	unseen map[uint64]bool
}

// newHistory returns the answers of a correct queue, with ends of
// leases and claims whose answer was lost.
func newHistory(seed int64, entries int) *history.History {
	l := &queue{rng: rand.New(rand.NewSource(seed)), h: &history.History{}, unseen: map[uint64]bool{}}
	for range entries {
		l.entry()
	}
	final := &history.Final{Call: l.now + 10, Return: l.now + 20}
	for _, t := range l.tasks {
		final.Tasks = append(final.Tasks, *t)
	}
	l.h.Final = final
	return l.h
}

// entry applies an entry of one to four commands, all called before it and
// answered after it, and then makes some reads.
func (l *queue) entry() {
	l.index++
	l.now += 100
	l.sub = 0
	for n := range 1 + l.rng.Intn(4) {
		op := history.Op{Process: n, Call: l.now, Return: l.now + 50, Outcome: history.OK, Index: l.index}
		l.command(op)
	}
	l.now += 100
	for n := range l.rng.Intn(3) {
		l.read(history.Op{Process: 10 + n, Call: l.now, Return: l.now + 50, Outcome: history.OK, Index: l.index})
	}
}

func (l *queue) add(op history.Op) { l.h.Ops = append(l.h.Ops, op) }

// tell adds events of the task to the trail.
func (l *queue) tell(t *history.Task, token uint64, worker string, kinds ...string) {
	for _, kind := range kinds {
		l.h.Trail = append(l.h.Trail, history.Told{Index: l.index, Sub: l.sub, Kind: kind, TaskID: t.ID, Token: token, Worker: worker})
		l.sub++
	}
}

func (l *queue) command(op history.Op) {
	claimed := l.with("claimed")
	switch n := l.rng.Intn(10); {
	case n < 4:
		l.names++
		t := &history.Task{
			ID: uint64(len(l.tasks) + 1), Key: fmt.Sprintf("k%d", l.names), Status: "pending",
			Type: string(rune('a' + l.rng.Intn(2))), Priority: int32(l.rng.Intn(3)),
		}
		l.tasks = append(l.tasks, t)
		l.tell(t, 0, "", "submitted")
		op.Kind, op.TaskID, op.Key, op.Created, op.TaskType, op.Priority = history.Submit, t.ID, t.Key, true, t.Type, t.Priority
	case n < 7:
		l.claim(op)
		return
	case len(claimed) == 0:
		return
	case n == 7: // its lease ends, without an answer
		t := claimed[l.rng.Intn(len(claimed))]
		l.tell(t, t.Token, t.Worker, "lease_expired", "requeued")
		t.Status, t.Token, t.Worker = "pending", 0, ""
		return
	default:
		t := claimed[l.rng.Intn(len(claimed))]
		if l.unseen[t.Token] {
			return
		}
		op.TaskID, op.Token, op.Worker = t.ID, t.Token, t.Worker
		switch l.rng.Intn(3) {
		case 0:
			l.tell(t, t.Token, t.Worker, "completed")
			op.Kind, t.Status = history.Complete, "completed"
		case 1:
			l.tell(t, t.Token, t.Worker, "failed", "requeued")
			op.Kind, t.Status, t.Token, t.Worker = history.Fail, "pending", 0, ""
		default:
			l.tell(t, t.Token, t.Worker, "released", "requeued")
			op.Kind, t.Status, t.Token, t.Worker = history.Release, "pending", 0, ""
			t.Attempts--
		}
		seen := *t
		op.Seen = &seen
	}
	l.add(op)
}

func (l *queue) claim(op history.Op) {
	l.names++
	op.Kind, op.Worker, op.RequestID = history.Claim, fmt.Sprintf("w%d", op.Process), fmt.Sprintf("r%d", l.names)
	if l.rng.Intn(2) == 0 {
		op.Types = []string{string(rune('a' + l.rng.Intn(2)))}
	}
	if l.rng.Intn(3) == 0 {
		op.SortBy = "created_at"
	}
	t := l.best(op.Types, op.SortBy != "")
	if t == nil {
		op.Outcome, op.Code = history.Failed, "no_pending_tasks"
		l.add(op)
		return
	}
	l.token++
	t.Status, t.Token, t.Worker = "claimed", l.token, op.Worker
	t.Attempts++
	l.tell(t, t.Token, t.Worker, "claimed")
	if l.rng.Intn(12) == 0 { // the answer is lost
		op.Outcome, op.Index, op.Code = history.Unknown, 0, "no_answer"
		l.unseen[t.Token] = true
		l.add(op)
		return
	}
	seen := *t
	op.TaskID, op.Token, op.Seen = t.ID, t.Token, &seen
	l.add(op)
}

func (l *queue) best(types []string, byID bool) *history.Task {
	var best *history.Task
	for _, t := range l.with("pending") {
		if len(types) > 0 && !slices.Contains(types, t.Type) {
			continue
		}
		if best == nil || !byID && t.Priority > best.Priority {
			best = t
		}
	}
	return best
}

func (l *queue) with(status string) []*history.Task {
	var found []*history.Task
	for _, t := range l.tasks {
		if t.Status == status {
			found = append(found, t)
		}
	}
	return found
}

func (l *queue) read(op history.Op) {
	if len(l.tasks) == 0 {
		return
	}
	if l.rng.Intn(2) == 0 {
		seen := *l.tasks[l.rng.Intn(len(l.tasks))]
		op.Kind, op.TaskID, op.Seen, op.Stale = history.Get, seen.ID, &seen, l.rng.Intn(2) == 0
		l.add(op)
		return
	}
	op.Kind, op.Limit, op.Desc = history.List, 1+l.rng.Intn(8), true
	op.Status = []string{"", "pending", "completed"}[l.rng.Intn(3)]
	for i := len(l.tasks) - 1; i >= 0; i-- {
		if t := l.tasks[i]; op.Status == "" || t.Status == op.Status {
			if len(op.Listed) == op.Limit {
				op.More = true
				break
			}
			op.Listed = append(op.Listed, *t)
		}
	}
	l.add(op)
}

// logOf holds the answers of h to the indexes that they carry.
func logOf(h *history.History) *logChecker { return checkLog(newIndex(h)) }

// What a correct queue answers passes, whatever happens in it.
func TestLog_passesGoodHistories(t *testing.T) {
	t.Parallel()
	chosen, shown, nones := 0, 0, 0
	for seed := range int64(40) {
		h := newHistory(seed, 150)
		if r := logOf(h); !r.OK() {
			t.Fatalf("seed %d: %+v", seed, r.Violations)
		}
		r := trailOf(h)
		if !r.OK() {
			t.Fatalf("seed %d: %+v", seed, r.Violations)
		}
		chosen, shown = chosen+r.chosen, shown+r.shown
		for i := range h.Ops {
			if saysNoTask(&h.Ops[i]) {
				nones++
			}
		}
	}
	if chosen < 1000 || nones < 10 || shown < 1000 {
		t.Errorf("hardly anything was looked at: %d claims, %d nones, %d reads and lists", chosen, nones, shown)
	}
}

// A lie anywhere in a good history is found by the rule that it breaks.
func TestLog_findsLies(t *testing.T) {
	t.Parallel()
	for _, lie := range []struct {
		name string
		rule Rule
		tell func(h *history.History) bool
	}{
		{"a claim takes another task than the first", RuleChoice, claimAnother},
		{"no task, although there are some", RuleNone, claimNothing},
		{"a list leaves out its second task", RuleList, func(h *history.History) bool {
			op := find(h, func(op *history.Op) bool { return op.Kind == history.List && len(op.Listed) > 2 })
			op.Listed = slices.Delete(op.Listed, 1, 2)
			return true
		}},
		{"a list shows what it was not asked for", RuleList, func(h *history.History) bool {
			op := find(h, func(op *history.Op) bool { return op.Kind == history.List && op.Status == "" && len(op.Listed) > 1 })
			op.Status = "no such status"
			return true
		}},
		{"a list in another order", RuleList, func(h *history.History) bool {
			slices.Reverse(find(h, func(op *history.Op) bool { return op.Kind == history.List && len(op.Listed) > 1 }).Listed)
			return true
		}},
		{"a list shows a task as it is not", RuleShown, func(h *history.History) bool {
			find(h, func(op *history.Op) bool { return op.Kind == history.List && len(op.Listed) > 1 }).Listed[1].Attempts++
			return true
		}},
		{"a read shows another token", RuleShown, func(h *history.History) bool {
			op := find(h, func(op *history.Op) bool { return op.Kind == history.Get && op.Seen.Status == "claimed" })
			if op.Seen == nil {
				return false
			}
			op.Seen.Token += 1 << 20
			return true
		}},
		{"a read shows a task that is not there", RuleShown, func(h *history.History) bool {
			h.Ops = append(h.Ops, history.Op{Kind: history.Get, Outcome: history.OK, TaskID: 1 << 20, Index: 7, Seen: &history.Task{ID: 1 << 20, Status: "pending"}})
			return true
		}},
		{"a stale read is shown to be of a later index", RuleShown, staleRead},
		{"a stale read is labelled with a later index", RuleOrder, staleRead},
		{"a command with an index from before it was called", RuleTime, func(h *history.History) bool {
			op := find(h, func(op *history.Op) bool { return op.Kind == history.Submit && op.Index > 50 })
			op.Index = 20
			return true
		}},
		{"an answer without an index", RuleIndex, func(h *history.History) bool {
			find(h, func(op *history.Op) bool { return op.Kind == history.Submit }).Index = 0
			return true
		}},
		{"a read older than was asked for", RuleIndex, func(h *history.History) bool {
			op := find(h, func(op *history.Op) bool { return op.Kind == history.Get })
			op.MinIndex = op.Index + 1
			return true
		}},
		{"a repeat before its first answer", RuleTrailAcked, func(h *history.History) bool {
			op := *find(h, func(op *history.Op) bool { return op.Kind == history.Submit && op.Index > 50 })
			op.Process, op.Created, op.Index = 99, false, op.Index-1
			op.Call -= 250
			h.Ops = append(h.Ops, op)
			return true
		}},
	} {
		t.Run(lie.name, func(t *testing.T) {
			t.Parallel()
			told := 0
			for seed := range int64(20) {
				h := newHistory(seed, 150)
				if !lie.tell(h) {
					continue
				}
				found := append(logOf(h).Violations, trailOf(h).Violations...)
				if !slices.ContainsFunc(found, func(v Violation) bool { return v.Rule == lie.rule }) {
					t.Fatalf("seed %d: not found by %s; found %+v", seed, lie.rule, found)
				}
				told++
			}
			if told == 0 {
				t.Fatal("no history had a place for the lie")
			}
		})
	}
}

func find(h *history.History, is func(*history.Op) bool) *history.Op {
	for i := range h.Ops {
		if is(&h.Ops[i]) {
			return &h.Ops[i]
		}
	}
	return &history.Op{}
}

// claimAnother lets a claim say that it asked for the task that it got in another order
// than it did.
func claimAnother(h *history.History) bool {
	for i := range h.Ops {
		op := &h.Ops[i]
		if op.Kind != history.Claim || op.Outcome != history.OK {
			continue
		}
		asked := op.SortBy
		for _, sort := range []string{"", "created_at"} {
			if op.SortBy = sort; sort != asked && !trailOf(h).OK() {
				return true
			}
		}
		op.SortBy = asked
	}
	return false
}

// claimNothing lets a claim that got nothing ask for all types, or for those of another.
func claimNothing(h *history.History) bool {
	for i := range h.Ops {
		op := &h.Ops[i]
		asked := op.Types
		if !saysNoTask(op) || asked == nil {
			continue
		}
		if op.Types = nil; !trailOf(h).OK() {
			return true
		}
		op.Types = asked
	}
	return false
}

// staleRead labels a stale read with an index at which its task was another.
func staleRead(h *history.History) bool {
	for i := range h.Ops {
		done := &h.Ops[i]
		if done.Kind != history.Complete {
			continue
		}
		read := find(h, func(op *history.Op) bool {
			return op.Kind == history.Get && op.Stale && op.TaskID == done.TaskID && op.Index < done.Index
		})
		if read.Kind != "" {
			read.Process, read.Index = 98, done.Index
			read.Call, read.Return = done.Return+1, done.Return+2
			return true
		}
	}
	return false
}
