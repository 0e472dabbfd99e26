package fsm

import (
	"cmp"
	"math"
	"strconv"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// newTask returns a pending task with the next id. The caller sets the options and when it
// may run.
func newTask(m *Machine, n *record.NewTask) *record.Task {
	now := m.Stamp().T
	t := &record.Task{
		ID:          m.header.NextID,
		Type:        n.Type,
		Params:      n.Params,
		Payload:     n.Payload,
		Priority:    n.Priority,
		MaxAttempts: n.MaxAttempts,
		Key:         n.Key,
		LeaseMS:     n.LeaseMS,
		Status:      record.StatusPending,
		CreatedAt:   now,
		UpdatedAt:   now,
	}
	if n.MaxAttempts < 0 {
		t.MaxAttempts = m.maxAttemptsOf(n.Type)
	}
	return t
}

// addNew adds the new task to the state. message goes with its event in the trail.
func addNew(m *Machine, t *record.Task, message string) {
	m.header.NextID++
	m.changed++
	m.tasks.Put(t.ID, t)
	m.count(m.include(t), rateSubmitted)
	m.tally.Submitted++
	m.tellOf(event.Submitted, t, message)
	if t.Status == record.StatusScheduled {
		m.tellWait(t)
	}
	m.tasks.Rest(t.ID)
}

// runAtOf returns when the task may be claimed, by T; 0 = at once.
func runAtOf(m *Machine, n *record.NewTask) int64 {
	if ms := delayOf(m, n); ms != 0 {
		return fromNow(m, ms)
	}
	return n.RunAt
}

// delayOf returns the delay of the new task: its own, else its type's, or 0.
func delayOf(m *Machine, n *record.NewTask) int64 {
	if n.DelayMS != 0 || n.RunAt != 0 || n.AtOnce {
		return n.DelayMS
	}
	return m.types.settingsOf(n.Type).DelayMS
}

// setRunAt sets when the unclaimed task that is being edited may run: it becomes scheduled, or
// pending if the time is not in the future.
func setRunAt(m *Machine, t *record.Task, at int64) {
	t.RunAt, t.Status = at, record.StatusPending
	if at > m.Stamp().T {
		t.Status = record.StatusScheduled
	}
}

// setReady makes the unclaimed task that is being edited wait for its signal if it lacks one, else
// for its time.
func setReady(m *Machine, t *record.Task, at int64) {
	if !t.LacksSignal() {
		setRunAt(m, t, at)
		return
	}
	t.RunAt, t.Status = at, record.StatusBlocked
	awaitSignal(m, t, fromNow(m, t.Opts().SignalMS))
}

// awaitSignal sets until when the task that is being edited waits for its signal; 0 = it does not.
func awaitSignal(m *Machine, t *record.Task, until int64) {
	o := *t.Opts()
	o.SignalUntil = until
	t.SetOptions(o)
}

// fromNow returns the time by T that is ms from now, at most the maximum of int64.
func fromNow(m *Machine, ms int64) int64 {
	now := m.Stamp().T
	if ms > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + ms
}

// beginClaim claims the pending task, which the table has returned for writing. request is the
// sequence number of the claim request to inform when the claim ends, or 0.
func beginClaim(m *Machine, t *record.Task, workerID string, leaseMS int64, request uint64) {
	since := t.UpdatedAt
	m.change(t)
	ts := m.types.named(t.Type)
	m.time(ts, Waited, m.Stamp().T-since)
	if r := ts.Record(); r != nil {
		noteType(m, r)
		r.Spend(m.Stamp().T)
	}
	if key := t.Opts().ShareKey; key != "" {
		m.shares.spend(&ts.Type, key, m.Stamp().T)
	}
	t.Status = record.StatusClaimed
	if t.Attempts < math.MaxInt32 {
		t.Attempts++
	}
	if leaseMS == 0 {
		leaseMS = m.leaseOfTask(t)
	}
	t.WorkerID = workerID
	t.Token = m.header.NextToken
	m.header.NextToken++
	t.LeaseSeq = command.FirstAnswer
	t.ClaimLeaseMS = leaseMS
	t.LeaseEndU = m.Stamp().U + leaseMS
	t.ClaimedAt = m.Stamp().T
	m.edited(t)

	m.claims.hold(t, &ts.held, request)
	m.begun = append(m.begun, leaseOf(t))
	m.tellClaim(event.Claimed, t)
}

// logWith returns a copy of the attempts log with one more attempt. A full log drops its
// oldest.
func logWith(log []record.Attempt, a record.Attempt) []record.Attempt {
	if len(log) >= record.AttemptsLogMax {
		log = log[len(log)-record.AttemptsLogMax+1:]
	}
	longer := make([]record.Attempt, len(log)+1)
	copy(longer, log)
	longer[len(log)] = a
	return longer
}

// leaseOf returns the lease of a claimed task.
func leaseOf(t *record.Task) command.Lease {
	return command.Lease{TaskID: t.ID, Token: t.Token, Seq: t.LeaseSeq, EndU: t.LeaseEndU}
}

// extendLease lets the claim last leaseMS from now (0: its own length), but never shortens
// it. It returns the task.
func extendLease(m *Machine, id uint64, leaseMS int64) *record.Task {
	t := m.edit(id)
	lengthen(m, t, leaseMS)
	m.edited(t)
	return t
}

// lengthen is extendLease for the task that is being edited.
func lengthen(m *Machine, t *record.Task, leaseMS int64) {
	asked := leaseMS != 0
	if !asked {
		leaseMS = t.ClaimLeaseMS
	}
	if end := m.Stamp().U + leaseMS; end > t.LeaseEndU {
		t.LeaseEndU = end
		if asked {
			t.ClaimLeaseMS = leaseMS
		}
	}
	t.LeaseSeq++ // even if the end stays, so that an Expire that is on its way no longer matches
}

// shorten ends the lease of the task that is being edited leaseMS from now (0: the claim's
// own length). It reports whether that is earlier; otherwise it changes nothing.
func shorten(m *Machine, t *record.Task, leaseMS int64) bool {
	leaseMS = cmp.Or(leaseMS, t.ClaimLeaseMS)
	end := m.Stamp().U + leaseMS
	if end >= t.LeaseEndU {
		return false
	}
	t.LeaseEndU, t.ClaimLeaseMS = end, leaseMS
	return true
}

// giveBack ends the claim of the task that is being edited. The task becomes pending after
// delayMS.
func giveBack(m *Machine, t *record.Task, outcome record.Outcome, failure string, delayMS int64) {
	switch {
	case t.CancelRequested:
		endClaim(m, t, outcome, failure, record.StatusCancelled)
	case delayMS > 0:
		t.RunAt = fromNow(m, delayMS)
		endClaim(m, t, outcome, failure, record.StatusScheduled)
	default:
		endClaim(m, t, outcome, failure, record.StatusPending)
	}
}

// giveUp ends the claim of the task that is being edited. The task fails, or is cancelled
// if that was requested.
func giveUp(m *Machine, t *record.Task, outcome record.Outcome, failure string) {
	to := record.StatusFailed
	if t.CancelRequested {
		to = record.StatusCancelled
	}
	endClaim(m, t, outcome, failure, to)
}

// endClaim ends the claim of the task that is being edited and moves the task to its next
// status: pending, scheduled, or an end.
func endClaim(m *Machine, t *record.Task, outcome record.Outcome, failure string, to record.Status) {
	claim := claimEventOf(0, t)
	ts := m.types.named(t.Type)
	request := m.claims.letGo(t, &ts.held)
	if outcome == record.OutcomeCompleted {
		m.time(ts, Ran, m.Stamp().T-t.ClaimedAt)
	}
	if request != 0 {
		m.requests.claimEnded(request, m.Stamp().U)
	}
	if to != record.StatusCompleted { // else the task's own fields have it
		t.Log = logWith(t.Log, record.Attempt{
			WorkerID: t.WorkerID, Token: t.Token, ClaimedAt: t.ClaimedAt, EndedAt: m.Stamp().T, Outcome: outcome, Error: failure,
		})
	}
	t.LeaseSeq, t.ClaimLeaseMS, t.LeaseEndU = 0, 0, 0
	if to.Ended() {
		endTask(m, t, to)
	} else {
		t.WorkerID, t.Token = "", 0
		t.Status = to
		m.requeued++
	}
	m.tellEnd(&claim, t, outcome, failure)
}

// attemptsLeft reports whether the task may be claimed again.
func attemptsLeft(t *record.Task) bool {
	return t.MaxAttempts == 0 || t.Attempts < t.MaxAttempts
}

// endTask ends the task that is being edited. It has no live claim. edited applies the
// consequences of a step's end.
func endTask(m *Machine, t *record.Task, to record.Status) {
	t.Status = to
	t.CompletedAt = m.Stamp().T
	switch to {
	case record.StatusCompleted:
		m.count(m.types.named(t.Type), rateCompleted)
		m.tally.Completed++
	case record.StatusFailed:
		m.count(m.types.named(t.Type), rateFailed)
		m.tally.Failed++
	case record.StatusCancelled:
		m.tally.Cancelled++
	}
	m.ended = append(m.ended, t.ID)
	if t.Opts().SignalUntil != 0 {
		awaitSignal(m, t, 0)
	}
	if to == record.StatusCancelled {
		t.WorkerID = ""
	}
	if t.Opts().UniqueActive && t.Key != "" {
		m.keys.Remove(t.KeyName(), t.ID)
	}
	if t.Step() != nil {
		m.stepsEnded = append(m.stepsEnded, t.ID)
		return // it is kept as long as its parent
	}
	switch keep := retentionOf(m, t); keep {
	case record.KeepForever:
	case record.KeepNone:
		t.RemoveAt = t.CompletedAt
		m.ends.leaving = append(m.ends.leaving, t.ID)
	default:
		t.RemoveAt = fromNow(m, keep)
	}
}

// endUnclaimed is endTask for a task that is not claimed: it was cancelled, or not started
// in time. From then on it has the token of its last claim, if any.
func endUnclaimed(m *Machine, t *record.Task, to record.Status) {
	if last := t.LastEnded(); last.Outcome != record.OutcomeNone {
		t.Token = last.Token
	}
	endTask(m, t, to)
	if to == record.StatusCancelled {
		m.tellOf(event.Cancelled, t, "")
	} else {
		m.tellOf(event.Expired, t, "")
	}
}

// stopTask cancels a task that is not claimed, or records the request on a claimed one. It returns the
// task.
func stopTask(m *Machine, id uint64) *record.Task {
	t := m.edit(id)
	if t.Status == record.StatusClaimed {
		t.CancelRequested = true
		m.tellClaim(event.CancelRequested, t)
	} else {
		endUnclaimed(m, t, record.StatusCancelled)
	}
	m.edited(t)
	return t
}

// mayRetry reports whether the task has attempts left after the retry.
func mayRetry(t *record.Task, c command.Retry) bool {
	most := raisedMax(t.MaxAttempts, c.AddAttempts)
	return most == 0 || t.Attempts < most
}

// raisedMax returns a limit of attempts raised by add. No limit stays no limit.
func raisedMax(limit, add int32) int32 {
	if limit == 0 || add <= 0 {
		return limit
	}
	return int32(min(int64(limit)+int64(add), math.MaxInt32))
}

// revive makes the ended task that is being edited pending. An expiry that has passed is
// cleared, because it would end the task again at once. A step that has to wait for others
// becomes blocked.
func revive(m *Machine, t *record.Task) {
	unend(m, t)
	t.Status = record.StatusPending
	if o := *t.Opts(); mayExpire(t) && o.ExpiresAt <= m.Stamp().T {
		o.ExpiresAt = 0
		t.SetOptions(o)
	}
	if s := t.Step(); s != nil && m.parents.byID[s.ParentID].waiting[t.StepPlace()] > 0 {
		t.Status = record.StatusBlocked
		return
	}
	if t.LacksSignal() {
		setReady(m, t, t.RunAt)
		return
	}
	m.requeued++
}

// unend clears the fields that the end of the task being edited has set.
func unend(m *Machine, t *record.Task) {
	t.WorkerID, t.Token = "", 0
	t.CompletedAt, t.RemoveAt = 0, 0
	t.Result, t.ResultPayload = nil, nil
	t.CancelRequested = false
	if t.Opts().UniqueActive && t.Key != "" {
		m.addKey(t)
	}
}

// keepThen stores the further effects of ending the task, so that a repeat gets the same answer.
func keepThen(m *Machine, id uint64, then *record.Then) {
	if then == nil {
		return
	}
	t := m.tasks.Edit(id)
	before := record.HeldBytes(t)
	t.Then = then // no index depends on it
	m.grown(t, record.HeldBytes(t)-before)
	m.tasks.Rest(id)
}

// drop removes an ended task from the state.
func drop(m *Machine, t *record.Task) {
	m.changed++
	m.exclude(t)
	m.tasks.Remove(t.ID)
	m.ended = append(m.ended, t.ID)
}

// lastAttempt reports whether the claimed task fails if this attempt of it does.
func lastAttempt(m *Machine, t *record.Task) bool {
	if !attemptsLeft(t) {
		return true
	}
	s := m.types.settingsOf(t.Type)
	return s.DeadLetterAfter != 0 && t.Attempts >= s.DeadLetterAfter && t.Step() == nil
}

// bury submits a copy of a task whose last attempt has just failed to its type's dead-letter type,
// if there is one. A step has no copy, because its parent can be retried.
func bury(m *Machine, t *record.Task) {
	if t.Status != record.StatusFailed || t.Step() != nil {
		return
	}
	to := m.types.settingsOf(t.Type).DeadLetter
	if to == "" {
		return
	}
	copyTo(m, t, to, &record.Source{Type: t.Type, ID: t.ID}, "dead letter of task ")
}

// copyTo submits a copy of a task that has just ended as a task of another type, and notes the
// copy in the task that ended. message, with the task's id, goes with the copy's event.
func copyTo(m *Machine, t *record.Task, to string, origin *record.Source, message string) {
	o := t.Opts()
	n := t.Copy(to)
	if o.ExpiresAgain && o.ExpiresAt != 0 { // its time begins again
		n.ExpiresAt, n.ExpiresAgain = fromNow(m, o.ExpiresAt-t.CreatedAt), true
	}
	c := newTask(m, &n)
	kept := n.Options()
	kept.Origin = origin
	if o.Signalled { // the copy need not wait for another one
		kept.SignalMS, kept.Signalled, kept.Signal = o.SignalMS, true, o.Signal
	}
	c.SetOptions(kept)
	addNew(m, c, message+strconv.FormatUint(t.ID, 10))
	then := &record.Then{Submitted: []record.FollowUp{{ID: c.ID, Created: true}}}
	keepThen(m, t.ID, then)
	t.Then = then // for the answer, as the table may hold another copy by now
}

// movedOn reports whether the task has ended and goes on as a copy: its dead letter, or where a
// move took it.
func movedOn(t *record.Task) bool {
	return (t.Status == record.StatusFailed || t.Status == record.StatusCancelled) && t.Then != nil
}
