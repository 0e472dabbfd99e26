package witness

import (
	"cmp"
	"math"
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// task is what the answers say of one task, in the order of the log.
type task struct {
	id       uint64
	kind     string // its type
	priority int32
	known    bool // kind and priority are
	held     bool // by a group or a limit, it may be: a claim may pass it by
	delayed  bool // it may be pending and wait for its time
	// cancelled says that somebody may have cancelled it, so that a retry made it
	// pending again with the same count of attempts.
	cancelled bool
	family    bool // it is a parent or a step: others may end it and bring it back
	seen      []sighting
	deleted   bool   // somebody may have deleted it
	ended     uint64 // the index at which it was completed, 0 = not known
	endedOp   int
}

// sighting is one answer that shows the task's state at an index.
type sighting struct {
	index    uint64
	command  bool // made by the answer's own command, which is in the entry; else after the entry
	exact    bool // the command did it at this index: it is not a repeat
	claimed  bool // the command is a claim
	pending  bool
	attempts int32
	op       int // -1 = the state at the end
}

// stretch is a part of the log through which a task was certainly pending: the
// entries from first to last, each from before its first command to after its
// last one.
type stretch struct {
	task        *task
	first, last uint64
	from, to    int // ops that show it; -1 = the state at the end
	// taken is the entry with the claim that ended it, 0 if that is not known.
	taken uint64
}

// sightings arranges what the answers show by task.
func (w *witness) sightings() map[uint64]*task {
	tasks := map[uint64]*task{}
	get := func(id uint64) *task {
		t := tasks[id]
		if t == nil {
			t = &task{id: id}
			tasks[id] = t
		}
		return t
	}
	for i := range w.h.Ops {
		op := &w.h.Ops[i]
		for n := range op.Listed {
			get(op.Listed[n].ID).look(op.Index, &op.Listed[n], i)
		}
		if op.TaskID == 0 {
			continue
		}
		t := get(op.TaskID)
		if op.Plan != nil {
			t.family = true
			for place := range op.Plan.Steps {
				get(op.TaskID + 1 + uint64(place)).family = true
			}
		}
		t.delayed = t.delayed || op.DelayMS > 0 && op.Outcome != history.Failed
		t.cancelled = t.cancelled || op.Kind == history.Cancel && op.Outcome != history.Failed
		if op.Kind == history.Delete && op.Outcome != history.Failed {
			t.deleted = true
		}
		if op.Outcome == history.OK && op.Index > 0 {
			t.add(op, i)
		}
	}
	if w.h.Final != nil {
		for i := range w.h.Final.Tasks {
			f := &w.h.Final.Tasks[i]
			get(f.ID).look(math.MaxUint64, f, -1)
		}
	}
	limited, delayed, acted := w.limitedTypes(), w.delayedTypes(), w.actedTypes()
	for _, t := range tasks {
		t.held = t.held || limited[t.kind]
		t.delayed = t.delayed || delayed[t.kind]
		t.cancelled = t.cancelled || acted[t.kind]
		slices.SortStableFunc(t.seen, func(a, b sighting) int {
			if a.index != b.index || a.command == b.command {
				return cmp.Compare(a.index, b.index)
			}
			if a.command {
				return -1
			}
			return 1
		})
	}
	return tasks
}

// limitedTypes returns the types that may have had a limit.
func (w *witness) limitedTypes() map[string]bool {
	limited := map[string]bool{}
	for i := range w.h.Ops {
		if op := &w.h.Ops[i]; op.Kind == history.SetType && op.Outcome != history.Failed {
			limited[op.TaskType] = true
		}
	}
	return limited
}

// delayedTypes returns the types of the tasks that were submitted with a delay: of
// some submits nobody knows which task they made.
func (w *witness) delayedTypes() map[string]bool {
	delayed := map[string]bool{}
	for i := range w.h.Ops {
		if op := &w.h.Ops[i]; op.Kind == history.Submit && op.DelayMS > 0 {
			delayed[op.TaskType] = true
		}
	}
	return delayed
}

// actedTypes returns the types that somebody may have acted on as a whole.
func (w *witness) actedTypes() map[string]bool {
	acted := map[string]bool{}
	for i := range w.h.Ops {
		if op := &w.h.Ops[i]; op.Kind == history.Act && op.Outcome != history.Failed {
			acted[op.TaskType] = true
		}
	}
	return acted
}

// look notes the task as a read showed it after the entry at index.
func (t *task) look(index uint64, seen *history.Task, op int) {
	t.learn(seen)
	t.seen = append(t.seen, sighting{index: index, pending: seen.Status == "pending", attempts: seen.Attempts, op: op})
}

func (t *task) learn(seen *history.Task) {
	if seen.Type != "" {
		t.kind, t.priority, t.known = seen.Type, seen.Priority, true
	}
	t.held = t.held || seen.Group != ""
	t.family = t.family || seen.ParentID != 0 || seen.Finalize != ""
}

// add notes what the answered op shows of the task.
func (t *task) add(op *history.Op, i int) {
	s := sighting{index: op.Index, command: true, exact: !op.Repeated, op: i}
	switch {
	case op.Kind == history.Get:
		t.look(op.Index, op.Seen, i)
		return
	case op.Kind == history.Submit && op.Created:
		t.kind, t.priority, t.known = op.TaskType, op.Priority, true
		t.held = t.held || op.Group != ""
		s.pending = true
	case op.Kind == history.Submit: // its state is not recorded
		return
	case op.Seen != nil:
		t.learn(op.Seen)
		s.pending, s.attempts = op.Seen.Status == "pending", op.Seen.Attempts
		s.claimed = op.Kind == history.Claim || op.Kind == history.ClaimTask
		if op.Kind == history.Complete && !op.Repeated {
			t.ended, t.endedOp = op.Index, i
		}
	}
	t.seen = append(t.seen, s)
}

// stretches returns the parts of the log through which the task was certainly
// pending. Attempts tell: while a task is pending nothing changes its count but
// a claim, and what makes it pending again after a claim nobody knows of leaves
// that claim counted: only a release takes it back, and that needs its token.
func (t *task) stretches() []stretch {
	var found []stretch
	for n := 1; n < len(t.seen); n++ {
		a, b := &t.seen[n-1], &t.seen[n]
		if !a.pending || a.command && !t.alone(n-1) || a.index == b.index {
			continue
		}
		s := stretch{task: t, first: a.index + 1, last: b.index, from: a.op, to: b.op}
		switch {
		case !b.command && b.pending && b.attempts == a.attempts: // seen pending after the entry
		case b.claimed && b.exact && b.attempts == a.attempts+1 && t.alone(n):
			s.last, s.taken = b.index-1, b.index
		default:
			continue
		}
		found = append(found, s)
	}
	return found
}

// alone reports whether no other command in the entry of sighting n is known
// to be about the task.
func (t *task) alone(n int) bool {
	at := t.seen[n].index
	return (n == 0 || t.seen[n-1].index != at) && (n+1 == len(t.seen) || t.seen[n+1].index != at || !t.seen[n+1].command)
}
