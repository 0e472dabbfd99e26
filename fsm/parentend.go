package fsm

import (
	"encoding/base64"
	"strconv"

	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// Bounds of what an automatic end writes.
const (
	parentResultMax = 1 << 20  // past it the result names the steps' ids
	parentErrorMax  = 16 << 10 // the error is cut there, at a whole character
)

// parentEnd is how a parent ends.
type parentEnd struct {
	To          record.Status // completed, failed or cancelled
	ProcessorID string        // who ended it, "" = nobody: it ended by itself
	Token       uint64        // of the claim that ended it, 0 = none
	Result      []byte        // JSON, of a completed one; nil = none
	Error       string        // of a failed one
}

// endParent ends the running parent, whose steps have all ended, and tells so.
// Nobody holds its finalization from then on; who tried to get it is kept.
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

// tellParentEnd tells how the parent ended: who finalized it, and the end.
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

// autoEnd returns how a parent ends by itself, once all its steps have ended.
func (m *saved) autoEnd(t *record.Task) parentEnd {
	plan := t.Parent().Plan
	var completed int
	var culprit *record.Task // the first that failed, else the first that was cancelled
	for place := range plan.Steps {
		switch s := m.tasks.Get(t.ID + 1 + uint64(place)); {
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

// autoResult returns the JSON object of the results of the steps that completed,
// in the plan's order; of their ids if that is too large. A step's name needs no
// escaping: the API takes only letters, digits and _ . : - in it.
func (m *saved) autoResult(t *record.Task) []byte {
	size, fits := m.autoResultSize(t)
	b := append(make([]byte, 0, size), '{')
	for place := range t.Parent().Plan.Steps {
		s := m.tasks.Get(t.ID + 1 + uint64(place))
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

// autoResultSize returns how long the object of results is, or if that is too
// large, a bound of how long that of the ids is.
func (m *saved) autoResultSize(t *record.Task) (size int, fits bool) {
	results, ids := len(`{}`), len(`{}`)
	for place := range t.Parent().Plan.Steps {
		s := m.tasks.Get(t.ID + 1 + uint64(place))
		if s.Status != record.StatusCompleted {
			continue
		}
		name := len(t.Parent().Plan.Steps[place].Name) + len(`"":,`)
		results += name + stepResultLen(s)
		ids += name + decimalMax
	}
	results = max(results-1, len(`{}`)) // no comma behind the last one
	if results > parentResultMax {
		return ids, false
	}
	return results, true
}

// decimalMax is how many digits an id has at most: it is below 2^53.
const decimalMax = 16

// stepResultLen returns how long appendStepResult's is.
func stepResultLen(s *record.Task) int {
	switch {
	case s.ResultPayload != nil:
		return 2 + base64.StdEncoding.EncodedLen(len(s.ResultPayload))
	case s.Result != nil:
		return len(s.Result)
	}
	return len("null")
}

// appendStepResult appends the step's result as JSON: opaque bytes as their
// base64.
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
