package record

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// Parent has the additional fields of a task with steps. It is never changed in place.
type Parent struct {
	Plan         *Plan
	Finalization *Finalization // nil until the first claim of it
}

// Step says which parent a step belongs to. It is never changed in place.
type Step struct {
	ParentID uint64
	Plan     *Plan // the parent's
}

// Parent returns the task's fields as a parent, or nil if it has no steps.
func (t *Task) Parent() *Parent { return t.Opts().Parent }

// Step returns the task's fields as a step, or nil if it has no parent.
func (t *Task) Step() *Step { return t.Opts().Step }

// StepPlace returns the place of a step in its parent's plan.
func (t *Task) StepPlace() int {
	place, _ := t.Options.Step.Plan.PlaceOf(t.Options.Step.ParentID, t.ID)
	return place
}

// Family returns the id of the parent that the task is, or is a step of, with the number of
// its steps. For any other task it returns the task's own id and 0.
func (t *Task) Family() (parentID uint64, steps int) {
	id, plan := ParentOf(t)
	if plan == nil {
		return t.ID, 0
	}
	return id, len(plan.Steps)
}

// ParentOf returns the id of the task's parent, or its own if it is one, and their plan,
// which is nil if the task is neither a parent nor a step.
func ParentOf(t *Task) (id uint64, plan *Plan) {
	o := t.Opts()
	switch {
	case o.Step != nil:
		return o.Step.ParentID, o.Step.Plan
	case o.Parent != nil:
		return t.ID, o.Parent.Plan
	}
	return 0, nil
}

// bytesOfSteps estimates the additional memory of a parent: its plan and its finalization.
func bytesOfSteps(o *Options) int {
	if o.Parent == nil {
		return 0
	}
	n := parentBytes + o.Parent.Plan.Bytes
	if f := o.Parent.Finalization; f != nil {
		n += finalizationBytes + len(f.ProcessorID)
		for i := range f.Attempts {
			n += attemptedBytes + len(f.Attempts[i].ProcessorID) + len(f.Attempts[i].Holder)
		}
	}
	return n
}

// steps reads or writes the fields of a task's record that concern parents and steps. The
// plan is only in the parent's record; its steps get it later.
func (f *Fields) steps(o *Options) {
	if f.Num == 36 {
		o.Step = &Step{}
	}
	if o.Step != nil {
		f.ID(36, &o.Step.ParentID)
	}
	if f.Num == 37 {
		o.Parent = &Parent{Plan: &Plan{}}
	}
	switch {
	case o.Parent != nil:
		f.plan(37, o.Parent.Plan)
		f.finalization(38, &o.Parent.Finalization)
	case f.Num == 38:
		f.Fail("the finalization of a task without steps")
	}
}

// plan reads or writes field num, a message.
func (f *Fields) plan(num protowire.Number, p *Plan) {
	m, ok := f.Message(num, true)
	if !ok {
		return
	}
	for e := Each(); Next(&e, f, 1, &p.Steps, StepsMax); {
		f.interned(1, &p.Steps[e.At].Name)
		f.places(2, &p.Steps[e.At].DependsOn)
	}
	f.Bool(2, &p.ByClaim)
	f.Bool(3, &p.Continue)
	f.IDs(4, &p.Added)
	if f.Reading {
		switch {
		case len(p.Steps) == 0:
			f.Fail("a plan without steps")
		case len(p.Added) >= len(p.Steps):
			f.Fail("a plan without submitted steps")
		case !ascending(p.Added):
			f.Fail("steps that were added out of order")
		}
		for place := range p.Steps {
			f.checkPlaces(p.Steps[place].DependsOn, place, len(p.Steps))
		}
		p.Link()
	}
	f.EndMessage(m)
}

// ascending reports whether each id is above the one before it.
func ascending(ids []uint64) bool {
	for i := range ids[min(1, len(ids)):] {
		if ids[i+1] <= ids[i] {
			return false
		}
	}
	return true
}

// finalization reads or writes field num, a message; nil is not written.
func (f *Fields) finalization(num protowire.Number, v **Finalization) {
	m, ok := f.Message(num, *v != nil)
	if !ok {
		return
	}
	if *v == nil {
		*v = &Finalization{}
	}
	n := *v
	f.interned(1, &n.ProcessorID)
	f.ID(2, &n.Token)
	f.Int(3, &n.TimeoutMS)
	f.Int(4, &n.EndU)
	for e := Each(); Next(&e, f, 5, &n.Attempts, FinalizationAttemptsMax); {
		a := &n.Attempts[e.At]
		f.interned(1, &a.ProcessorID)
		f.Enum(2, (*uint8)(&a.Outcome), uint8(FinalizationNotReady))
		f.interned(3, &a.Holder)
		f.Enum(4, (*uint8)(&a.State), uint8(StateCancelled))
		f.Int(5, &a.At)
	}
	f.EndMessage(m)
}

// StepsProblem returns what is wrong with the saved task as a parent or step, or "". Its
// relations to other tasks are checked once all tasks are loaded.
func (t *Task) StepsProblem(h *Header) (problem string) {
	parent, step := t.Parent(), t.Step()
	switch {
	case parent != nil && step != nil:
		return "it is a parent and a step"
	case parent == nil && t.Status == StatusRunning:
		return "it is running without steps"
	case step == nil && t.Status == StatusBlocked && !t.LacksSignal():
		return "it is blocked and no step, and lacks no signal"
	case t.LacksSignal() && !t.Status.Ended() && t.Status != StatusBlocked, t.Opts().SignalMS == 0 && (t.Opts().SignalUntil != 0 || t.Opts().Signalled):
		return "it goes on without its signal, or has one that it does not need"
	case t.Opts().SignalUntil != 0 && (t.Status != StatusBlocked || t.Opts().Signalled), step == nil && t.Status == StatusBlocked && t.Opts().SignalUntil == 0:
		return "it waits for a signal, or does not, as it should not"
	case parent == nil:
		return ""
	case t.Status != StatusRunning && !t.Status.Ended():
		return "it is a parent that neither runs nor has ended"
	case parent.Plan.IDOf(t.ID, len(parent.Plan.Steps)-1) >= h.NextID:
		return "it has steps that were never given out"
	case len(parent.Plan.Added) > 0 && parent.Plan.Added[0] <= t.ID+uint64(len(parent.Plan.Steps)-len(parent.Plan.Added)):
		return "steps that were added to it have ids of before"
	case parent.Finalization != nil:
		return parent.Finalization.problem(t.Status, h)
	}
	return ""
}

// problem returns what is wrong with the finalization of a parent with status s, or "".
func (f *Finalization) problem(s Status, h *Header) string {
	claimed := f.ProcessorID != ""
	switch {
	case claimed != (f.Token != 0) || !claimed && (f.TimeoutMS != 0 || f.EndU != 0):
		return "its finalization is claimed by half"
	case claimed && s.Ended():
		return "it has ended and its finalization is claimed"
	case f.Token >= h.NextToken:
		return "its finalization has a token that was never given out"
	}
	for i := range f.Attempts {
		if a := &f.Attempts[i]; a.Outcome == 0 || a.State < StateWaitingForSteps {
			return "an attempt to finalize it has no outcome, or no state"
		}
	}
	return ""
}
