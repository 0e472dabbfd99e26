package api

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

const (
	// actionsMax bounds the actions on many tasks that a leader performs at a time.
	actionsMax = 2
	// actionStep bounds the tasks that one entry of the log acts on. The tasks that change with them because of steps
	// are bounded by ChangesMax, but one task with its steps always fits, even if it has more.
	actionStep = 1_000
	// actionIDsMax bounds the ids that one action keeps, in bytes; ids that follow each other take one byte each.
	actionIDsMax = 32 << 20
)

// actions runs a leader's actions on many tasks.
type actions struct {
	under chan struct{} // one element for each action under way
}

// newActions returns actions with none under way.
func newActions() *actions { return &actions{under: make(chan struct{}, actionsMax)} }

// answer answers POST /api/tasks/actions: it collects the tasks that the filter matches, page by page, and then
// proposes the action on them, step by step.
func (a *actions) answer(r *request) {
	req, bad := codec.DecodeAction(r.input(), r.limits())
	if bad != nil {
		r.refuse(bad)
		return
	}
	if bad := r.refuseFilter("filter.task_type", req.Filter.Type); bad != nil {
		r.refuse(bad)
		return
	}
	select {
	case a.under <- struct{}{}:
		defer func() { <-a.under }()
	default:
		r.refuse(refuse.Overloaded("", "The leader is busy with "+strconv.Itoa(actionsMax)+" actions on many tasks, its limit"))
		return
	}
	found := actionMatches{req: &req}
	if !found.match(r) {
		return
	}
	if req.Expects && req.Expect != found.matched {
		f := refuse.Because(wire.CodeCountMismatch)
		f.Text = "The filter matches " + strconv.FormatInt(found.matched, 10) + " tasks, not the " + strconv.FormatInt(req.Expect, 10) + " expected"
		f.Details = `,"matched":` + strconv.FormatInt(found.matched, 10) + `,"expect":` + strconv.FormatInt(req.Expect, 10)
		r.refuse(f)
		return
	}
	done, more := 0, false
	if !req.DryRun {
		var ok bool
		if done, more, ok = actOn(r, &found); !ok {
			return
		}
	}
	b := jsonout.IntField(r.buffer(), `{"success":true,"matched":`, found.matched)
	b = jsonout.IntField(b, `,"done":`, int64(done))
	if req.DryRun {
		b = found.appendDryRun(b)
	}
	if more {
		b = append(b, `,"more":true`...)
	}
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// actionMatches are the tasks that a filter matched, by id.
type actionMatches struct {
	req     *codec.Action
	act     command.Act // without its tasks
	matched int64
	ids     idList             // of tasks that the action may change; empty for a dry run
	more    bool               // more tasks match than ids has room for
	cannot  map[fsm.Code]int64 // for a dry run: how many tasks it would leave unchanged, by reason
}

// notAllowed is the reason for tasks that the caller may not change.
const notAllowed = fsm.Code(wire.CodeForbidden)

// match finds the tasks that the filter matches. The first page is linearizable, and later ones are not older. ok is
// false if the request was already answered.
func (found *actionMatches) match(r *request) (ok bool) {
	q := fsm.ListQuery{Filter: found.req.Filter, Limit: actionStep}
	if selectGroup(&q, found.req.ErrorGroup); q.Failure != nil {
		q.Look = listLook
	}
	found.act = command.Act{Action: found.req.Action, Filter: q.Filter, AddAttempts: found.req.AddAttempts}
	index, sight := uint64(0), r.sight()
	look := func(m *fsm.Machine, _ fsm.Stamp) {
		if q.Failure != nil && found.act.EndedUntil == 0 {
			found.act.EndedUntil = m.Stamp().T
		}
		page := m.List(q)
		for _, t := range page.Tasks {
			if !sight.matches(m, &q, t) || found.act.EndedUntil != 0 && t.CompletedAt > found.act.EndedUntil {
				continue
			}
			found.matched++
			switch mayChange := r.maySeeSteps(m, t); {
			case found.req.DryRun:
				found.countUnchanged(m, t, mayChange)
			case mayChange:
				found.add(t)
			}
		}
		q.From, index = page.Next, m.Index()
	}
	if !r.read(look) {
		return false
	}
	for q.From != 0 {
		if r.outOfTime() {
			r.refuse(refuse.Overloaded("", "The tasks that match could not be counted within "+slowTime.String()))
			return false
		}
		r.restartDeadline()
		if !r.readOn(index, look) {
			return false
		}
	}
	r.setIndex(index)
	return true
}

// countUnchanged counts the tasks that a dry run would leave unchanged, by reason.
func (found *actionMatches) countUnchanged(m *fsm.Machine, t *fsm.Task, mayChange bool) {
	why := notAllowed
	if mayChange {
		why = m.LeftAlone(t, found.req.Action, found.req.AddAttempts)
	}
	if why == "" {
		return
	}
	if found.cannot == nil {
		found.cannot = make(map[fsm.Code]int64)
	}
	found.cannot[why]++
}

// appendDryRun appends how many tasks the action could change now, and how many not, by reason.
func (found *actionMatches) appendDryRun(b []byte) []byte {
	can := found.matched
	for _, n := range found.cannot {
		can -= n
	}
	b = append(jsonout.IntField(b, `,"can":`, can), `,"cannot":{`...)
	start := len(b)
	for _, why := range slices.Sorted(maps.Keys(found.cannot)) {
		b = jsonout.String(jsonout.Comma(b, start), string(why))
		b = jsonout.IntField(b, ":", found.cannot[why])
	}
	return append(b, '}')
}

// add adds a task, unless the action certainly leaves it unchanged.
func (found *actionMatches) add(t *fsm.Task) {
	useless := false
	switch found.req.Action {
	case command.ActionRetry:
		useless = t.Status == fsm.StatusPending || t.Status == fsm.StatusBlocked || t.Status == fsm.StatusCompleted
	case command.ActionCancel:
		useless = t.Status.Ended()
	case command.ActionDelete:
		useless = !t.Status.Ended() || t.Step() != nil
	}
	switch {
	case useless:
	case found.ids.size() >= actionIDsMax:
		found.more = true
	default:
		parentID, steps := t.Family()
		found.ids.add(t.ID, parentID, steps)
	}
}

// actOn performs the action on the tasks found. It returns how many it changed, and whether it ran out of time before
// the last. ok is false if the request was already answered. Once something is done, an error after which the rest is
// certainly undone only ends the action.
func actOn(r *request, found *actionMatches) (done int, more, ok bool) {
	began := false
	for ids := found.ids.next(actionStep, wire.ChangesMax); len(ids) > 0; ids = found.ids.next(actionStep, wire.ChangesMax) {
		if began && (r.outOfTime() || r.core.draining.Load()) {
			return done, true, true
		}
		r.restartDeadline()
		act := found.act
		act.IDs = ids
		p, err := r.node().Propose(r.ctx(), act)
		switch {
		case err != nil && began && refuse.CodeOf(err, true) != wire.CodeOutcomeUnknown:
			return done, true, true
		case err != nil:
			r.refuseError(err)
			return done, false, false
		}
		began = true
		done += p.Result.Acted
		r.setIndex(p.Index)
	}
	return done, found.more, true
}

// idList is a list of ascending ids, each stored as the difference from the previous one. A task with steps and its
// steps have consecutive ids. They form a family: changing one of them may change all.
//
//	diff<<1                    a task of the same family as the one before, or of none
//	diff<<1|1  steps  offset   the first of a family, offset ids after its parent
type idList struct {
	diffs  []byte
	last   uint64 // the last one added
	family uint64 // the last id of the last family added

	read      int // bytes of diffs that were read
	lastTaken uint64
	taken     family // the family of lastTaken, if it has one
}

// family is a task with steps and its steps.
type family struct {
	end   uint64 // the last id
	steps int
}

// add adds a task. If it belongs to a family, parentID is the parent's id and steps the number of steps; otherwise
// steps is 0.
func (l *idList) add(id, parentID uint64, steps int) {
	diff := (id - l.last) << 1
	l.last = id
	if steps == 0 || id <= l.family {
		l.diffs = binary.AppendUvarint(l.diffs, diff)
		return
	}
	l.family = parentID + uint64(steps)
	l.diffs = binary.AppendUvarint(l.diffs, diff|1)
	l.diffs = binary.AppendUvarint(l.diffs, uint64(steps))
	l.diffs = binary.AppendUvarint(l.diffs, id-parentID)
}

func (l *idList) size() int { return len(l.diffs) }

// next takes up to n ids, but no more than can change most tasks together; the first is always taken.
func (l *idList) next(n, most int) []uint64 {
	var ids []uint64
	changes := 0
	counted := uint64(0) // the last id of the last family in changes
	for len(ids) < n && l.read < len(l.diffs) {
		id, of, size := l.peek()
		more := 1
		if id <= of.end {
			more = 1 + of.steps
			if of.end == counted {
				more = 0
			}
		}
		if changes += more; changes > most && len(ids) > 0 {
			break
		}
		if id <= of.end {
			counted = of.end
		}
		ids = append(ids, id)
		l.read += size
		l.lastTaken, l.taken = id, of
	}
	return ids
}

// peek returns the next id, its family if it has one, and the bytes it takes.
func (l *idList) peek() (id uint64, of family, size int) {
	diff, size := binary.Uvarint(l.diffs[l.read:])
	id, of = l.lastTaken+diff>>1, l.taken
	if diff&1 == 0 {
		return id, of, size
	}
	steps, n := binary.Uvarint(l.diffs[l.read+size:])
	offset, n2 := binary.Uvarint(l.diffs[l.read+size+n:])
	return id, family{end: id - offset + steps, steps: int(steps)}, size + n + n2
}
