package fsm

import (
	"slices"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// Hold names a claim as its worker does. Token 0 means that the worker sent
// none: then only WorkerID is checked.
type Hold struct {
	ID       uint64
	WorkerID string
	Token    uint64
}

// about is what the commands of a claim's worker are about.
func (h Hold) about() About {
	return About{Known: true, ID: h.ID, WorkerID: h.WorkerID, Changes: 1}
}

// Fail ends the attempt: the task becomes pending when it has attempts left,
// else failed.
type Fail struct {
	Hold
	Error string // at most 16 KiB, cut by the caller
	// RetryInMS, if RetryIn is set, is how long the task waits in place of its
	// backoff.
	RetryIn   bool
	RetryInMS int64
	Permanent bool // failed, whatever attempts are left
}

func (Fail) kind() kind { return kindFail }

func (c Fail) needs() uint32 {
	if c.RetryIn || c.RetryInMS != 0 || c.Permanent {
		return record.LevelLife
	}
	return 0
}

func (c Fail) judge(m *Machine, _ record.Stamp) (result Result, acts bool) {
	return m.holdOf(c.Hold, record.OutcomeFailed)
}

func (c Fail) applyTo(m *Machine) (Result, error) { return m.fail(c), nil }

// Extend moves the lease's end to LeaseMS (0: the claim's own length) from
// now, never to an earlier time.
type Extend struct {
	Hold
	LeaseMS  int64
	Progress []byte // JSON as given; nil leaves the last one
}

func (Extend) kind() kind { return kindExtend }

func (c Extend) needs() uint32 {
	if c.Progress != nil {
		return record.LevelLife
	}
	return 0
}

func (c Extend) judge(m *Machine, _ record.Stamp) (result Result, acts bool) {
	return m.holdOf(c.Hold, record.OutcomeNone)
}

func (c Extend) applyTo(m *Machine) (Result, error) { return m.extend(c), nil }

// Release gives the task back; the attempt is not counted. It is not claimable
// for DelayMS.
type Release struct {
	Hold
	DelayMS int64
}

func (Release) kind() kind { return kindRelease }

func (c Release) needs() uint32 {
	if c.DelayMS != 0 {
		return record.LevelLife
	}
	return 0
}

func (c Release) judge(m *Machine, _ record.Stamp) (result Result, acts bool) {
	return m.holdOf(c.Hold, record.OutcomeReleased)
}

func (c Release) applyTo(m *Machine) (Result, error) { return m.release(c), nil }

// fail ends the attempt.
func (m *Machine) fail(c Fail) Result {
	result, ok := m.held(c.Hold, record.OutcomeFailed)
	if !ok {
		return result
	}
	t := m.edit(c.ID)
	t.Error = c.Error
	switch {
	case c.Permanent || !attemptsLeft(t):
		m.giveUp(t, record.OutcomeFailed, c.Error)
	case c.RetryIn:
		m.giveBack(t, record.OutcomeFailed, c.Error, c.RetryInMS)
	default:
		m.giveBack(t, record.OutcomeFailed, c.Error, m.backoffDelay(t))
	}
	m.edited(t)
	return Result{Task: m.copyOf(t)}
}

// release gives the task back, as if it had not been claimed.
func (m *Machine) release(c Release) Result {
	result, ok := m.held(c.Hold, record.OutcomeReleased)
	if !ok {
		return result
	}
	t := m.edit(c.ID)
	t.Attempts = max(t.Attempts-1, 0)
	m.giveBack(t, record.OutcomeReleased, "", c.DelayMS)
	m.edited(t)
	return Result{Task: m.copyOf(t)}
}

// extend moves the end of the lease and notes the progress.
func (m *Machine) extend(c Extend) Result {
	// No claim ends by an extend: so none is repeated.
	result, ok := m.held(c.Hold, record.OutcomeNone)
	if !ok {
		return result
	}
	t := m.edit(c.ID)
	m.lengthen(t, c.LeaseMS)
	if c.Progress != nil {
		t.Progress = c.Progress
	}
	m.edited(t)
	return Result{Task: m.copyOf(t)}
}

// extendLease lets the claim of a claimed task last leaseMS (0: its own
// length) from now, or longer if it does already, and returns the task.
func (m *Machine) extendLease(id uint64, leaseMS int64) *record.Task {
	t := m.edit(id)
	m.lengthen(t, leaseMS)
	m.edited(t)
	return t
}

// lengthen is extendLease of the task that is being edited.
func (m *saved) lengthen(t *record.Task, leaseMS int64) {
	asked := leaseMS != 0
	if !asked {
		leaseMS = t.ClaimLeaseMS
	}
	if end := m.header.Stamp.U + leaseMS; end > t.LeaseEndU {
		t.LeaseEndU = end
		if asked {
			t.ClaimLeaseMS = leaseMS
		}
	}
	t.LeaseSeq++ // also if the end stays: an expiry on its way is for the old state
}

// held returns ok true if the task is claimed by h, whose call ends the claim with
// the outcome (OutcomeNone: does not end it), else the answer.
func (m *Machine) held(h Hold, outcome record.Outcome) (result Result, ok bool) {
	if result, ok = m.holdOf(h, outcome); result.Task != nil && !result.Gone {
		result.Task = m.copyOf(result.Task)
	}
	return result, ok
}

// holdOf is held, by the contract's order of checks. It changes nothing, and the
// result has the state's own task.
func (m *saved) holdOf(h Hold, outcome record.Outcome) (result Result, ok bool) {
	t := m.tasks.Get(h.ID)
	switch {
	case t == nil:
		return m.heldGone(h, outcome), false
	case repeats(t, h, outcome):
		return Result{Repeated: true, Task: t}, false
	case t.Status.Ended():
		return Result{Code: endedCode(t.Status), Task: t}, false
	case t.Status != record.StatusClaimed && h.Token != 0:
		return Result{Code: CodeStaleClaim, Task: t}, false
	case t.Status != record.StatusClaimed:
		return Result{Code: CodeTaskNotClaimed, Task: t}, false
	case t.WorkerID != h.WorkerID:
		return Result{Code: CodeWrongWorker, Task: t}, false
	case h.Token != 0 && h.Token != t.Token:
		return Result{Code: CodeStaleClaim, Task: t}, false
	}
	return Result{}, true
}

// repeats reports whether the last claim that ended was ended by the same
// call. Without a token that can only be told of a task that ended with its
// last claim.
func repeats(t *record.Task, h Hold, outcome record.Outcome) bool {
	if outcome == record.OutcomeNone {
		return false
	}
	last := record.LastEnded(t.Log)
	if last == nil || last.Outcome != outcome {
		return false
	}
	if h.Token != 0 {
		return last.Token == h.Token
	}
	return record.EndedByClaim(t) && last.WorkerID == h.WorkerID
}

// giveBack ends the claim of the claimed task that is being edited; the task
// waits for delayMS until it is pending again.
func (m *Machine) giveBack(t *record.Task, outcome record.Outcome, failure string, delayMS int64) {
	switch {
	case t.CancelRequested:
		m.end(t, outcome, failure, record.StatusCancelled)
	case delayMS > 0:
		t.RunAt = m.fromNow(delayMS)
		m.end(t, outcome, failure, record.StatusScheduled)
	default:
		m.end(t, outcome, failure, record.StatusPending)
	}
}

// giveUp ends the claim of the claimed task that is being edited; the task has
// failed, or was cancelled if that was asked.
func (m *Machine) giveUp(t *record.Task, outcome record.Outcome, failure string) {
	to := record.StatusFailed
	if t.CancelRequested {
		to = record.StatusCancelled
	}
	m.end(t, outcome, failure, to)
}

// end ends the claim of the claimed task that is being edited, and moves the
// task to where it goes: pending, scheduled, or an end.
func (m *Machine) end(t *record.Task, outcome record.Outcome, failure string, to record.Status) {
	claim := claimEventOf(0, t)
	ref, _ := m.claims.Delete(t.Token)
	ts := m.typeNamed(t.Type)
	m.holdings.LetGo(&ts.held, ref.place)
	if outcome == record.OutcomeCompleted {
		m.time(ts, Ran, m.header.Stamp.T-t.ClaimedAt)
	}
	if ref.request != 0 {
		m.claimEnded(ref.request)
	}
	t.Log = logEnded(t.Log, m.header.Stamp.T, outcome, failure)
	t.LeaseSeq, t.ClaimLeaseMS, t.LeaseEndU = 0, 0, 0
	if to.Ended() {
		m.finish(t, to)
	} else {
		t.WorkerID, t.Token = "", 0
		t.Status = to
		m.requeued++
	}
	m.tellEnd(&claim, t, outcome, failure)
}

// logEnded returns the attempts log with its last attempt ended.
func logEnded(log []record.Attempt, at int64, outcome record.Outcome, failure string) []record.Attempt {
	log = slices.Clone(log)
	last := &log[len(log)-1]
	last.EndedAt, last.Outcome, last.Error = at, outcome, failure
	return log
}

// attemptsLeft reports whether the task may be claimed once more.
func attemptsLeft(t *record.Task) bool {
	return t.MaxAttempts == 0 || t.Attempts < t.MaxAttempts
}

// appendHold appends what the commands of a claim's worker begin with.
func appendHold(b []byte, h Hold) []byte {
	b = wire.PutID(b, 1, h.ID)
	b = wire.PutString(b, 2, h.WorkerID)
	return wire.PutID(b, 3, h.Token)
}

// hold reads the field into h if it is one of Hold's, and reports whether it is.
func (r *fieldReader) hold(h *Hold) bool {
	switch r.Num {
	case 1:
		h.ID = r.ID()
	case 2:
		h.WorkerID = r.Name()
	case 3:
		h.Token = r.ID()
	default:
		return false
	}
	return true
}

func (c Fail) appendBody(b []byte) []byte {
	b = appendHold(b, c.Hold)
	b = wire.PutString(b, 4, c.Error)
	b = wire.PutBool(b, 5, c.RetryIn)
	b = wire.PutInt(b, 6, c.RetryInMS)
	return wire.PutBool(b, 7, c.Permanent)
}

func (Fail) decode(r fieldReader) (Command, error) {
	var c Fail
	for r.Next() {
		switch {
		case r.hold(&c.Hold):
		case r.Num == 4:
			c.Error = r.Text()
		case r.Num == 5:
			c.RetryIn = r.Bool()
		case r.Num == 6:
			c.RetryInMS = r.Int64()
		case r.Num == 7:
			c.Permanent = r.Bool()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

func (c Extend) appendBody(b []byte) []byte {
	b = appendHold(b, c.Hold)
	b = wire.PutInt(b, 4, c.LeaseMS)
	return wire.PutBytes(b, 5, c.Progress)
}

func (Extend) decode(r fieldReader) (Command, error) {
	var c Extend
	for r.Next() {
		switch {
		case r.hold(&c.Hold):
		case r.Num == 4:
			c.LeaseMS = r.Int64()
		case r.Num == 5:
			c.Progress = r.Bytes()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

func (c Release) appendBody(b []byte) []byte {
	b = appendHold(b, c.Hold)
	return wire.PutInt(b, 4, c.DelayMS)
}

func (Release) decode(r fieldReader) (Command, error) {
	var c Release
	for r.Next() {
		switch {
		case r.hold(&c.Hold):
		case r.Num == 4:
			c.DelayMS = r.Int64()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}
