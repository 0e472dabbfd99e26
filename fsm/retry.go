package fsm

import "math"

// retry makes a task pending that has failed, was cancelled or is claimed.
func (m *Machine) retry(c Retry) Result {
	t := m.tasks.get(c.ID)
	switch {
	case t == nil:
		return Result{Code: CodeTaskNotFound}
	case t.Status == StatusCompleted:
		return refused(CodeTaskCompleted, t)
	case t.Status == StatusPending:
		// Whatever the token: it may be of the claim that the first try ended.
		return Result{Repeated: true, Task: copyOf(t)}
	case c.Token != 0 && c.Token != t.Token:
		return refused(CodeStaleClaim, t)
	}
	most := raisedMax(t.MaxAttempts, c.AddAttempts)
	if most != 0 && t.Attempts >= most {
		return refused(CodeMaxAttemptsReached, t)
	}
	t = m.edit(c.ID)
	t.MaxAttempts = most
	if t.Status == StatusClaimed {
		m.end(t, OutcomeRetried, "", StatusPending)
	} else {
		t.WorkerID, t.Token = "", 0
		t.CompletedAt = 0
		t.Result, t.ResultPayload = nil, nil
		t.Status = StatusPending
	}
	m.edited(t)
	return Result{Task: copyOf(t)}
}

// raisedMax returns a limit of attempts raised by add. No limit stays none.
func raisedMax(limit, add int32) int32 {
	if limit == 0 || add <= 0 {
		return limit
	}
	return int32(min(int64(limit)+int64(add), math.MaxInt32))
}

// delete removes an ended task and frees its key.
func (m *Machine) delete(c Delete) Result {
	t := m.tasks.get(c.ID)
	switch {
	case t == nil:
		return Result{Code: CodeTaskNotFound}
	case !t.Status.Ended():
		return refused(CodeTaskNotTerminal, t)
	}
	m.exclude(t)
	m.tasks.remove(c.ID)
	return Result{Task: t} // nobody has it any more but a snapshot
}
