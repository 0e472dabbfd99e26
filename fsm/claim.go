package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// claimNext claims the first pending tasks of the requested types.
func claimNext(m *Machine, c *command.ClaimNext) Result {
	q := callOfNext(m, c)
	return claimNextOf(m, c, &q)
}

// claimNextOf is claimNext for the call q.
func claimNextOf(m *Machine, c *command.ClaimNext, q *call) Result {
	if result, repeated := repeatCall(m, q); repeated {
		return result
	}
	var (
		next   = m.types.Choose(*c, m.answers.commands.ListOf(c.Types), &m.dice)
		claims []Claim
		size   = m.answered
		known  bool
		run    groupRun
		owed   bool // next.Taken is still to be called for the last head, once its run is over
	)
	for len(claims) < int(c.Limit) {
		id, ok := run.next(m)
		first := !ok
		if first {
			if owed {
				next.Taken(&m.turns)
				owed = false
			}
			if id, ok = next.First(); !ok {
				break
			}
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
			known = q.begin(m)
		}
		beginClaim(m, t, c.WorkerID, c.LeaseMS, q.seq)
		claims = append(claims, Claim{Task: m.copyOf(t), Token: t.Token, Live: true})
		owed = owed || first
		if first && c.Runs && !m.types.settingsOf(t.Type).Fair { // there turns come first
			run = groupRun{of: m.types.named(t.Type), group: t.Opts().Group}
		}
	}
	if owed {
		next.Taken(&m.turns)
	}
	if q.id != "" && len(claims) > 0 {
		m.requests.add(q, known, claims, &m.claims)
	}
	return Result{Claims: claims}
}

// groupRun finds the tasks behind the head of a group that was claimed.
type groupRun struct {
	of    *typeState
	group string // "": without a group
	taken int    // tasks behind the head
}

// next returns the id of the next task of the run; ok is false if the run is over.
func (r *groupRun) next(m *Machine) (id uint64, ok bool) {
	if r.group == "" {
		return 0, false
	}
	r.taken++
	if id = r.of.InGroup(r.group, r.taken); id != 0 {
		t := m.Get(id)
		paused := r.of.ShareGate(t.Opts().ShareKey, m.Stamp().T).Paused
		if !paused && t.Status == record.StatusPending && limitedBy(m, r.of, t) == "" {
			return id, true
		}
	}
	r.group = ""
	return 0, false
}

// oneClaim returns the result of claiming one task.
func oneClaim(m *Machine, t *record.Task) Result {
	claims := m.answers.claims.take(1)
	claims[0] = Claim{Task: m.copyOf(t), Token: t.Token, Live: true}
	return Result{Task: claims[0].Task, Claims: claims}
}

// Claimable reports whether applying c at now would claim a task or repeat an earlier
// answer. It uses now instead of the state's clocks, because a rate limit that was reached
// then may allow claims now.
func (m *Machine) Claimable(c command.ClaimNext, now record.Stamp) bool {
	q := call{id: c.RequestID, place: c.RequestPlace}
	if m.requests.find(&q, max(now.U, m.Stamp().U)); len(q.got) > 0 {
		return true
	}
	return m.types.Claimable(c, max(now.T, m.Stamp().T))
}

// claimTask claims one task by its id.
func claimTask(m *Machine, c command.ClaimTask) Result {
	q := callOfTask(m, &c)
	if result, repeated := repeatCall(m, &q); repeated {
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
		result := oneClaim(m, extendLease(m, c.ID, c.LeaseMS))
		result.Repeated = true
		return result
	case t.Status == record.StatusClaimed:
		return m.refused(CodeTaskAlreadyClaimed, t)
	}
	if reason := notClaimable(m, t); reason != "" {
		result := m.refused(CodeTaskNotClaimable, t)
		result.Reason = reason
		return result
	}
	known := q.begin(m)
	t = m.tasks.Edit(c.ID)
	beginClaim(m, t, c.WorkerID, c.LeaseMS, q.seq)
	result := oneClaim(m, t)
	if q.id != "" {
		m.requests.add(&q, known, result.Claims, &m.claims)
	}
	return result
}

// notClaimable returns why a task that is neither claimed nor ended cannot be claimed by
// its id now, or "" if it can.
func notClaimable(m *Machine, t *record.Task) Reason {
	ts := m.types.named(t.Type)
	switch {
	case t.Status != record.StatusPending:
		return Reason(t.Status.String())
	case !ts.Leads(t):
		return ReasonGroupBehind
	}
	return limitedBy(m, ts, t)
}

// limitedBy returns which limit of its type or share keeps the pending task from being claimed
// now, or "".
func limitedBy(m *Machine, ts *typeState, t *record.Task) Reason {
	gate := ts.ShareGate(t.Opts().ShareKey, m.Stamp().T)
	switch {
	case ts.Slots() <= 0:
		return ReasonLimitReached
	case ts.Record() != nil && ts.Record().ClaimableAt(m.Stamp().T) > m.Stamp().T:
		return ReasonRateLimited
	case gate.Limited:
		return ReasonShareLimitReached
	case gate.OpensAt != 0:
		return ReasonShareRateLimited
	}
	return ""
}

// ClaimCount returns the number of live claims.
func (m *Machine) ClaimCount() int { return len(m.claims.byToken) }
