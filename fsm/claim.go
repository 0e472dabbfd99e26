package fsm

import (
	"cmp"
	"math"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// answerBytesMax bounds the tasks' own bytes in one answer: params, payload, results and
// errors. An answer always has room for one task. A batch is one answer.
const answerBytesMax = 8 << 20

// claimNext claims the first pending tasks of the requested types.
func (m *Machine) claimNext(c command.ClaimNext) Result { return m.claimNextOf(c, false) }

// claimNextOf is claimNext. fresh means that its request id is not remembered, so it need
// not be looked up.
func (m *Machine) claimNextOf(c command.ClaimNext, fresh bool) Result {
	choice := uint64(0) // not computed for requests that are not remembered
	if c.RequestID != "" {
		choice = m.choiceOfNext(c)
	}
	if !fresh {
		if result, known := m.repeatRequest(c.RequestID, c.WorkerID, choice); known {
			return result
		}
	}
	var (
		next   = m.types.Choose(c, m.answers.commands.ListOf(c.Types), &m.dice)
		claims []Claim
		size   = m.answered
		seq    uint64
	)
	for len(claims) < int(c.Limit) {
		id, ok := next.First()
		if !ok {
			break
		}
		// Edit at once, because claiming edits the task in any case.
		t := m.tasks.Edit(id)
		size += record.AnswerBytes(t)
		if size > answerBytesMax && (len(claims) > 0 || m.answered > 0) {
			m.tasks.Rest(id)
			break
		}
		if claims == nil {
			claims = m.answers.claims.take(int(min(int64(c.Limit), m.counts[record.StatusPending])))[:0]
			seq = m.nextRequest(c.RequestID)
		}
		m.begin(t, c.WorkerID, c.LeaseMS, seq)
		claims = append(claims, Claim{Task: *t, Token: t.Token, Live: true})
		next.Taken()
	}
	m.remember(seq, c.RequestID, c.WorkerID, choice, claims)
	return Result{Claims: claims}
}

// oneClaim returns the result of claiming one task.
func (m *Machine) oneClaim(t *record.Task) Result {
	claims := m.answers.claims.take(1)
	claims[0] = Claim{Task: *t, Token: t.Token, Live: true}
	return Result{Task: &claims[0].Task, Claims: claims}
}

// Claimable reports whether applying c at now would claim a task or repeat an earlier
// answer. It uses now instead of the state's clocks, because a rate limit that was reached
// then may allow claims now.
func (m *Machine) Claimable(c command.ClaimNext, now record.Stamp) bool {
	if r, _ := m.findRequest(c.RequestID); r != nil && (r.Live > 0 || r.ForgetU > now.U) {
		return true
	}
	return m.types.Claimable(c, max(now.T, m.Stamp().T))
}

// claimTask claims one task by its id.
func (m *Machine) claimTask(c command.ClaimTask) Result {
	choice := m.choiceOfTask(c)
	if result, known := m.repeatRequest(c.RequestID, c.WorkerID, choice); known {
		return result
	}
	t := m.Get(c.ID)
	switch {
	case t == nil:
		return Result{Code: CodeTaskNotFound}
	case t.Status.Ended():
		return m.refused(endedCode(t.Status), t)
	case t.Status == record.StatusClaimed && t.WorkerID == c.WorkerID:
		// Nothing is claimed, so the request is not remembered.
		result := m.oneClaim(m.extendLease(c.ID, c.LeaseMS))
		result.Repeated = true
		return result
	case t.Status == record.StatusClaimed:
		return m.refused(CodeTaskAlreadyClaimed, t)
	}
	if reason := m.notClaimable(t); reason != "" {
		result := m.refused(CodeTaskNotClaimable, t)
		result.Reason = reason
		return result
	}
	seq := m.nextRequest(c.RequestID)
	t = m.tasks.Edit(c.ID)
	m.begin(t, c.WorkerID, c.LeaseMS, seq)
	result := m.oneClaim(t)
	m.remember(seq, c.RequestID, c.WorkerID, choice, result.Claims)
	return result
}

// notClaimable returns why a task that is neither claimed nor ended cannot be claimed by
// its id now, or "" if it can.
func (m *Machine) notClaimable(t *record.Task) Reason {
	ts := m.typeNamed(t.Type)
	switch {
	case t.Status != record.StatusPending:
		return Reason(t.Status.String())
	case !ts.Leads(t):
		return ReasonGroupBehind
	case ts.Slots() <= 0:
		return ReasonLimitReached
	case ts.Record() != nil && ts.Record().ClaimableAt(m.Stamp().T) > m.Stamp().T:
		return ReasonRateLimited
	}
	return ""
}

// begin claims the pending task, which the table has returned for writing. request is the
// sequence number of the claim request to inform when the claim ends, or 0.
func (m *Machine) begin(t *record.Task, workerID string, leaseMS int64, request uint64) {
	since := t.UpdatedAt
	m.change(t)
	ts := m.typeNamed(t.Type)
	m.time(ts, Waited, m.Stamp().T-since)
	if r := ts.Record(); r != nil {
		m.noteType(r)
		r.Spend(m.Stamp().T)
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
	t.Log = logBegun(t.Log, record.Attempt{WorkerID: workerID, Token: t.Token, ClaimedAt: t.ClaimedAt})
	m.edited(t)

	m.claims.Set(t.Token, claimRef{task: t.ID, request: request, place: m.holdings.Hold(&ts.held, t.WorkerID, t.ID)})
	m.begun = append(m.begun, leaseOf(t))
	m.tellClaim(event.Claimed, t)
}

// leaseOfTask returns the lease of a claim that names none.
func (m *Machine) leaseOfTask(t *record.Task) int64 {
	return cmp.Or(t.LeaseMS, m.settingsOf(t.Type).LeaseMS, m.header.Defaults.LeaseMS, record.DefaultLeaseMS)
}

// logBegun returns a copy of the attempts log with one more attempt. A full log drops its
// oldest.
func logBegun(log []record.Attempt, a record.Attempt) []record.Attempt {
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

// ClaimCount returns the number of live claims.
func (m *Machine) ClaimCount() int { return m.claims.Len() }
