package fsm

import (
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// complete ends the task as completed, then submits the follow-ups in order, then claims.
// It is refused as a whole, and changes nothing, if the claim's request id belongs to
// another request or a follow-up could never be claimed.
func (m *Machine) complete(c command.Complete) Result {
	result, ok := m.held(c.Hold, record.OutcomeCompleted)
	switch {
	case result.Repeated:
		m.tellAgain(result.Task.Then)
		return m.repeatThen(result)
	case !ok:
		return result
	}
	fresh := false // the claim's request id is unknown, and stays so until it claims
	if c.Claim != nil {
		r, seq := m.findRequest(c.Claim.RequestID)
		if r != nil && m.isOther(r, c.Claim) {
			return Result{Code: CodeInvalidRequest}
		}
		fresh = seq == 0
	}
	if refused := m.refuseFollowUps(c); refused != nil {
		return Result{Code: CodeInvalidTask, Submitted: refused}
	}
	t := m.edit(c.ID)
	t.Result, t.ResultPayload = c.Result, c.ResultPayload
	m.end(t, record.OutcomeCompleted, "", record.StatusCompleted)
	m.edited(t)
	result = Result{Task: m.copyOf(t)}
	if len(c.Submit) > 0 {
		result.Submitted = m.submit(command.Submit{Tasks: c.Submit}).Submitted
	}
	if c.Claim != nil {
		next := m.claimNextOf(*c.Claim, fresh)
		result.Claims, result.ClaimsRepeated = next.Claims, next.Repeated
	}
	m.keepThen(c.ID, thenOf(result))
	return result
}

// refuseFollowUps returns the outcomes of the follow-ups if some could never be claimed:
// those are Refused. It returns nil if all are fine.
func (m *Machine) refuseFollowUps(c command.Complete) (refused []Submitted) {
	for i := range c.Submit {
		step, never := m.neverClaimable(&c.Submit[i], c.ID)
		if !never {
			continue
		}
		if refused == nil {
			refused = make([]Submitted, len(c.Submit))
			for i := range refused {
				refused[i].Task = new(record.Task)
			}
		}
		refused[i].Refused, refused[i].Step = true, step
	}
	return refused
}

// isOther reports whether c, which has the id of the request r, differs from that request.
func (m *Machine) isOther(r *record.Request, c *command.ClaimNext) bool {
	return r.WorkerID != c.WorkerID || r.Choice != m.choiceOfNext(*c)
}

// thenOf returns what a repeat needs of the answer in addition to the completed task, or
// nil.
func thenOf(result Result) *record.Then {
	if len(result.Submitted) == 0 && len(result.Claims) == 0 {
		return nil
	}
	then := &record.Then{}
	for _, s := range result.Submitted {
		then.Submitted = append(then.Submitted, record.FollowUp{ID: s.Task.ID, Created: s.Created})
	}
	then.Claims = refsOf(result.Claims)
	return then
}

// refsOf returns the ids and tokens of the claims, or nil.
func refsOf(claims []Claim) []record.ClaimRef {
	if len(claims) == 0 {
		return nil
	}
	refs := make([]record.ClaimRef, len(claims))
	for i := range claims {
		refs[i] = record.ClaimRef{TaskID: claims[i].Task.ID, Token: claims[i].Token}
	}
	return refs
}

// keepThen stores, for repeats, what completing the task did in addition.
func (m *Machine) keepThen(id uint64, then *record.Then) {
	if then == nil {
		return
	}
	t := m.tasks.Edit(id)
	before := record.HeldBytes(t)
	t.Then = then // no index depends on it
	m.grown(t, record.HeldBytes(t)-before)
	m.tasks.Rest(id)
}

// tellAgain records that another answer reports the live claims, so that failing to send
// the first one no longer releases them. Nothing else of the tasks changes.
func (m *Machine) tellAgain(then *record.Then) {
	if !m.tellsAgain(then) {
		return
	}
	for _, c := range then.Claims {
		if m.toldOnce(c) {
			m.changed++
			m.tasks.Edit(c.TaskID).LeaseSeq++ // no index depends on it
			m.tasks.Rest(c.TaskID)
		}
	}
}

// tellsAgain reports whether tellAgain would record anything.
func (m *saved) tellsAgain(then *record.Then) bool {
	return then != nil && m.Level() >= record.LevelAnswers && slices.ContainsFunc(then.Claims, m.toldOnce)
}

// toldOnce reports whether the claim is live and only its first answer has reported it.
func (m *saved) toldOnce(c record.ClaimRef) bool {
	t := m.Get(c.TaskID)
	return t != nil && t.Token == c.Token && t.LeaseSeq == command.FirstAnswer
}

// repeatThen adds the follow-ups and claims of the first answer to a repeated one, in their
// current state. A task that was removed has only its id, and the token of its claim.
func (m *saved) repeatThen(result Result) Result {
	then := result.Task.Then
	if then == nil {
		return result
	}
	for _, f := range then.Submitted {
		result.Submitted = append(result.Submitted, m.repeatFollowUp(f))
	}
	size := record.AnswerBytes(result.Task)
	for _, c := range then.Claims {
		result.Claims = append(result.Claims, m.repeatClaim(c, &size))
	}
	return result
}

func (m *saved) repeatFollowUp(f record.FollowUp) Submitted {
	if t := m.Get(f.ID); t != nil {
		shown := *t
		return Submitted{Task: &shown, Created: f.Created}
	}
	return Submitted{Task: &record.Task{ID: f.ID}, Created: f.Created}
}
