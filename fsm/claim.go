package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// claimNext claims the first pending tasks of the requested types, in the requested order, or
// repeats the answer of the same call.
func claimNext(m *Machine, c *command.ClaimNext) Result {
	call := callOfNext(m, c)
	return claimNextOf(m, c, &call)
}

// claimNextOf is claimNext for a call that was looked up before.
func claimNextOf(m *Machine, c *command.ClaimNext, call *claimCall) Result {
	if result, repeated := repeatCall(m, call); repeated {
		return result
	}
	var (
		chooser = m.types.Choose(*c, m.answers.commands.ListOf(c.Types), &m.dice)
		claims  []Claim
		size    = m.answered
		known   bool
		run     groupRun // behind the last chosen task
		taking  bool     // the last chosen task was claimed; chooser.Taken is due after its run
	)
	for len(claims) < int(c.Limit) {
		id, ok := run.next(m)
		chosen := !ok
		if chosen {
			if taking {
				chooser.Taken(&m.turns)
				taking = false
			}
			if id, ok = chooser.First(); !ok {
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
			known = call.begin(m)
		}
		beginClaim(m, t, c.WorkerID, c.LeaseMS, call.seq)
		claims = append(claims, Claim{Task: m.copyOf(t), Token: t.Token, Live: true})
		taking = taking || chosen
		if chosen && c.Runs && !m.types.settingsOf(t.Type).Fair { // there turns come first
			run = groupRun{of: m.types.named(t.Type), group: t.Opts().Group}
		}
	}
	if taking {
		chooser.Taken(&m.turns)
	}
	if call.id != "" && len(claims) > 0 {
		m.requests.add(call, known, claims, &m.claims)
	}
	return Result{Claims: claims}
}

// groupRun yields the tasks behind the head of a group that was claimed, up to the first that
// cannot be claimed.
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
	call := claimCall{id: c.RequestID, place: c.RequestPlace}
	if m.requests.find(&call, max(now.U, m.Stamp().U)); len(call.got) > 0 {
		return true
	}
	return m.types.Claimable(c, max(now.T, m.Stamp().T))
}

// claimTask claims one task by its id.
func claimTask(m *Machine, c command.ClaimTask) Result {
	call := callOfTask(m, &c)
	if result, repeated := repeatCall(m, &call); repeated {
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
	known := call.begin(m)
	t = m.tasks.Edit(c.ID)
	beginClaim(m, t, c.WorkerID, c.LeaseMS, call.seq)
	result := oneClaim(m, t)
	if call.id != "" {
		m.requests.add(&call, known, result.Claims, &m.claims)
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
