package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// act applies the action to each listed task that still matches the filter.
func act(m *Machine, c command.Act) Result {
	var result Result
	for _, id := range c.IDs {
		t := m.Get(id)
		if t != nil && c.Filter.Matches(t) && (c.Filter.Key == "" || m.hasKey(t)) && (c.EndedUntil == 0 || t.CompletedAt <= c.EndedUntil) && actOn(m, id, &c) {
			result.Acted++
		}
	}
	return result
}

// actOn applies the action to one existing task. It reports whether the task changed.
func actOn(m *Machine, id uint64, c *command.Act) bool {
	var result Result
	switch c.Action {
	case command.ActionRetry:
		// To answer that it is a repeat, retry makes a scheduled task pending.
		waited := m.Get(id).Status == record.StatusScheduled
		result = retry(m, command.Retry{ID: id, AddAttempts: c.AddAttempts})
		result.Repeated = result.Repeated && !waited
	case command.ActionCancel:
		result = cancel(m, command.Cancel{ID: id})
	case command.ActionDelete:
		result = deleteTask(m, command.Delete{ID: id})
	default:
		return false
	}
	return result.Code == "" && !result.Repeated
}

// NothingToDo means that the task already is as the action would leave it. LeftAlone returns it;
// no command is refused with it.
const NothingToDo Code = "nothing_to_do"

// LeftAlone returns why the action would not change the task now: the code with which its own
// command would be refused, or NothingToDo. It returns "" if the action would change the task. It
// changes nothing itself.
func (m *Machine) LeftAlone(t *record.Task, action command.Action, addAttempts int32) Code {
	switch action {
	case command.ActionRetry:
		return notRetried(m, t, command.Retry{ID: t.ID, AddAttempts: addAttempts})
	case command.ActionCancel:
		switch {
		case t.Status == record.StatusCancelled, t.CancelRequested && !t.Status.Ended():
			return NothingToDo
		case t.Status.Ended():
			return endedCode(t.Status)
		}
	case command.ActionDelete:
		if t.Step() != nil || !t.Status.Ended() {
			return CodeTaskNotTerminal
		}
	}
	return ""
}

// notRetried is LeftAlone for a retry without a token.
func notRetried(m *Machine, t *record.Task, c command.Retry) Code {
	switch {
	case t.Status == record.StatusCompleted:
		return CodeTaskCompleted
	case t.Status == record.StatusPending, t.Status == record.StatusBlocked:
		return NothingToDo
	case t.Status == record.StatusScheduled:
		return ""
	case t.Parent() != nil:
		return parentNotRetried(m, t, c)
	}
	if refusal, refused := cannotRetryStep(m, t, (*goneTasks).named); refused {
		return refusal.Code
	}
	switch {
	case t.Status == record.StatusClaimed && t.CancelRequested:
		return ""
	case movedOn(t):
		return endedCode(t.Status)
	case !mayRetry(t, c):
		return CodeMaxAttemptsReached
	}
	refusal, _ := keyTaken(m, t, (*goneTasks).named)
	return refusal.Code
}

// parentNotRetried is notRetried for a task with steps.
func parentNotRetried(m *Machine, t *record.Task, c command.Retry) Code {
	if t.Status == record.StatusRunning {
		counts := &m.parents.byID[t.ID].counts
		switch {
		case t.CancelRequested:
			return CodeTaskCancelled
		case counts[record.StatusFailed]+counts[record.StatusCancelled] == 0:
			return NothingToDo
		}
	}
	refusal, _ := cannotRetrySteps(m, t, c, (*goneTasks).named)
	return refusal.Code
}

// cancel ends a task that is not claimed. For a claimed task it only records the request: the
// worker learns of it at its next extend, its complete still counts, and any other end of the
// claim cancels the task. A running parent is cancelled with its steps.
func cancel(m *Machine, c command.Cancel) Result {
	t := m.Get(c.ID)
	switch {
	case t == nil:
		result := goneResult(m, c.ID)
		if result.Code == CodeTaskCancelled {
			result.Code, result.Repeated = "", true
		}
		return result
	case t.Status == record.StatusCancelled, t.CancelRequested && t.Status == record.StatusClaimed:
		return Result{Repeated: true, Task: m.copyOf(t)}
	case t.Status.Ended():
		return m.refused(endedCode(t.Status), t)
	}
	if t.Status == record.StatusRunning {
		return cancelParent(m, t)
	}
	t = stopTask(m, c.ID)
	followSteps(m)
	return Result{Task: m.copyOf(t)}
}

// patch changes fields of a task that is neither claimed nor ended.
func patch(m *Machine, c command.Patch) Result {
	t := m.Get(c.ID)
	switch {
	case t == nil:
		return Result{Code: CodeTaskNotFound}
	case t.Status == record.StatusClaimed:
		return m.refused(CodeTaskAlreadyClaimed, t)
	case t.Status.Ended():
		return m.refused(endedCode(t.Status), t)
	case t.Status == record.StatusRunning && (c.SetRunAt || c.SetShareKey):
		refusal := m.refused(CodeTaskNotClaimable, t)
		refusal.Reason = Reason(t.Status.String())
		return refusal
	}
	t = m.edit(c.ID)
	if c.SetPriority {
		t.Priority = c.Priority
	}
	if c.SetLabels {
		o := *t.Opts()
		o.Labels = c.Labels
		t.SetOptions(o)
	}
	if c.SetShareKey {
		o := *t.Opts()
		o.ShareKey = c.ShareKey
		t.SetOptions(o)
	}
	switch {
	case !c.SetRunAt:
	case t.Status == record.StatusBlocked:
		t.RunAt = c.RunAt // for when it is unblocked
	default:
		setRunAt(m, t, c.RunAt)
	}
	m.edited(t)
	if c.SetRunAt && t.Status == record.StatusScheduled {
		m.tellWait(t)
	}
	return Result{Task: m.copyOf(t)}
}

// retry makes a failed, cancelled, claimed or scheduled task pending. A claimed task that
// was asked to stop is cancelled instead.
func retry(m *Machine, c command.Retry) Result {
	t := m.Get(c.ID)
	switch {
	case t == nil:
		return retryGone(m, c)
	case t.Status == record.StatusCompleted:
		return m.refused(CodeTaskCompleted, t)
	case t.Status == record.StatusPending, t.Status == record.StatusBlocked:
		// With any token: the first try may have ended its claim.
		return Result{Repeated: true, Task: m.copyOf(t)}
	case t.Status == record.StatusScheduled:
		t = m.edit(c.ID)
		t.Status = record.StatusPending
		m.edited(t)
		m.tellOf(event.Retried, t, "")
		return Result{Repeated: true, Task: m.copyOf(t)}
	case t.Parent() != nil:
		return retryParent(m, t, c)
	case c.Token != 0 && endedByRetry(t, c.Token):
		// The first try ended the claim with this token.
		return Result{Repeated: true, Task: m.copyOf(t)}
	}
	if refusal, refused := cannotRetryStep(m, t, (*goneTasks).namedOrForget); refused {
		return m.withCopy(refusal)
	}
	switch {
	case c.Token != 0 && c.Token != t.Token:
		return m.refused(CodeStaleClaim, t)
	case t.Status == record.StatusClaimed && t.CancelRequested:
		t = m.edit(c.ID)
		giveUp(m, t, record.OutcomeCancelled, "")
		settled(m, t)
		return Result{Task: m.copyOf(t)}
	}
	return retryTask(m, t, c)
}

// retryTask makes a claimed, failed or cancelled task without steps pending, unless something
// prevents that. The caller has ruled out repeats.
func retryTask(m *Machine, t *record.Task, c command.Retry) Result {
	if movedOn(t) {
		refusal := m.refused(endedCode(t.Status), t)
		refusal.Reason = ReasonMovedOn
		return refusal
	}
	if !mayRetry(t, c) {
		return m.refused(CodeMaxAttemptsReached, t)
	}
	if refusal, refused := keyTaken(m, t, (*goneTasks).namedOrForget); refused {
		return m.withCopy(refusal)
	}
	if s := t.Step(); s != nil && m.Get(s.ParentID).Status.Ended() {
		runAgain(m, s.ParentID)
	}
	t = m.edit(c.ID)
	t.MaxAttempts = raisedMax(t.MaxAttempts, c.AddAttempts)
	if t.Status == record.StatusClaimed {
		endClaim(m, t, record.OutcomeRetried, "", record.StatusPending)
	} else {
		revive(m, t)
		m.tellOf(event.Retried, t, "")
	}
	m.edited(t)
	return Result{Task: m.copyOf(t)}
}

// endedByRetry reports whether the task's last ended claim had the token and a retry ended
// it: the task is claimed again, or the retry cancelled it because that had been requested.
// A task that was cancelled later may be retried.
func endedByRetry(t *record.Task, token uint64) bool {
	last := t.LastEnded()
	if last.Token != token {
		return false
	}
	switch last.Outcome {
	case record.OutcomeRetried:
		return t.Status == record.StatusClaimed
	case record.OutcomeCancelled:
		return t.Status == record.StatusClaimed || t.Status == record.StatusCancelled
	}
	return false
}

// retryGone answers a retry of a task that does not exist. It is a repeat if the retry had
// cancelled the task before it was removed; otherwise the task is not found.
func retryGone(m *Machine, c command.Retry) Result {
	g := m.gone.find(c.ID, m.Stamp().U)
	if g == nil || c.Token == 0 || g.Token != c.Token || g.Outcome != record.OutcomeCancelled {
		return Result{Code: CodeTaskNotFound}
	}
	return Result{Repeated: true, Gone: true, Task: g.Task(c.ID)}
}

// deleteTask removes an ended task and frees its key. A parent is removed with its steps; a step
// cannot be removed alone.
func deleteTask(m *Machine, c command.Delete) Result {
	t := m.Get(c.ID)
	switch {
	case t == nil:
		return Result{Code: CodeTaskNotFound}
	case t.Step() != nil:
		refusal := m.refused(CodeTaskNotTerminal, t)
		refusal.Reason = ReasonStep
		return refusal
	case !t.Status.Ended():
		return m.refused(CodeTaskNotTerminal, t)
	}
	drop(m, t)
	m.tellOf(event.Deleted, t, "")
	if t.Parent() != nil {
		deleteSteps(m, t)
	}
	return Result{Task: t} // only snapshots still share it
}

// signal hands a task its signal. One that comes before the steps that the task depends on have
// completed is kept. The first one counts: to any other, the task is answered as it is.
func signal(m *Machine, c command.Signal) Result {
	t := m.Get(c.ID)
	switch {
	case t == nil:
		return goneResult(m, c.ID)
	case t.Opts().SignalMS == 0:
		refusal := m.refused(CodeTaskNotClaimable, t)
		refusal.Reason = ReasonNoSignal
		return refusal
	case t.Opts().Signalled:
		return Result{Repeated: true, Task: m.copyOf(t)}
	case t.Status.Ended():
		return m.refused(endedCode(t.Status), t)
	}
	t = m.edit(c.ID)
	o := *t.Opts()
	waited := o.SignalUntil != 0
	o.Signal, o.Signalled, o.SignalUntil = c.Body, true, 0
	t.SetOptions(o)
	if waited {
		setRunAt(m, t, t.RunAt)
	}
	m.edited(t)
	m.tellOf(event.Signalled, t, byName(c.By))
	if t.Status == record.StatusScheduled {
		m.tellWait(t)
	}
	return Result{Task: m.copyOf(t)}
}

// movesMax bounds the moves that run at the same time.
const movesMax = 100

// moveTasks starts a move, or cancels one.
func moveTasks(m *Machine, c command.MoveTasks) Result {
	at, known := m.types.find(c.Type)
	if !known {
		return refusedType(m, c.Type)
	}
	r, now := m.types.settings[at], m.Stamp().T
	switch running := r.Moving(); {
	case c.Cancel != 0 && !(running && r.Move.Number == c.Cancel), c.Cancel == 0 && (running || len(m.types.moving) >= movesMax):
		return refusedType(m, c.Type)
	case running:
		stopped := *r.Move
		stopped.Status = record.MoveCancelled
		r.Move = &stopped
	default:
		r.Move = &record.Move{
			Number: m.moment(), To: c.To, Rate: c.Rate, Until: m.header.NextID, ToMove: m.types.named(c.Type).counts[record.StatusPending],
			StartedAt: now, NextAt: now, Status: record.MoveRunning,
		}
	}
	m.types.findMoving()
	m.tellBy(event.TypeChanged, c.Type, c.By)
	return typeResult(m, c.Type)
}
