package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// complete ends the task as completed, then submits the follow-ups in order, then claims.
// It is refused as a whole, and changes nothing, if the claim's request id belongs to
// another request or a follow-up could never be claimed.
func complete(m *Machine, c *command.Complete) Result {
	result, ok := held(m, c.Hold, record.OutcomeCompleted)
	late := !ok && c.Late && waitsAgain(m.Get(c.ID), c.Hold)
	switch {
	case late:
	case result.Repeated:
		tellAgain(m, result.Task.Then)
		return repeatThen(m, result)
	case !ok:
		return result
	}
	var next claimCall
	if c.Claim != nil {
		if next = callOfNext(m, c.Claim); next.differs() {
			return Result{Code: CodeInvalidRequest}
		}
	}
	if refused := refuseFollowUps(m, c); refused != nil {
		return Result{Code: CodeInvalidTask, Submitted: refused}
	}
	t := m.edit(c.ID)
	t.Result, t.ResultPayload = c.Result, c.ResultPayload
	if late {
		endLate(m, t)
	} else {
		endClaim(m, t, record.OutcomeCompleted, "", record.StatusCompleted)
	}
	settled(m, t)
	result = Result{Task: m.copyOf(t)}
	if len(c.Submit) > 0 {
		result.Submitted = submit(m, c.Submit).Submitted
	}
	if c.Claim != nil {
		claimed := claimNextOf(m, c.Claim, &next) // until here no request was forgotten
		result.Claims, result.ClaimsRepeated = claimed.Claims, claimed.Repeated
	}
	keepThen(m, c.ID, thenOf(result))
	return result
}

// endLate completes the waiting task that is being edited, as the end of its last claim.
func endLate(m *Machine, t *record.Task) {
	last := t.LastEnded()
	t.WorkerID, t.Token = last.WorkerID, last.Token
	if t.Log = t.Log[:len(t.Log)-1]; len(t.Log) == 0 {
		t.Log = nil // as it is read from a snapshot
	}
	claim := claimEventOf(0, t)
	endTask(m, t, record.StatusCompleted)
	m.tellEnd(&claim, t, record.OutcomeCompleted, "")
}

// refuseFollowUps returns the outcomes of the follow-ups if some could never be claimed:
// those are Refused. It returns nil if all are fine.
func refuseFollowUps(m *Machine, c *command.Complete) (refused []Submitted) {
	for i := range c.Submit {
		step, never := neverClaimable(m, &c.Submit[i], c.ID)
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

// thenOf returns what a repeat needs of the answer in addition to the completed task, or
// nil.
func thenOf(result Result) *record.Then {
	if len(result.Submitted) == 0 && len(result.Claims) == 0 {
		return nil
	}
	then := &record.Then{}
	for _, s := range result.Submitted {
		then.Submitted = append(then.Submitted, record.FollowUp{ID: s.Task.ID, Created: s.Created, Replaced: s.Replaced})
	}
	then.Claims = refsOf(result.Claims)
	return then
}

// tellAgain records that another answer reports the live claims, so that failing to send
// the first one no longer releases them. Nothing else of the tasks changes.
func tellAgain(m *Machine, then *record.Then) {
	if !tellsAgain(m, then) {
		return
	}
	for _, c := range then.Claims {
		if toldOnce(m, c) {
			m.changed++
			m.tasks.Edit(c.TaskID).LeaseSeq++ // no index depends on it
			m.tasks.Rest(c.TaskID)
		}
	}
}
