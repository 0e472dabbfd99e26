package fsm

import (
	"encoding/base64"
	"strconv"

	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// parentState is derived of a parent and its steps. It exists as long as any of them does.
type parentState struct {
	tasks  int32                             // the parent and its included steps
	counts [record.StatusCancelled + 1]int32 // of the steps, by Status
	asked  int32                             // claimed steps that were asked to stop
	ended  bool                              // the parent has ended, so Machine.endedBytes includes bytes
	bytes  int64                             // memory of the steps
	// waiting counts for each place the step's dependencies that have not completed.
	waiting []uint16
}

// newParentState returns the state of a parent before any step is included.
func newParentState(p *record.Plan) *parentState {
	ps := &parentState{waiting: make([]uint16, len(p.Steps))}
	for place := range p.Steps {
		ps.waiting[place] = uint16(len(p.Steps[place].DependsOn))
	}
	return ps
}

// open returns how many steps have not ended.
func (ps *parentState) open() int {
	return int(ps.unclaimed() + ps.counts[record.StatusClaimed])
}

// done returns how many steps have completed or failed.
func (ps *parentState) done() int32 {
	return ps.counts[record.StatusCompleted] + ps.counts[record.StatusFailed]
}

// unclaimed returns how many steps have not ended and are not claimed.
func (ps *parentState) unclaimed() int32 {
	return ps.counts[record.StatusPending] + ps.counts[record.StatusScheduled] + ps.counts[record.StatusBlocked]
}

// unasked returns how many steps are claimed and were not asked to stop.
func (ps *parentState) unasked() int32 { return ps.counts[record.StatusClaimed] - ps.asked }

// joinParent adds the task to the parentState of its parent, or its own if it is a parent.
// Other tasks are ignored.
func (m *derived) joinParent(t *record.Task) {
	id, plan := record.ParentOf(t)
	if plan == nil {
		return
	}
	ps := m.parents[id]
	if ps == nil {
		ps = newParentState(plan)
		m.parents[id] = ps
	}
	ps.tasks++
}

// quitParent undoes joinParent.
func (m *derived) quitParent(t *record.Task) {
	id, plan := record.ParentOf(t)
	if plan == nil {
		return
	}
	ps := m.parents[id]
	if ps.tasks--; ps.tasks == 0 {
		delete(m.parents, id)
	}
}

// enterSteps adds a parent or step to the counts. bytes is its size in memory.
func (m *derived) enterSteps(t *record.Task, o *record.Options, bytes int64) {
	switch {
	case o.Step != nil:
		m.countStep(t, o.Step, 1, bytes)
	case o.Parent != nil && t.Status.Ended():
		ps := m.parents[t.ID]
		ps.ended = true
		m.endedBytes += ps.bytes
	}
}

// leaveSteps undoes enterSteps.
func (m *derived) leaveSteps(t *record.Task, o *record.Options, bytes int64) {
	switch {
	case o.Step != nil:
		m.countStep(t, o.Step, -1, -bytes)
	case o.Parent != nil && t.Status.Ended():
		ps := m.parents[t.ID]
		ps.ended = false
		m.endedBytes -= ps.bytes
	}
}

// countStep adds by steps like t, which is 1 or -1, and their bytes.
func (m *derived) countStep(t *record.Task, s *record.Step, by int32, bytes int64) {
	ps := m.parents[s.ParentID]
	ps.counts[t.Status] += by
	if t.Status == record.StatusClaimed && t.CancelRequested {
		ps.asked += by
	}
	ps.bytes += bytes
	if ps.ended {
		m.endedBytes += bytes
	}
	if t.Status == record.StatusCompleted {
		for _, place := range s.Plan.Steps[t.StepPlace()].Dependents {
			ps.waiting[place] -= uint16(by) // wraps around for -1, as intended
		}
	}
}

// Bounds for the result and error of a parent that ends automatically.
const (
	parentResultMax = 1 << 20  // beyond it the result has the steps' ids instead
	parentErrorMax  = 16 << 10 // the error is cut here, at a whole character
)

// parentEnd describes how a parent ends.
type parentEnd struct {
	To          record.Status // completed, failed or cancelled
	ProcessorID string        // who ended it; "" if it ended automatically
	Token       uint64        // of the claim that ended it, or 0
	Result      []byte        // JSON, if completed; or nil
	Error       string        // if failed
}

// endParent ends the running parent, whose steps have all ended, and records it in the
// trail. It drops the claim of the finalization but keeps the attempts.
func (m *Machine) endParent(id uint64, end parentEnd) {
	t := m.edit(id)
	t.DropFinalizationClaim()
	t.WorkerID, t.Token = end.ProcessorID, end.Token
	switch end.To {
	case record.StatusCompleted:
		t.Result = end.Result
	case record.StatusFailed:
		t.Error = end.Error
	}
	m.finish(t, end.To)
	m.tellParentEnd(t)
	m.edited(t)
}

// tellParentEnd records in the trail who finalized the parent, and its end.
func (m *Machine) tellParentEnd(t *record.Task) {
	e := eventOf(event.Cancelled, t)
	if t.Status == record.StatusCancelled {
		m.tell(&e, 0)
		return
	}
	e.WorkerID, e.Token = t.WorkerID, t.Token
	e.Kind, e.Message = event.Finalized, t.Status.String()
	m.tell(&e, 0)
	e.Kind, e.Message = event.Completed, ""
	if t.Status == record.StatusFailed {
		e.Kind, e.Message = event.Failed, t.Error
	}
	m.tell(&e, 0)
}

// autoEnd returns how a parent ends automatically once all its steps have ended.
func (m *saved) autoEnd(t *record.Task) parentEnd {
	plan := t.Parent().Plan
	var completed int
	var culprit *record.Task // the first failed step, else the first cancelled one
	for place := range plan.Steps {
		switch s := m.Get(t.ID + 1 + uint64(place)); {
		case s.Status == record.StatusCompleted:
			completed++
		case culprit == nil, culprit.Status != record.StatusFailed && s.Status == record.StatusFailed:
			culprit = s
		}
	}
	if culprit == nil || plan.Continue && completed > 0 {
		return parentEnd{To: record.StatusCompleted, Result: m.autoResult(t)}
	}
	return parentEnd{To: record.StatusFailed, Error: autoError(plan, culprit)}
}

// autoError returns the error of a parent that failed because of the step.
func autoError(plan *record.Plan, s *record.Task) string {
	text := "step " + plan.Steps[s.StepPlace()].Name
	if s.Status != record.StatusFailed {
		return text + " was cancelled"
	}
	return event.Cut(text+" failed: "+s.Error, parentErrorMax)
}

// autoResult returns a JSON object with the results of the completed steps, in the plan's
// order, or with their ids if that is too large. Step names need no escaping, because the
// API accepts only letters, digits and _ . : - in them.
func (m *saved) autoResult(t *record.Task) []byte {
	size, fits := m.autoResultSize(t)
	b := append(make([]byte, 0, size), '{')
	for place := range t.Parent().Plan.Steps {
		s := m.Get(t.ID + 1 + uint64(place))
		if s.Status != record.StatusCompleted {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, t.Parent().Plan.Steps[place].Name...)
		b = append(b, `":`...)
		if fits {
			b = appendStepResult(b, s)
		} else {
			b = strconv.AppendUint(b, s.ID, 10)
		}
	}
	return append(b, '}')
}

// autoResultSize returns the length of the object of results or, if that is too large, an
// upper bound for the object of ids.
func (m *saved) autoResultSize(t *record.Task) (size int, fits bool) {
	results, ids := len(`{}`), len(`{}`)
	for place := range t.Parent().Plan.Steps {
		s := m.Get(t.ID + 1 + uint64(place))
		if s.Status != record.StatusCompleted {
			continue
		}
		name := len(t.Parent().Plan.Steps[place].Name) + len(`"":,`)
		results += name + stepResultLen(s)
		ids += name + decimalMax
	}
	results = max(results-1, len(`{}`)) // no comma after the last one
	if results > parentResultMax {
		return ids, false
	}
	return results, true
}

// decimalMax is the maximum number of digits of an id, which is below 2^53.
const decimalMax = 16

// stepResultLen returns how many bytes appendStepResult appends.
func stepResultLen(s *record.Task) int {
	switch {
	case s.ResultPayload != nil:
		return 2 + base64.StdEncoding.EncodedLen(len(s.ResultPayload))
	case s.Result != nil:
		return len(s.Result)
	}
	return len("null")
}

// appendStepResult appends the step's result as JSON; opaque bytes are encoded as base64.
func appendStepResult(b []byte, s *record.Task) []byte {
	switch {
	case s.ResultPayload != nil:
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, s.ResultPayload)
		return append(b, '"')
	case s.Result != nil:
		return append(b, s.Result...)
	}
	return append(b, "null"...)
}
