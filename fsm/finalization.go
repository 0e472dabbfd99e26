package fsm

import (
	"encoding/base64"
	"strconv"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// FinalizationView is the state of a task's finalization at one index.
type FinalizationView struct {
	Attempts  []record.FinalizationAttempt // read-only
	ClaimedBy string                       // "" = unclaimed
	// LeftMS is the remaining time of the claim, or 0.
	LeftMS int64
}

// Finalization returns the state of the task's finalization; ok is false if the task does
// not exist. For a task without steps it is empty. A claim that is over at now is not
// shown.
func (m *Machine) Finalization(id uint64, now record.Stamp) (v FinalizationView, ok bool) {
	t := m.Get(id)
	if t == nil || t.Parent() == nil || t.Parent().Finalization == nil {
		return FinalizationView{}, t != nil
	}
	f := t.Parent().Finalization
	v.Attempts = f.Attempts
	if v.ClaimedBy = f.Holder(now.U); v.ClaimedBy != "" {
		v.LeftMS = max(f.EndU-now.U, 0)
	}
	return v, true
}

// FinalizationCount returns the number of claimed finalizations. Like claims of tasks, they
// end by the lease clock.
func (m *Machine) FinalizationCount() int { return m.times.finalizing.Len() }

// claimFinalization claims the finalization of a parent. The parent remembers the attempt.
func claimFinalization(m *Machine, c command.ClaimFinalization) Result {
	t := m.Get(c.ID)
	answer := &ParentAnswer{State: finalizationState(m, c.ID)}
	switch {
	case t == nil && answer.State == record.StateNotFound:
		answer.Outcome = record.FinalizationNotFound
	case t == nil:
		answer.Outcome = record.FinalizationAlreadyDone
	case t.Parent() == nil:
		answer.Outcome = record.FinalizationNotReady
	default:
		tryFinalization(m, t, c, answer)
	}
	return Result{Parent: answer}
}

// tryFinalization is claimFinalization for an existing parent.
func tryFinalization(m *Machine, t *record.Task, c command.ClaimFinalization, answer *ParentAnswer) {
	f := record.Finalization{}
	if had := t.Parent().Finalization; had != nil {
		f = *had
	}
	u := m.Stamp().U
	answer.Holder = f.Holder(u)
	switch {
	case t.Status.Ended():
		answer.Outcome = record.FinalizationAlreadyDone
	case answer.Holder != "" && answer.Holder == c.ProcessorID:
		answer.Outcome = record.FinalizationExtended
		f = *f.Lasting(c.TimeoutMS, u)
	case answer.Holder != "":
		answer.Outcome = record.FinalizationAlreadyClaimed
	case m.parents.byID[t.ID].done() == 0:
		answer.Outcome = record.FinalizationNotReady
	default:
		answer.Outcome = record.FinalizationClaimed
		f.ProcessorID, f.Token = c.ProcessorID, m.header.NextToken
		m.header.NextToken++
		f.TimeoutMS, f.EndU = c.TimeoutMS, u+c.TimeoutMS
	}
	if answer.Outcome.Claimed() {
		answer.Holder, answer.Token = f.ProcessorID, f.Token
	}
	f.Attempts = attempted(f.Attempts, record.FinalizationAttempt{
		ProcessorID: c.ProcessorID, Outcome: answer.Outcome, Holder: answer.Holder, State: answer.State, At: m.Stamp().T,
	})
	replaceFinalization(m, t.ID, &f)
	if answer.Outcome == record.FinalizationClaimed {
		e := eventOf(event.FinalizationClaimed, t)
		e.WorkerID, e.Token = f.ProcessorID, f.Token
		m.tell(&e, 0)
	}
}

// attempted returns the last 100 attempts including a. It may append in place behind slices
// that others hold; they do not see it, and only the newest slice is ever appended to.
func attempted(attempts []record.FinalizationAttempt, a record.FinalizationAttempt) []record.FinalizationAttempt {
	return append(attempts[max(len(attempts)+1-record.FinalizationAttemptsMax, 0):], a)
}

// extendFinalization prolongs the claim.
func extendFinalization(m *Machine, c command.ExtendFinalization) Result {
	t, f, answer := askFinalization(m, c.ID, m.Stamp().U)
	if f != nil && answer.Holder == c.ProcessorID {
		timeoutMS := c.TimeoutMS
		if timeoutMS == 0 {
			timeoutMS = f.TimeoutMS
		}
		f = f.Lasting(timeoutMS, m.Stamp().U)
		replaceFinalization(m, t.ID, f)
		answer.Done, answer.Token = true, f.Token
	}
	return Result{Parent: answer}
}

// releaseFinalization gives the claim back. A processor that has finalized the parent gets
// the answer that it is done, because that ended its claim.
func releaseFinalization(m *Machine, c command.ReleaseFinalization) Result {
	t, f, answer := askFinalization(m, c.ID, m.Stamp().U)
	switch {
	case t == nil:
		g := m.gone.find(c.ID, m.Stamp().U)
		answer.Done = g != nil && g.WorkerID == c.ProcessorID && g.Outcome == record.OutcomeNone
	case t.Parent() == nil:
	case t.Status.Ended():
		answer.Done = t.WorkerID == c.ProcessorID
	case f != nil && answer.Holder == c.ProcessorID:
		replaceFinalization(m, t.ID, &record.Finalization{Attempts: f.Attempts})
		answer.Done, answer.Holder = true, ""
	}
	return Result{Parent: answer}
}

// askFinalization returns the task, its finalization or nil, and an answer with its state
// at time u by the lease clock.
func askFinalization(m *Machine, id uint64, u int64) (*record.Task, *record.Finalization, *ParentAnswer) {
	answer := &ParentAnswer{State: finalizationState(m, id)}
	t := m.Get(id)
	if t == nil || t.Parent() == nil || t.Parent().Finalization == nil {
		return t, nil, answer
	}
	f := t.Parent().Finalization
	answer.Holder = f.Holder(u)
	return t, f, answer
}

// finalize ends a parent.
func finalize(m *Machine, c command.Finalize) Result {
	result, ends := finalizable(m, c, m.Stamp().U)
	if ends {
		endByProcessor(m, result.Task, &c, result.Parent.Holder != "")
		result.Task = m.Get(c.ID)
		result.Parent.State, result.Parent.Holder = finalizationState(m, c.ID), ""
		result.Parent.Steps = m.Steps(c.ID)
	}
	return m.withCopy(result)
}

// finalizable returns ends true if the processor may end the parent at time u by the lease
// clock, and the answer otherwise. It changes nothing; the result contains the state's own
// task.
func finalizable(m *Machine, c command.Finalize, u int64) (result Result, ends bool) {
	t, f, answer := askFinalization(m, c.ID, u)
	switch {
	case t == nil:
		return finalizeGone(m, c.ID), false
	case t.Parent() == nil:
		return Result{Code: CodeTaskNotClaimable, Reason: ReasonNoSteps, Task: t}, false
	}
	result = Result{Task: t, Parent: answer}
	switch {
	case t.Status.Ended():
		answer.AlreadyFinalized = true
	case answer.Holder != "" && answer.Holder != c.ProcessorID:
		result.Code = CodeTaskAlreadyClaimed
	case c.Token != 0 && (answer.Holder == "" || c.Token != f.Token):
		result.Code = CodeStaleClaim
	case answer.State == record.StateWaitingForSteps:
		result.Code = CodeStepsUnfinished
	default:
		return result, true
	}
	answer.Steps = m.Steps(c.ID)
	return result, false
}

// endByProcessor ends the parent as c says. claimed is true if the processor holds the
// claim.
func endByProcessor(m *Machine, t *record.Task, c *command.Finalize, claimed bool) {
	end := parentEnd{To: record.StatusCompleted, ProcessorID: c.ProcessorID, Result: c.Result}
	if c.Failed {
		end = parentEnd{To: record.StatusFailed, ProcessorID: c.ProcessorID, Error: c.Error}
	}
	if claimed {
		end.Token = t.Parent().Finalization.Token
	}
	endParent(m, t.ID, end)
}

// finalizeGone answers a Finalize for a task that does not exist. One that was removed had
// ended.
func finalizeGone(m *Machine, id uint64) Result {
	result := goneResult(m, id)
	if result.Gone {
		result.Code = ""
		result.Parent = &ParentAnswer{State: finalizationState(m, id), AlreadyFinalized: true}
	}
	return result
}

// replaceFinalization replaces the parent's finalization. UpdatedAt stays, because the task
// itself does not change.
func replaceFinalization(m *Machine, id uint64, f *record.Finalization) {
	updatedAt := m.Get(id).UpdatedAt
	t := m.edit(id)
	t.SetFinalization(f)
	t.UpdatedAt = updatedAt
	m.edited(t)
}

// finalizationState returns the state of the task's finalization. For a removed task, it
// tells how the task ended.
func finalizationState(m *Machine, id uint64) record.FinalizationState {
	t := m.Get(id)
	switch {
	case t == nil:
		if g := m.gone.find(id, m.Stamp().U); g != nil {
			return endedState(g.Status)
		}
		return record.StateNotFound
	case t.Parent() == nil:
		return record.PlainState + record.FinalizationState(t.Status)
	case t.Status.Ended():
		return endedState(t.Status)
	case m.parents.byID[id].open() == 0:
		return record.StateEvaluatingResults
	}
	return record.StateWaitingForSteps
}

// endedState returns the state of a parent that ended with the status.
func endedState(s record.Status) record.FinalizationState {
	switch s {
	case record.StatusCompleted:
		return record.StateComplete
	case record.StatusFailed:
		return record.StateFailed
	}
	return record.StateCancelled
}

// Steps returns the state of the parent's steps, in the plan's order; nil if the task does not
// exist or has none.
func (m *Machine) Steps(id uint64) []StepView {
	t := m.Get(id)
	if t == nil || t.Parent() == nil {
		return nil
	}
	plan := t.Parent().Plan
	views := make([]StepView, len(plan.Steps))
	for place := range views {
		if s := m.Get(plan.IDOf(id, place)); s != nil {
			views[place] = StepView{Type: s.Type, Status: s.Status, Error: s.Error}
		}
	}
	return views
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
func endParent(m *Machine, id uint64, end parentEnd) {
	t := m.edit(id)
	t.DropFinalizationClaim()
	t.WorkerID, t.Token = end.ProcessorID, end.Token
	switch end.To {
	case record.StatusCompleted:
		t.Result = end.Result
	case record.StatusFailed:
		t.Error = end.Error
	}
	endTask(m, t, end.To)
	tellParentEnd(m, t)
	m.edited(t)
}

// tellParentEnd records in the trail who finalized the parent, and its end.
func tellParentEnd(m *Machine, t *record.Task) {
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
func autoEnd(m *Machine, t *record.Task) parentEnd {
	plan := t.Parent().Plan
	var completed int
	var culprit *record.Task // the first failed step, else the first cancelled one
	for place := range plan.Steps {
		switch s := m.Get(plan.IDOf(t.ID, place)); {
		case s.Status == record.StatusCompleted:
			completed++
		case culprit == nil, culprit.Status != record.StatusFailed && s.Status == record.StatusFailed:
			culprit = s
		}
	}
	if culprit == nil || plan.Continue && completed > 0 {
		return parentEnd{To: record.StatusCompleted, Result: autoResult(m, t)}
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
func autoResult(m *Machine, t *record.Task) []byte {
	size, fits := autoResultSize(m, t)
	b := append(make([]byte, 0, size), '{')
	plan := t.Parent().Plan
	for place := range plan.Steps {
		s := m.Get(plan.IDOf(t.ID, place))
		if s.Status != record.StatusCompleted {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, plan.Steps[place].Name...)
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
func autoResultSize(m *Machine, t *record.Task) (size int, fits bool) {
	results, ids := len(`{}`), len(`{}`)
	plan := t.Parent().Plan
	for place := range plan.Steps {
		s := m.Get(plan.IDOf(t.ID, place))
		if s.Status != record.StatusCompleted {
			continue
		}
		name := len(plan.Steps[place].Name) + len(`"":,`)
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
