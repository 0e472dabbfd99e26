package model

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// IsParent reports whether the task has steps.
func (t *Task) IsParent() bool { return t.Plan != nil && t.Of == 0 }

// Place returns the place of a step in its parent's plan.
func (t *Task) Place() int { return int(t.ID - t.Of - 1) }

// StepsOf returns the steps of a parent as they are now, in the plan's order;
// none of a task that is no parent. t may have just been taken out: they may, too.
func (m *Model) StepsOf(t *Task) []*Task {
	if !t.IsParent() {
		return nil
	}
	var steps []*Task
	for place := range t.Plan.Steps {
		if s := m.Find(t.ID + 1 + uint64(place)); s != nil {
			steps = append(steps, s)
		}
	}
	return steps
}

// submitSteps submits the steps of the new parent.
func (m *Model) submitSteps(p *Task, by string) {
	for i := range p.Plan.Steps {
		s := m.born(&p.Plan.Steps[i].Task)
		s.Plan, s.Of = p.Plan, p.ID
		if len(p.Plan.Steps[i].On) > 0 {
			s.Status = Blocked
		}
		m.enter(s, by)
	}
}

// ready reports whether all that the step depends on has completed.
func (m *Model) ready(s *Task) bool {
	for _, on := range s.Plan.Steps[s.Place()].On {
		if m.Find(s.Of+1+uint64(on)).Status != Completed {
			return false
		}
	}
	return true
}

// afterEnd does what the end of a step brings about, if the task is a step and
// has ended.
func (m *Model) afterEnd(t *Task) {
	if t.Of == 0 || !Ended(t.Status) {
		return
	}
	p := m.Find(t.Of)
	for gone := []*Task{t}; len(gone) > 0; gone = gone[1:] {
		cause := gone[0]
		for _, s := range m.StepsOf(p) {
			follows := slices.Contains(p.Plan.Steps[s.Place()].On, cause.Place())
			switch {
			case cause.Status == Completed:
				if follows && s.Status == Blocked && m.ready(s) {
					m.unblock(m.change(s))
				}
			case !p.Plan.GoesOn:
				m.stop(s)
			case follows && s.Status == Blocked: // then those that depend on it
				gone = append(gone, m.stop(s))
			}
		}
	}
	m.endIfOver(p.ID)
}

// unblock lets the step be claimed, once its time has come.
func (m *Model) unblock(s *Task) {
	s.Status = Pending
	if s.RunAt != nil && s.RunAt.at > m.T {
		s.Status = Scheduled
		m.tellWait(s)
	}
}

// stop cancels the step, or asks for it, and returns it.
func (m *Model) stop(s *Task) *Task {
	if Ended(s.Status) || s.Asked {
		return s
	}
	s = m.change(s)
	if s.Status != Claimed {
		m.endWaiting(s, Cancelled)
		return s
	}
	s.Asked = true
	e := ofClaim(s)
	e.Kind = "cancel_requested"
	m.add(e, s)
	return s
}

// endIfOver ends the parent if its steps have ended, unless a processor does.
func (m *Model) endIfOver(id uint64) {
	p := m.Find(id)
	switch {
	case p == nil || p.Status != Running || !m.Over(p):
	case p.Asked:
		m.endParent(m.change(p), Cancelled, "", 0)
	case !p.Plan.ByClaim:
		p = m.change(p)
		to := m.judge(p)
		m.endParent(p, to, "", 0)
	}
}

// Over reports whether all steps have ended.
func (m *Model) Over(p *Task) bool {
	for _, s := range m.StepsOf(p) {
		if !Ended(s.Status) {
			return false
		}
	}
	return true
}

// judge returns how the parent, being changed, ends by itself. It sets its result
// or its error.
func (m *Model) judge(p *Task) string {
	var results, failure, cancellation string // of the first steps of each sort
	for _, s := range m.StepsOf(p) {
		name := p.Plan.Steps[s.Place()].Name
		switch {
		case s.Status == Completed:
			results += "," + strconv.Quote(name) + ":" + s.resultAsJSON()
		case s.Status == Failed && failure == "":
			failure = "step " + name + " failed: " + s.Reason
		case s.Status == Cancelled && cancellation == "":
			cancellation = "step " + name + " was cancelled"
		}
	}
	blame := cmp.Or(failure, cancellation)
	if blame == "" || p.Plan.GoesOn && results != "" {
		p.Result = "{" + strings.TrimPrefix(results, ",") + "}"
		return Completed
	}
	p.Reason = blame
	return Failed
}

// resultAsJSON returns the step's result as its parent's has it.
func (t *Task) resultAsJSON() string {
	switch {
	case t.Binary:
		return strconv.Quote(base64.StdEncoding.EncodeToString([]byte(t.Result)))
	case t.Result == "":
		return "null"
	}
	return t.Result
}

// endParent ends the parent that is being changed: by a processor, with the token
// of its claim, or by nobody.
func (m *Model) endParent(p *Task, to, processor string, token uint64) {
	p.Final.Processor, p.Final.Token, p.Final.EndU, p.Final.TimeoutMS = "", 0, 0, 0
	p.Worker, p.Token = processor, token
	m.finish(p, to)
	if to == Cancelled {
		m.tell(Cancelled, p, "")
		return
	}
	by := Told{Worker: processor, Token: token, Kind: "finalized", Message: to}
	m.add(by, p)
	by.Kind, by.Message = to, p.Reason
	if to == Completed {
		by.Message = ""
	}
	m.add(by, p)
}

// cancelParent cancels what can be of the steps, and asks the others: the parent
// ends with the last of them.
func (m *Model) cancelParent(p *Task) Answer {
	steps := m.StepsOf(p)
	p = m.change(p)
	p.Asked = slices.ContainsFunc(steps, func(s *Task) bool { return s.Status == Claimed })
	if p.Asked {
		m.tell("cancel_requested", p, "")
	}
	for _, s := range steps {
		m.stop(s)
	}
	if !p.Asked {
		m.endParent(p, Cancelled, "", 0)
	}
	return Answer{Task: p}
}

// retryParent retries the steps that have failed or were cancelled, all or none,
// and lets the parent run again if it has ended.
func (m *Model) retryParent(p *Task, c *Command) Answer {
	switch {
	case p.Status == Running && p.Asked:
		return Answer{Code: "task_cancelled", Task: p}
	case c.Token != 0 && c.Token != p.Token && p.Status != Running:
		return Answer{Code: "stale_claim", Task: p}
	}
	var again []*Task
	for _, s := range m.StepsOf(p) {
		if s.Status == Failed || s.Status == Cancelled {
			again = append(again, s)
		}
	}
	if p.Status == Running && len(again) == 0 {
		return Answer{Repeated: true, Task: p}
	}
	if a, taken := m.keyTaken(p); taken {
		return a
	}
	for _, s := range again {
		if s.Max != 0 && s.Attempts >= s.Max+c.Add {
			return Answer{Code: "max_attempts_reached", Task: s}
		}
	}
	if p.Status != Running {
		p = m.change(p)
		m.revive(p)
		p.Status = Running
		m.tell(retried, p, "")
	}
	for _, s := range again {
		m.reviveStep(m.change(s), c.Add)
	}
	m.endIfOver(p.ID)
	return Answer{Task: m.Find(p.ID)}
}

// reviveStep makes the step pending, or blocked, that has ended.
func (m *Model) reviveStep(s *Task, add int32) {
	if s.Max != 0 {
		s.Max += add
	}
	m.revive(s)
	if !m.ready(s) {
		s.Status = Blocked
	}
	m.tell(retried, s, "")
}

// retryOfStep returns why a step, which has failed or was cancelled, cannot be
// retried as any other task, and whether that is so.
func (m *Model) retryOfStep(s *Task) (a Answer, refused bool) {
	if s.Of == 0 || s.Status == Claimed {
		return a, false
	}
	p := m.Find(s.Of)
	switch {
	case Ended(p.Status):
		return Answer{Code: "task_" + p.Status, Why: "parent_ended", Task: p}, true
	case p.Asked:
		return Answer{Code: "task_cancelled", Task: p}, true
	}
	for _, on := range s.Plan.Steps[s.Place()].On {
		if d := m.Find(s.Of + 1 + uint64(on)); Ended(d.Status) && d.Status != Completed {
			return Answer{Code: "task_" + d.Status, Why: "dependency_ended", Task: d}, true
		}
	}
	return a, false
}

// showSteps adds to the answer what is shown of the steps of the parent that the
// command was about.
func (m *Model) showSteps(c *Command, a *Answer) {
	var about *Task
	switch c.Verb {
	case VerbSubmit:
		if len(a.Submitted) == 1 {
			about = a.Submitted[0].Task
		}
	case VerbRetry, VerbCancel, VerbPatch, VerbFinalize:
		about = a.Task
	default:
	}
	if about == nil || a.Code != "" && c.Verb != VerbFinalize || a.Gone || !about.IsParent() {
		return
	}
	if a.Parent == nil {
		a.Parent = &ParentSeen{}
	}
	a.Parent.Steps = m.StepsOf(about)
}

// WaitsForNothing reports whether something that the step depends on has ended and not
// completed: an operator has retried the step and not that.
func (m *Model) WaitsForNothing(s *Task) bool {
	for _, on := range s.Plan.Steps[s.Place()].On {
		if before := m.Find(s.Of + 1 + uint64(on)); before.Status == Failed || before.Status == Cancelled {
			return true
		}
	}
	return false
}
