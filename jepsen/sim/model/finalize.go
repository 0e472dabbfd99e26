package model

import "slices"

// Ending is who has claimed the finalization of a parent, and who tried.
type Ending struct {
	Processor string // "": nobody, or one whose time is over
	Token     uint64
	TimeoutMS int64
	EndU      int64
	Tried     []Tried // shared between versions, never changed
}

// Tried is one claim of a finalization.
type Tried struct {
	Processor string
	Outcome   string
	Holder    string // afterwards
	State     string
	At        int64
}

const triedKept = 100

// The outcome of a claim of a finalization.
const (
	EndClaimed  = "claimed"
	EndExtended = "extended"
	EndHeld     = "already claimed"
	EndDone     = "already done"
	EndNotReady = "not ready"
	EndNotFound = "not found"
)

// ParentSeen is what an answer shows of a finalization.
type ParentSeen struct {
	Outcome string
	Done    bool
	Holder  string
	Token   uint64
	State   string
	Already bool
	Steps   []*Task // in the plan's order
}

// HeldBy returns who holds the finalization: until its time is over, and a while
// longer, as clocks may run unlike.
func (m *Model) HeldBy(t *Task) string {
	if f := &t.Final; f.Processor != "" && m.U < f.Over() {
		return f.Processor
	}
	return ""
}

// Over returns when the claim is over, by U.
func (f *Ending) Over() int64 { return f.EndU + f.TimeoutMS/2000 + 2 }

// stateOf returns how far the task is on the way to its finalization.
func (m *Model) stateOf(t *Task) string {
	switch {
	case !t.IsParent():
		return t.Status
	case t.Status == Completed:
		return "complete"
	case Ended(t.Status):
		return t.Status
	case m.Over(t):
		return "evaluating_results"
	}
	return "waiting_for_steps"
}

// askEnd returns the beginning of an answer about the finalization of a task, and
// the task.
func (m *Model) askEnd(id uint64) (*Task, *ParentSeen) {
	t := m.Find(id)
	switch {
	case t != nil:
		return t, &ParentSeen{State: m.stateOf(t), Holder: m.HeldBy(t)}
	case m.removedTask(id) != nil:
		state := m.removedTask(id).was.Status
		if state == Completed {
			state = "complete"
		}
		return nil, &ParentSeen{State: state}
	}
	return nil, &ParentSeen{State: "not_found"}
}

// claimEnd claims the finalization of a parent.
func (m *Model) claimEnd(c *Command) Answer {
	t, a := m.askEnd(c.ID)
	switch {
	case a.State == "not_found":
		a.Outcome = EndNotFound
	case t == nil:
		a.Outcome = EndDone
	case !t.IsParent():
		a.Outcome = EndNotReady
	default:
		t = m.changeQuietly(t)
		a.Outcome = m.tryEnd(t, c)
		a.Holder = m.HeldBy(t)
		if a.Outcome == EndClaimed || a.Outcome == EndExtended {
			a.Token = t.Final.Token
		}
		all := append(t.Final.Tried[:len(t.Final.Tried):len(t.Final.Tried)], Tried{c.Worker, a.Outcome, a.Holder, a.State, m.T})
		t.Final.Tried = all[max(len(all)-triedKept, 0):]
	}
	return Answer{Parent: a}
}

// changeQuietly is change of a parent that nobody is to notice: who asks about its
// finalization does not change it.
func (m *Model) changeQuietly(t *Task) *Task {
	c := m.change(t)
	c.UpdatedAt = t.UpdatedAt
	return c
}

// tryEnd claims the finalization of the parent being changed, if it can be.
func (m *Model) tryEnd(t *Task, c *Command) string {
	switch by := m.HeldBy(t); {
	case Ended(t.Status):
		return EndDone
	case by != "" && by != c.Worker:
		return EndHeld
	case by != "":
		m.lengthenEnd(t, c.TimeoutMS)
		return EndExtended
	}
	if !m.AnyDone(t) {
		return EndNotReady
	}
	m.Tokens++
	t.Final = Ending{Processor: c.Worker, Token: m.Tokens, TimeoutMS: c.TimeoutMS, EndU: m.U + c.TimeoutMS, Tried: t.Final.Tried}
	m.add(Told{Kind: "finalization_claimed", Worker: c.Worker, Token: m.Tokens}, t)
	return EndClaimed
}

// AnyDone reports whether a step has completed or failed.
func (m *Model) AnyDone(t *Task) bool {
	return slices.ContainsFunc(m.StepsOf(t), func(s *Task) bool { return s.Status == Completed || s.Status == Failed })
}

// lengthenEnd lets the claim last so long from now (0: its own length). It is over
// no earlier than it was.
func (m *Model) lengthenEnd(t *Task, timeoutMS int64) {
	over := t.Final.Over()
	if timeoutMS != 0 {
		t.Final.TimeoutMS = timeoutMS
	}
	t.Final.EndU = m.U + t.Final.TimeoutMS
	t.Final.EndU += max(over-t.Final.Over(), 0)
}

// extendEnd extends the claim of a finalization.
func (m *Model) extendEnd(c *Command) Answer {
	t, a := m.askEnd(c.ID)
	if t != nil && a.Holder == c.Worker {
		t = m.changeQuietly(t)
		m.lengthenEnd(t, c.TimeoutMS)
		a.Done, a.Token = true, t.Final.Token
	}
	return Answer{Parent: a}
}

// releaseEnd gives the claim of a finalization back. The one who finalized has
// given it back with that.
func (m *Model) releaseEnd(c *Command) Answer {
	t, a := m.askEnd(c.ID)
	switch r := m.removedTask(c.ID); {
	case t == nil:
		a.Done = r != nil && r.was.IsParent() && r.was.Worker == c.Worker
	case t.IsParent() && Ended(t.Status):
		a.Done = t.Worker == c.Worker
	case a.Holder == c.Worker:
		t = m.changeQuietly(t)
		t.Final = Ending{Tried: t.Final.Tried}
		a.Done, a.Holder = true, ""
	}
	return Answer{Parent: a}
}

// finalize ends the parent whose steps have ended.
func (m *Model) finalize(c *Command) Answer {
	t, a := m.askEnd(c.ID)
	switch {
	case a.State == "not_found":
		return Answer{Code: "task_not_found"}
	case t == nil:
		a.Already = true
		return Answer{Gone: true, Task: m.removedTask(c.ID).seen(), Parent: a}
	case !t.IsParent():
		return Answer{Code: "task_not_claimable", Why: "no_steps", Task: t}
	case Ended(t.Status):
		a.Already = true
		return Answer{Task: t, Parent: a}
	case a.Holder != "" && a.Holder != c.Worker:
		return Answer{Code: "task_already_claimed", Task: t, Parent: a}
	case c.Token != 0 && (a.Holder == "" || c.Token != t.Final.Token):
		return Answer{Code: "stale_claim", Task: t, Parent: a}
	case !m.Over(t):
		return Answer{Code: "steps_unfinished", Task: t, Parent: a}
	}
	t = m.change(t)
	token := uint64(0)
	if a.Holder != "" {
		token = t.Final.Token
	}
	to := Completed
	if t.Result = c.Result; c.Failed {
		to, t.Result, t.Reason = Failed, "", c.Reason
	}
	m.endParent(t, to, c.Worker, token)
	a.State, a.Holder = m.stateOf(t), ""
	return Answer{Task: t, Parent: a}
}
