package sim

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// isParent reports whether the task has steps.
func (t *task) isParent() bool { return t.plan != nil && t.of == 0 }

// place returns the place of a step in its parent's plan.
func (t *task) place() int { return int(t.id - t.of - 1) }

// stepsOf returns the steps of a parent as they are now, in the plan's order;
// none of a task that is no parent. t may have just been taken out: they may, too.
func (m *model) stepsOf(t *task) []*task {
	if !t.isParent() {
		return nil
	}
	var steps []*task
	for place := range t.plan.steps {
		if s := m.find(t.id + 1 + uint64(place)); s != nil {
			steps = append(steps, s)
		}
	}
	return steps
}

// submitSteps submits the steps of the new parent.
func (m *model) submitSteps(p *task, by string) {
	for i := range p.plan.steps {
		s := m.born(&p.plan.steps[i].task)
		s.plan, s.of = p.plan, p.id
		if len(p.plan.steps[i].on) > 0 {
			s.status = blocked
		}
		m.enter(s, by)
	}
}

// ready reports whether all that the step depends on has completed.
func (m *model) ready(s *task) bool {
	for _, on := range s.plan.steps[s.place()].on {
		if m.find(s.of+1+uint64(on)).status != completed {
			return false
		}
	}
	return true
}

// afterEnd does what the end of a step brings about, if the task is a step and
// has ended.
func (m *model) afterEnd(t *task) {
	if t.of == 0 || !ended(t.status) {
		return
	}
	p := m.find(t.of)
	for gone := []*task{t}; len(gone) > 0; gone = gone[1:] {
		cause := gone[0]
		for _, s := range m.stepsOf(p) {
			follows := slices.Contains(p.plan.steps[s.place()].on, cause.place())
			switch {
			case cause.status == completed:
				if follows && s.status == blocked && m.ready(s) {
					m.unblock(m.change(s))
				}
			case !p.plan.goesOn:
				m.stop(s)
			case follows && s.status == blocked: // then those that depend on it
				gone = append(gone, m.stop(s))
			}
		}
	}
	m.endIfOver(p.id)
}

// unblock lets the step be claimed, once its time has come.
func (m *model) unblock(s *task) {
	s.status = pending
	if s.runAt != nil && s.runAt.at > m.t {
		s.status = scheduled
		m.tellWait(s)
	}
}

// stop cancels the step, or asks for it, and returns it.
func (m *model) stop(s *task) *task {
	if ended(s.status) || s.asked {
		return s
	}
	s = m.change(s)
	if s.status != claimed {
		m.endWaiting(s, cancelled)
		return s
	}
	s.asked = true
	e := ofClaim(s)
	e.kind = "cancel_requested"
	m.add(e, s)
	return s
}

// endIfOver ends the parent if its steps have ended, unless a processor does.
func (m *model) endIfOver(id uint64) {
	p := m.find(id)
	switch {
	case p == nil || p.status != running || !m.over(p):
	case p.asked:
		m.endParent(m.change(p), cancelled, "", 0)
	case !p.plan.byClaim:
		p = m.change(p)
		to := m.judge(p)
		m.endParent(p, to, "", 0)
	}
}

// over reports whether all steps have ended.
func (m *model) over(p *task) bool {
	for _, s := range m.stepsOf(p) {
		if !ended(s.status) {
			return false
		}
	}
	return true
}

// judge returns how the parent, being changed, ends by itself. It sets its result
// or its error.
func (m *model) judge(p *task) string {
	var results, failure, cancellation string // of the first steps of each sort
	for _, s := range m.stepsOf(p) {
		name := p.plan.steps[s.place()].name
		switch {
		case s.status == completed:
			results += "," + strconv.Quote(name) + ":" + s.resultAsJSON()
		case s.status == failed && failure == "":
			failure = "step " + name + " failed: " + s.reason
		case s.status == cancelled && cancellation == "":
			cancellation = "step " + name + " was cancelled"
		}
	}
	blame := cmp.Or(failure, cancellation)
	if blame == "" || p.plan.goesOn && results != "" {
		p.result = "{" + strings.TrimPrefix(results, ",") + "}"
		return completed
	}
	p.reason = blame
	return failed
}

// resultAsJSON returns the step's result as its parent's has it.
func (t *task) resultAsJSON() string {
	switch {
	case t.binary:
		return strconv.Quote(base64.StdEncoding.EncodeToString([]byte(t.result)))
	case t.result == "":
		return "null"
	}
	return t.result
}

// endParent ends the parent that is being changed: by a processor, with the token
// of its claim, or by nobody.
func (m *model) endParent(p *task, to, processor string, token uint64) {
	p.final.processor, p.final.token, p.final.endU, p.final.timeoutMS = "", 0, 0, 0
	p.worker, p.token = processor, token
	m.finish(p, to)
	if to == cancelled {
		m.tell(cancelled, p, "")
		return
	}
	by := told{worker: processor, token: token, kind: "finalized", message: to}
	m.add(by, p)
	by.kind, by.message = to, p.reason
	if to == completed {
		by.message = ""
	}
	m.add(by, p)
}

// cancelParent cancels what can be of the steps, and asks the others: the parent
// ends with the last of them.
func (m *model) cancelParent(p *task) answer {
	steps := m.stepsOf(p)
	p = m.change(p)
	p.asked = slices.ContainsFunc(steps, func(s *task) bool { return s.status == claimed })
	if p.asked {
		m.tell("cancel_requested", p, "")
	}
	for _, s := range steps {
		m.stop(s)
	}
	if !p.asked {
		m.endParent(p, cancelled, "", 0)
	}
	return answer{task: p}
}

// retryParent retries the steps that have failed or were cancelled, all or none,
// and lets the parent run again if it has ended.
func (m *model) retryParent(p *task, c *command) answer {
	switch {
	case p.status == running && p.asked:
		return answer{code: "task_cancelled", task: p}
	case c.token != 0 && c.token != p.token && p.status != running:
		return answer{code: "stale_claim", task: p}
	}
	var again []*task
	for _, s := range m.stepsOf(p) {
		if s.status == failed || s.status == cancelled {
			again = append(again, s)
		}
	}
	if p.status == running && len(again) == 0 {
		return answer{repeated: true, task: p}
	}
	if a, taken := m.keyTaken(p); taken {
		return a
	}
	for _, s := range again {
		if s.max != 0 && s.attempts >= s.max+c.add {
			return answer{code: "max_attempts_reached", task: s}
		}
	}
	if p.status != running {
		p = m.change(p)
		m.revive(p)
		p.status = running
		m.tell(retried, p, "")
	}
	for _, s := range again {
		m.reviveStep(m.change(s), c.add)
	}
	m.endIfOver(p.id)
	return answer{task: m.find(p.id)}
}

// reviveStep makes the step pending, or blocked, that has ended.
func (m *model) reviveStep(s *task, add int32) {
	if s.max != 0 {
		s.max += add
	}
	m.revive(s)
	if !m.ready(s) {
		s.status = blocked
	}
	m.tell(retried, s, "")
}

// retryOfStep returns why a step, which has failed or was cancelled, cannot be
// retried as any other task, and whether that is so.
func (m *model) retryOfStep(s *task) (a answer, refused bool) {
	if s.of == 0 || s.status == claimed {
		return a, false
	}
	p := m.find(s.of)
	switch {
	case ended(p.status):
		return answer{code: "task_" + p.status, why: "parent_ended", task: p}, true
	case p.asked:
		return answer{code: "task_cancelled", task: p}, true
	}
	for _, on := range s.plan.steps[s.place()].on {
		if d := m.find(s.of + 1 + uint64(on)); ended(d.status) && d.status != completed {
			return answer{code: "task_" + d.status, why: "dependency_ended", task: d}, true
		}
	}
	return a, false
}

// showSteps adds to the answer what is shown of the steps of the parent that the
// command was about.
func (m *model) showSteps(c *command, a *answer) {
	var about *task
	switch c.verb {
	case verbSubmit:
		if len(a.submitted) == 1 {
			about = a.submitted[0].task
		}
	case verbRetry, verbCancel, verbPatch, verbFinalize:
		about = a.task
	default:
	}
	if about == nil || a.code != "" && c.verb != verbFinalize || a.gone || !about.isParent() {
		return
	}
	if a.parent == nil {
		a.parent = &parentSeen{}
	}
	a.parent.steps = m.stepsOf(about)
}
