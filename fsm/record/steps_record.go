package record

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/wire"
)

// appendStepsRecord appends the fields of a task's record that are of parents and
// steps. The plan is in the parent's record alone.
func appendStepsRecord(b []byte, o *Options) []byte {
	if o.Step != nil {
		b = wire.PutID(b, 36, o.Step.ParentID)
	}
	if o.Parent == nil {
		return b
	}
	b = appendPlan(b, 37, o.Parent.Plan)
	return appendFinalization(b, 38, o.Parent.Finalization)
}

// appendPlan appends the field num, a message.
func appendPlan(b []byte, num protowire.Number, p *Plan) []byte {
	b, outer := wire.BeginMessage(b, num)
	for i := range p.Steps {
		var start int
		b, start = wire.BeginMessage(b, 1)
		b = wire.PutString(b, 1, p.Steps[i].Name)
		b = wire.EndLength(appendPlaces(b, 2, p.Steps[i].DependsOn), start)
	}
	b = wire.PutBool(b, 2, p.ByClaim)
	return wire.EndLength(wire.PutBool(b, 3, p.Continue), outer)
}

// appendFinalization appends the field num, a message; nothing if v is nil.
func appendFinalization(b []byte, num protowire.Number, v *Finalization) []byte {
	if v == nil {
		return b
	}
	mark := len(b)
	b, outer := wire.BeginMessage(b, num)
	b = wire.PutString(b, 1, v.ProcessorID)
	b = wire.PutID(b, 2, v.Token)
	b = wire.PutInt(b, 3, v.TimeoutMS)
	b = wire.PutInt(b, 4, v.EndU)
	for i := range v.Attempts {
		a := &v.Attempts[i]
		var start int
		b, start = wire.BeginMessage(b, 5)
		b = wire.PutString(b, 1, a.ProcessorID)
		b = wire.PutUint(b, 2, uint64(a.Outcome))
		b = wire.PutString(b, 3, a.Holder)
		b = wire.PutUint(b, 4, uint64(a.State))
		b = wire.EndLength(wire.PutInt(b, 5, a.At), start)
	}
	return wire.EndOptional(b, mark, outer)
}

// decodeStepsRecord reads the field, one of appendStepsRecord's. A step gets its
// plan from its parent later.
func decodeStepsRecord(r *Reader, o *Options, names *Names) {
	switch r.Num {
	case 36:
		o.Step = &Step{ParentID: r.ID()}
	case 37:
		o.Parent = &Parent{Plan: r.plan(names)}
	case 38:
		if o.Parent == nil {
			r.Fail("the finalization of a task without steps")
			return
		}
		o.Parent.Finalization = r.finalization(names)
	default:
		r.Unknown()
	}
}

// plan reads the field, a message Plan.
func (r *Reader) plan(names *Names) *Plan {
	in := ReaderOf(r.Single())
	p := &Plan{}
	for in.Next() {
		switch in.Num {
		case 1:
			if p.Steps == nil {
				p.Steps = make([]PlannedStep, 0, min(in.Run(), StepsMax))
			}
			in.Bound(len(p.Steps), StepsMax)
			one := ReaderOf(in.Raw())
			p.Steps = append(p.Steps, decodePlannedStep(&one, names))
			in.Within(one.Err)
		case 2:
			p.ByClaim = in.Bool()
		case 3:
			p.Continue = in.Bool()
		default:
			in.Unknown()
		}
	}
	if in.Err == nil && len(p.Steps) == 0 {
		in.Fail("a plan without steps")
	}
	for place := range p.Steps {
		in.checkPlaces(p.Steps[place].DependsOn, place, len(p.Steps))
	}
	r.Within(in.Err)
	p.Link()
	return p
}

func decodePlannedStep(r *Reader, names *Names) (s PlannedStep) {
	for r.Next() {
		switch r.Num {
		case 1:
			s.Name = names.intern(r.Single())
		case 2:
			s.DependsOn = r.place(s.DependsOn)
		default:
			r.Unknown()
		}
	}
	return s
}

// finalization reads the field, a message Finalization.
func (r *Reader) finalization(names *Names) *Finalization {
	in := ReaderOf(r.Single())
	v := &Finalization{}
	for in.Next() {
		switch in.Num {
		case 1:
			v.ProcessorID = names.intern(in.Single())
		case 2:
			v.Token = in.ID()
		case 3:
			v.TimeoutMS = in.Int64()
		case 4:
			v.EndU = in.Int64()
		case 5:
			if v.Attempts == nil {
				v.Attempts = make([]FinalizationAttempt, 0, min(in.Run(), FinalizationAttemptsMax))
			}
			in.Bound(len(v.Attempts), FinalizationAttemptsMax)
			one := ReaderOf(in.Raw())
			v.Attempts = append(v.Attempts, decodeFinalizationAttempt(&one, names))
			in.Within(one.Err)
		default:
			in.Unknown()
		}
	}
	r.Within(in.Err)
	return v
}

func decodeFinalizationAttempt(r *Reader, names *Names) (a FinalizationAttempt) {
	for r.Next() {
		switch r.Num {
		case 1:
			a.ProcessorID = names.intern(r.Single())
		case 2:
			a.Outcome = FinalizationOutcome(r.Enum(uint64(FinalizationNotReady)))
		case 3:
			a.Holder = names.intern(r.Single())
		case 4:
			a.State = FinalizationState(r.Enum(uint64(StateCancelled)))
		case 5:
			a.At = r.Int64()
		default:
			r.Unknown()
		}
	}
	return a
}

// StepsProblem returns what is wrong with the saved task as a parent, as a step or
// as neither, "" if nothing is. What it has to do with other tasks is looked at
// when all of them are there.
func (t *Task) StepsProblem(h *Header) (problem string) {
	parent, step := t.Parent(), t.Step()
	switch {
	case parent != nil && step != nil:
		return "it is a parent and a step"
	case parent == nil && t.Status == StatusRunning:
		return "it is running without steps"
	case step == nil && t.Status == StatusBlocked:
		return "it is blocked and no step"
	case parent == nil:
		return ""
	case t.Status != StatusRunning && !t.Status.Ended():
		return "it is a parent that neither runs nor has ended"
	case t.ID+uint64(len(parent.Plan.Steps)) >= h.NextID:
		return "it has steps that were never given out"
	case parent.Finalization != nil:
		return parent.Finalization.problem(t.Status, h)
	}
	return ""
}

// problem returns what is wrong with what a parent of that status has of its
// finalization, "" if nothing is.
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
