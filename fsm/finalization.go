package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// ParentAnswer is the part of an answer about a parent that is not in its task. Each
// command sets only some of the fields.
type ParentAnswer struct {
	// Steps are the steps after the command, in the plan's order: for a Submit of one task
	// and for commands about one task, if it has steps.
	Steps []StepView

	// For ClaimFinalization, ExtendFinalization and ReleaseFinalization:

	Outcome record.FinalizationOutcome // of a claim
	Done    bool                       // extended, or released
	Holder  string                     // who holds the claim now, or ""
	Token   uint64                     // of a new or extended claim, else 0
	State   record.FinalizationState

	// AlreadyFinalized is true if a Finalize came after the parent had ended; Result.Task
	// says how.
	AlreadyFinalized bool
}

// StepView is the current state of a step. Its fixed properties are in the parent's plan.
type StepView struct {
	Type   string
	Status record.Status
	Error  string // its last failure
}

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
func (m *Machine) FinalizationCount() int { return m.finalizing.Len() }

// clearFinalizations removes a bounded number of claims that are over. How far it gets
// affects no answer, because every reader checks the time itself.
func (m *Machine) clearFinalizations() {
	for range dueTickMax {
		id, ok := m.finalizing.Due(m.Stamp().U)
		if !ok {
			return
		}
		m.replaceFinalization(id, &record.Finalization{Attempts: m.Get(id).Parent().Finalization.Attempts})
	}
}

// claimFinalization claims the finalization of a parent. The parent remembers the attempt.
func (m *Machine) claimFinalization(c command.ClaimFinalization) Result {
	t := m.Get(c.ID)
	answer := &ParentAnswer{State: m.finalizationState(c.ID)}
	switch {
	case t == nil && answer.State == record.StateNotFound:
		answer.Outcome = record.FinalizationNotFound
	case t == nil:
		answer.Outcome = record.FinalizationAlreadyDone
	case t.Parent() == nil:
		answer.Outcome = record.FinalizationNotReady
	default:
		m.tryFinalization(t, c, answer)
	}
	return Result{Parent: answer}
}

// tryFinalization is claimFinalization for an existing parent.
func (m *Machine) tryFinalization(t *record.Task, c command.ClaimFinalization, answer *ParentAnswer) {
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
	case m.parents[t.ID].done() == 0:
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
	m.replaceFinalization(t.ID, &f)
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
func (m *Machine) extendFinalization(c command.ExtendFinalization) Result {
	t, f, answer := m.askFinalization(c.ID, m.Stamp().U)
	if f != nil && answer.Holder == c.ProcessorID {
		timeoutMS := c.TimeoutMS
		if timeoutMS == 0 {
			timeoutMS = f.TimeoutMS
		}
		f = f.Lasting(timeoutMS, m.Stamp().U)
		m.replaceFinalization(t.ID, f)
		answer.Done, answer.Token = true, f.Token
	}
	return Result{Parent: answer}
}

// releaseFinalization gives the claim back. A processor that has finalized the parent gets
// the answer that it is done, because that ended its claim.
func (m *Machine) releaseFinalization(c command.ReleaseFinalization) Result {
	t, f, answer := m.askFinalization(c.ID, m.Stamp().U)
	switch {
	case t == nil:
		g := m.findGone(c.ID)
		answer.Done = g != nil && g.WorkerID == c.ProcessorID && g.Outcome == record.OutcomeNone
	case t.Parent() == nil:
	case t.Status.Ended():
		answer.Done = t.WorkerID == c.ProcessorID
	case f != nil && answer.Holder == c.ProcessorID:
		m.replaceFinalization(t.ID, &record.Finalization{Attempts: f.Attempts})
		answer.Done, answer.Holder = true, ""
	}
	return Result{Parent: answer}
}

// askFinalization returns the task, its finalization or nil, and an answer with its state
// at time u by the lease clock.
func (m *Machine) askFinalization(id uint64, u int64) (*record.Task, *record.Finalization, *ParentAnswer) {
	answer := &ParentAnswer{State: m.finalizationState(id)}
	t := m.Get(id)
	if t == nil || t.Parent() == nil || t.Parent().Finalization == nil {
		return t, nil, answer
	}
	f := t.Parent().Finalization
	answer.Holder = f.Holder(u)
	return t, f, answer
}

// finalize ends a parent.
func (m *Machine) finalize(c command.Finalize) Result {
	result, ends := m.finalizable(c, m.Stamp().U)
	if ends {
		m.endByProcessor(result.Task, &c, result.Parent.Holder != "")
		result.Task = m.Get(c.ID)
		result.Parent.State, result.Parent.Holder = m.finalizationState(c.ID), ""
		result.Parent.Steps = m.Steps(c.ID)
	}
	return m.withCopy(result)
}

// finalizable returns ends true if the processor may end the parent at time u by the lease
// clock, and the answer otherwise. It changes nothing; the result contains the state's own
// task.
func (m *Machine) finalizable(c command.Finalize, u int64) (result Result, ends bool) {
	t, f, answer := m.askFinalization(c.ID, u)
	switch {
	case t == nil:
		return m.finalizeGone(c.ID), false
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
func (m *Machine) endByProcessor(t *record.Task, c *command.Finalize, claimed bool) {
	end := parentEnd{To: record.StatusCompleted, ProcessorID: c.ProcessorID, Result: c.Result}
	if c.Failed {
		end = parentEnd{To: record.StatusFailed, ProcessorID: c.ProcessorID, Error: c.Error}
	}
	if claimed {
		end.Token = t.Parent().Finalization.Token
	}
	m.endParent(t.ID, end)
}

// finalizeGone answers a Finalize for a task that does not exist. One that was removed had
// ended.
func (m *Machine) finalizeGone(id uint64) Result {
	result := m.goneResult(id)
	if result.Gone {
		result.Code = ""
		result.Parent = &ParentAnswer{State: m.finalizationState(id), AlreadyFinalized: true}
	}
	return result
}

// replaceFinalization replaces the parent's finalization. UpdatedAt stays, because the task
// itself does not change.
func (m *Machine) replaceFinalization(id uint64, f *record.Finalization) {
	updatedAt := m.Get(id).UpdatedAt
	t := m.edit(id)
	t.SetFinalization(f)
	t.UpdatedAt = updatedAt
	m.edited(t)
}

// finalizationState returns the state of the task's finalization. For a removed task, it
// tells how the task ended.
func (m *Machine) finalizationState(id uint64) record.FinalizationState {
	t := m.Get(id)
	switch {
	case t == nil:
		if g := m.findGone(id); g != nil {
			return endedState(g.Status)
		}
		return record.StateNotFound
	case t.Parent() == nil:
		return record.PlainState + record.FinalizationState(t.Status)
	case t.Status.Ended():
		return endedState(t.Status)
	case m.parents[id].open() == 0:
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
