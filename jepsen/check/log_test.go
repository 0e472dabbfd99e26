package check

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
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
	// unseen are the claims whose answer nobody got: they can only end.
	unseen map[uint64]bool
}

// newHistory returns what a correct queue answers, with ends of leases and
// claims that nobody got the answer of.
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
		op.Kind, op.TaskID, op.Key, op.Created, op.TaskType, op.Priority = history.Submit, t.ID, t.Key, true, t.Type, t.Priority
	case n < 7:
		l.claim(op)
		return
	case len(claimed) == 0:
		return
	case n == 7: // its lease ends, and nobody is told
		t := claimed[l.rng.Intn(len(claimed))]
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
			op.Kind, t.Status = history.Complete, "completed"
		case 1:
			op.Kind, t.Status, t.Token, t.Worker = history.Fail, "pending", 0, ""
		default:
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
	if l.rng.Intn(12) == 0 { // nobody gets the answer
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
	var all logChecker
	for seed := range int64(40) {
		r := logOf(newHistory(seed, 150))
		if !r.OK() {
			t.Fatalf("seed %d: %+v", seed, r.Violations)
		}
		all.claimed, all.nones, all.lists, all.pending = all.claimed+r.claimed, all.nones+r.nones, all.lists+r.lists, all.pending+r.pending
	}
	if all.claimed < 1000 || all.nones < 10 || all.lists < 1000 || all.pending < 1000 {
		t.Errorf("hardly anything was looked at: %d claims, %d nones, %d lists, %d pending", all.claimed, all.nones, all.lists, all.pending)
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
			op := find(h, func(op *history.Op) bool {
				return op.Kind == history.List && op.Status == "completed" && len(op.Listed) > 2 && find(h, func(done *history.Op) bool {
					return done.Kind == history.Complete && done.TaskID == op.Listed[1].ID && done.Index < op.Index
				}).Kind != ""
			})
			if op.Kind == "" {
				return false
			}
			op.Listed = slices.Delete(op.Listed, 1, 2)
			return true
		}},
		{"a list shows what it was not asked for", RuleList, func(h *history.History) bool {
			op := find(h, func(op *history.Op) bool { return op.Kind == history.List && op.Status == "" && len(op.Listed) > 1 })
			op.Status = "no such status"
			return true
		}},
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
		{"ids that do not grow", RuleIDs, func(h *history.History) bool {
			a := find(h, func(op *history.Op) bool { return op.Kind == history.Submit })
			b := find(h, func(op *history.Op) bool { return op.Kind == history.Submit && op.Index > a.Index })
			a.TaskID, b.TaskID = b.TaskID, a.TaskID
			return true
		}},
		{"a repeat before its first answer", RuleFirst, func(h *history.History) bool {
			op := *find(h, func(op *history.Op) bool { return op.Kind == history.Submit && op.Index > 50 })
			op.Process, op.Created, op.Index = 99, false, op.Index-1
			op.Call -= 250
			h.Ops = append(h.Ops, op)
			return true
		}},
	} {
		t.Run(lie.name, func(t *testing.T) {
			t.Parallel()
			found := 0
			for seed := range int64(20) {
				h := newHistory(seed, 150)
				if !lie.tell(h) {
					continue
				}
				r := logOf(h)
				if !slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Rule == lie.rule }) {
					t.Fatalf("seed %d: not found by %s; found %+v", seed, lie.rule, r.Violations)
				}
				found++
			}
			if found == 0 {
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

// claimAnother lets the claim of a task answer that it took another one, while
// the one that it should have taken stays pending until the next claim.
func claimAnother(h *history.History) bool {
	for _, t := range logOf(h).tracks {
		for _, s := range t.stretches() {
			if t.left || s.first > s.last {
				continue
			}
			op := find(h, func(op *history.Op) bool {
				return op.Kind == history.Claim && op.TaskID != 0 && op.Outcome == history.OK && op.Index >= s.first && op.Index <= s.last &&
					(len(op.Types) == 0 || slices.Contains(op.Types, t.kind))
			})
			if op.Seen == nil {
				continue
			}
			op.SortBy = "created_at"
			if op.TaskID > t.id {
				return true
			}
			op.SortBy = ""
			if op.Seen.Priority < t.priority {
				return true
			}
		}
	}
	return false
}

// claimNothing lets a claim answer that there is no task.
func claimNothing(h *history.History) bool {
	for _, t := range logOf(h).tracks {
		for _, s := range t.stretches() {
			op := find(h, func(op *history.Op) bool { return saysNoTask(op) && op.Index >= s.first && op.Index <= s.last })
			if op.Kind != "" && !t.left {
				op.Types = []string{t.kind}
				return true
			}
		}
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

// Claims of one entry that passed each other by have no order.
func TestLog_claimsOfOneEntry(t *testing.T) {
	t.Parallel()
	h := &history.History{}
	submit := func(id uint64, priority int32) {
		h.Ops = append(h.Ops, history.Op{
			Kind: history.Submit, Outcome: history.OK, TaskID: id, Created: true, TaskType: "a", Priority: priority,
			Call: int64(id) * 10, Return: int64(id)*10 + 5, Index: id, Key: fmt.Sprint(id),
		})
	}
	claim := func(process int, id uint64, priority int32, sort string) {
		h.Ops = append(h.Ops, history.Op{
			Process: process, Kind: history.Claim, Outcome: history.OK, TaskID: id, Token: id, SortBy: sort, RequestID: fmt.Sprint(process),
			Worker: "w", Call: 100, Return: 110, Index: 9,
			Seen: &history.Task{ID: id, Status: "claimed", Token: id, Attempts: 1, Type: "a", Priority: priority},
		})
	}
	submit(1, 0)
	submit(2, 5)
	claim(1, 2, 5, "created_at") // task 1 is older, so it was taken before
	claim(2, 1, 0, "")           // task 2 is more urgent, so it was taken before
	r := logOf(h)
	if len(r.Violations) != 1 || r.Violations[0].Rule != RuleEntry || !strings.Contains(r.Violations[0].Text, "entry 9") {
		t.Errorf("got %+v, want one violation of %s", r.Violations, RuleEntry)
	}
	h.Ops[2].SortBy, h.Ops[3].SortBy = "", "created_at"
	if r := logOf(h); !r.OK() {
		t.Errorf("turned round they have an order; got %+v", r.Violations)
	}
}
