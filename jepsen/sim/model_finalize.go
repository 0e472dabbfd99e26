package sim

import "slices"

// ending is who has claimed the finalization of a parent, and who tried.
type ending struct {
	processor string // "": nobody, or one whose time is over
	token     uint64
	timeoutMS int64
	endU      int64
	tried     []tried // shared between versions, never changed
}

// tried is one claim of a finalization.
type tried struct {
	processor string
	outcome   string
	holder    string // afterwards
	state     string
	at        int64
}

const triedKept = 100

// What becomes of a claim of a finalization.
const (
	endClaimed  = "claimed"
	endExtended = "extended"
	endHeld     = "already claimed"
	endDone     = "already done"
	endNotReady = "not ready"
	endNotFound = "not found"
)

// parentSeen is what an answer shows of a finalization.
type parentSeen struct {
	outcome string
	done    bool
	holder  string
	token   uint64
	state   string
	already bool
	steps   []*task // in the plan's order
}

// heldBy returns who holds the finalization: until its time is over, and a while
// longer, as clocks may run unlike.
func (m *model) heldBy(t *task) string {
	if f := &t.final; f.processor != "" && m.u < f.over() {
		return f.processor
	}
	return ""
}

// over returns when the claim is over, by U.
func (f *ending) over() int64 { return f.endU + f.timeoutMS/2000 + 2 }

// stateOf returns how far the task is on the way to its finalization.
func (m *model) stateOf(t *task) string {
	switch {
	case !t.isParent():
		return t.status
	case t.status == completed:
		return "complete"
	case ended(t.status):
		return t.status
	case m.over(t):
		return "evaluating_results"
	}
	return "waiting_for_steps"
}

// askEnd returns the beginning of an answer about the finalization of a task, and
// the task.
func (m *model) askEnd(id uint64) (*task, *parentSeen) {
	t := m.find(id)
	switch {
	case t != nil:
		return t, &parentSeen{state: m.stateOf(t), holder: m.heldBy(t)}
	case m.removedTask(id) != nil:
		state := m.removedTask(id).was.status
		if state == completed {
			state = "complete"
		}
		return nil, &parentSeen{state: state}
	}
	return nil, &parentSeen{state: "not_found"}
}

// claimEnd claims the finalization of a parent.
func (m *model) claimEnd(c *command) answer {
	t, a := m.askEnd(c.id)
	switch {
	case a.state == "not_found":
		a.outcome = endNotFound
	case t == nil:
		a.outcome = endDone
	case !t.isParent():
		a.outcome = endNotReady
	default:
		t = m.changeQuietly(t)
		a.outcome = m.tryEnd(t, c)
		a.holder = m.heldBy(t)
		if a.outcome == endClaimed || a.outcome == endExtended {
			a.token = t.final.token
		}
		all := append(t.final.tried[:len(t.final.tried):len(t.final.tried)], tried{c.worker, a.outcome, a.holder, a.state, m.t})
		t.final.tried = all[max(len(all)-triedKept, 0):]
	}
	return answer{parent: a}
}

// changeQuietly is change of a parent that nobody is to notice: who asks about its
// finalization does not change it.
func (m *model) changeQuietly(t *task) *task {
	c := m.change(t)
	c.updatedAt = t.updatedAt
	return c
}

// tryEnd claims the finalization of the parent being changed, if it can be.
func (m *model) tryEnd(t *task, c *command) string {
	switch by := m.heldBy(t); {
	case ended(t.status):
		return endDone
	case by != "" && by != c.worker:
		return endHeld
	case by != "":
		m.lengthenEnd(t, c.timeoutMS)
		return endExtended
	}
	if !m.anyDone(t) {
		return endNotReady
	}
	m.tokens++
	t.final = ending{processor: c.worker, token: m.tokens, timeoutMS: c.timeoutMS, endU: m.u + c.timeoutMS, tried: t.final.tried}
	m.add(told{kind: "finalization_claimed", worker: c.worker, token: m.tokens}, t)
	return endClaimed
}

// anyDone reports whether a step has completed or failed.
func (m *model) anyDone(t *task) bool {
	return slices.ContainsFunc(m.stepsOf(t), func(s *task) bool { return s.status == completed || s.status == failed })
}

// lengthenEnd lets the claim last so long from now (0: its own length). It is over
// no earlier than it was.
func (m *model) lengthenEnd(t *task, timeoutMS int64) {
	over := t.final.over()
	if timeoutMS != 0 {
		t.final.timeoutMS = timeoutMS
	}
	t.final.endU = m.u + t.final.timeoutMS
	t.final.endU += max(over-t.final.over(), 0)
}

// extendEnd extends the claim of a finalization.
func (m *model) extendEnd(c *command) answer {
	t, a := m.askEnd(c.id)
	if t != nil && a.holder == c.worker {
		t = m.changeQuietly(t)
		m.lengthenEnd(t, c.timeoutMS)
		a.done, a.token = true, t.final.token
	}
	return answer{parent: a}
}

// releaseEnd gives the claim of a finalization back. The one who finalized has
// given it back with that.
func (m *model) releaseEnd(c *command) answer {
	t, a := m.askEnd(c.id)
	switch r := m.removedTask(c.id); {
	case t == nil:
		a.done = r != nil && r.was.isParent() && r.was.worker == c.worker
	case t.isParent() && ended(t.status):
		a.done = t.worker == c.worker
	case a.holder == c.worker:
		t = m.changeQuietly(t)
		t.final = ending{tried: t.final.tried}
		a.done, a.holder = true, ""
	}
	return answer{parent: a}
}

// finalize ends the parent whose steps have ended.
func (m *model) finalize(c *command) answer {
	t, a := m.askEnd(c.id)
	switch {
	case a.state == "not_found":
		return answer{code: "task_not_found"}
	case t == nil:
		a.already = true
		return answer{gone: true, task: m.removedTask(c.id).seen(), parent: a}
	case !t.isParent():
		return answer{code: "task_not_claimable", why: "no_steps", task: t}
	case ended(t.status):
		a.already = true
		return answer{task: t, parent: a}
	case a.holder != "" && a.holder != c.worker:
		return answer{code: "task_already_claimed", task: t, parent: a}
	case c.token != 0 && (a.holder == "" || c.token != t.final.token):
		return answer{code: "stale_claim", task: t, parent: a}
	case !m.over(t):
		return answer{code: "steps_unfinished", task: t, parent: a}
	}
	t = m.change(t)
	token := uint64(0)
	if a.holder != "" {
		token = t.final.token
	}
	to := completed
	if t.result = c.result; c.failed {
		to, t.result, t.reason = failed, "", c.reason
	}
	m.endParent(t, to, c.worker, token)
	a.state, a.holder = m.stateOf(t), ""
	return answer{task: t, parent: a}
}
