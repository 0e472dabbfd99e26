package check

import (
	"cmp"
	"math"
	"slices"

	"github.com/claimq/claimq/jepsen/history"
)

// track is what the answers say of one task, in the order of the log.
type track struct {
	*task
	place
	held    bool // by a group or a limit, it may be: a claim may pass it by
	left    bool // nothing is said of it: others may change it, or it waits for its time
	deleted bool // somebody may have deleted it
	sighted []sighting
	ended   uint64 // the index at which it was completed, 0 = not known
	endedOp int
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
	task        *track
	first, last uint64
	from, to    int // ops that show it; -1 = the state at the end
	// taken is the entry with the claim that ended it, 0 if that is not known.
	taken uint64
}

// findTracks arranges what the answers show by task.
func (w *logChecker) findTracks() {
	o := w.ordered
	limited := o.types(func(op *history.Op) bool { return op.Kind == history.SetType })
	delayed := o.types(func(op *history.Op) bool { return op.Kind == history.Submit && op.DelayMS > 0 })
	acted := o.types(func(op *history.Op) bool { return op.Kind == history.Act })
	w.tracks = map[uint64]*track{}
	for id, t := range o.tasks {
		tr := &track{task: t, place: o.placeOf(t)}
		w.tracks[id] = tr
		tr.held = tr.group != "" || limited[tr.kind]
		// Of some submits nobody knows which task they made. A retry of one that was
		// cancelled made it pending again with the same count of attempts.
		tr.left = tr.kind == "" || delayed[tr.kind] || acted[tr.kind] || o.mayHave(t, history.Cancel) || o.ofFamily(t)
		tr.deleted = o.mayHave(t, history.Delete)
		for _, i := range t.ops {
			op := &o.h.Ops[i]
			tr.left = tr.left || op.DelayMS > 0 && op.Outcome != history.Failed
			if op.Outcome == history.OK && op.Index > 0 {
				tr.add(op, o.origin(i))
			}
		}
		if t.final != nil {
			tr.look(math.MaxUint64, t.final, -1)
		}
		slices.SortStableFunc(tr.sighted, func(a, b sighting) int {
			if a.index != b.index || a.command == b.command {
				return cmp.Compare(a.index, b.index)
			}
			if a.command {
				return -1
			}
			return 1
		})
	}
}

// ofFamily reports whether the task is a parent or a step, for all that is known.
func (x *index) ofFamily(t *task) bool {
	says := func(seen *history.Task) bool { return seen != nil && (seen.ParentID != 0 || seen.Finalize != "") }
	return t.parent || t.parentID != 0 || says(t.final) || slices.ContainsFunc(t.ops, func(i int) bool { return says(x.h.Ops[i].Seen) })
}

// look notes the task as a read showed it after the entry at index.
func (t *track) look(index uint64, seen *history.Task, op int) {
	t.sighted = append(t.sighted, sighting{index: index, pending: seen.Status == statusPending, attempts: seen.Attempts, op: op})
}

// add notes what the answered op shows of the task.
func (t *track) add(op *history.Op, i int) {
	s := sighting{index: op.Index, command: true, exact: !op.Repeated, op: i}
	switch {
	case op.Kind == history.Get:
		t.look(op.Index, op.Seen, i)
		return
	case op.Kind == history.Submit && op.Created:
		s.pending = true
	case op.Kind == history.Submit: // its state is not recorded
		return
	case op.Seen != nil:
		s.pending, s.attempts = op.Seen.Status == statusPending, op.Seen.Attempts
		s.claimed = op.Kind == history.Claim || op.Kind == history.ClaimTask
		if op.Kind == history.Complete && !op.Repeated {
			t.ended, t.endedOp = op.Index, i
		}
	}
	t.sighted = append(t.sighted, s)
}

// stretches returns the parts of the log through which the task was certainly
// pending. Attempts tell: while a task is pending nothing changes its count but
// a claim, and what makes it pending again after a claim nobody knows of leaves
// that claim counted: only a release takes it back, and that needs its token.
func (t *track) stretches() []stretch {
	var found []stretch
	for n := 1; n < len(t.sighted); n++ {
		a, b := &t.sighted[n-1], &t.sighted[n]
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
func (t *track) alone(n int) bool {
	at := t.sighted[n].index
	return (n == 0 || t.sighted[n-1].index != at) && (n+1 == len(t.sighted) || t.sighted[n+1].index != at || !t.sighted[n+1].command)
}
