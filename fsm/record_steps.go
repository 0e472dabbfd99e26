package fsm

import "google.golang.org/protobuf/encoding/protowire"

// appendStepsRecord appends the fields of a task's record that are of parents and
// steps. The plan is in the parent's record alone.
func appendStepsRecord(b []byte, o *Options) []byte {
	if o.Step != nil {
		b = putID(b, 36, o.Step.ParentID)
	}
	if o.Parent == nil {
		return b
	}
	b = appendPlan(b, 37, o.Parent.Plan)
	return appendFinalization(b, 38, o.Parent.Finalization)
}

// appendPlan appends the field num, a message.
func appendPlan(b []byte, num protowire.Number, p *Plan) []byte {
	b, outer := beginMessage(b, num)
	for i := range p.Steps {
		var start int
		b, start = beginMessage(b, 1)
		b = putString(b, 1, p.Steps[i].Name)
		b = endLength(appendPlaces(b, 2, p.Steps[i].DependsOn), start)
	}
	b = putBool(b, 2, p.ByClaim)
	return endLength(putBool(b, 3, p.Continue), outer)
}

// appendFinalization appends the field num, a message; nothing if v is nil.
func appendFinalization(b []byte, num protowire.Number, v *Finalization) []byte {
	if v == nil {
		return b
	}
	mark := len(b)
	b, outer := beginMessage(b, num)
	b = putString(b, 1, v.ProcessorID)
	b = putID(b, 2, v.Token)
	b = putInt(b, 3, v.TimeoutMS)
	b = putInt(b, 4, v.EndU)
	for i := range v.Attempts {
		a := &v.Attempts[i]
		var start int
		b, start = beginMessage(b, 5)
		b = putString(b, 1, a.ProcessorID)
		b = putUint(b, 2, uint64(a.Outcome))
		b = putString(b, 3, a.Holder)
		b = putUint(b, 4, uint64(a.State))
		b = endLength(putInt(b, 5, a.At), start)
	}
	return endOptional(b, mark, outer)
}

// decodeStepsRecord reads the field, one of appendStepsRecord's. A step gets its
// plan from its parent later.
func decodeStepsRecord(r *fieldReader, o *Options, names *interner) {
	switch r.num {
	case 36:
		o.Step = &Step{ParentID: r.id()}
	case 37:
		o.Parent = &Parent{Plan: r.plan(names)}
	case 38:
		if o.Parent == nil {
			r.fail("the finalization of a task without steps")
			return
		}
		o.Parent.Finalization = r.finalization(names)
	default:
		r.unknown()
	}
}

// plan reads the field, a message Plan.
func (r *fieldReader) plan(names *interner) *Plan {
	in := fieldReader{rest: r.single()}
	p := &Plan{}
	for in.next() {
		switch in.num {
		case 1:
			if p.Steps == nil {
				p.Steps = make([]PlannedStep, 0, min(in.run(), StepsMax))
			}
			in.bound(len(p.Steps), StepsMax)
			one := fieldReader{rest: in.raw()}
			p.Steps = append(p.Steps, decodePlannedStep(&one, names))
			in.within(one.err)
		case 2:
			p.ByClaim = in.bool()
		case 3:
			p.Continue = in.bool()
		default:
			in.unknown()
		}
	}
	if in.err == nil && len(p.Steps) == 0 {
		in.fail("a plan without steps")
	}
	for place := range p.Steps {
		in.checkPlaces(p.Steps[place].DependsOn, place, len(p.Steps))
	}
	r.within(in.err)
	p.link()
	return p
}

func decodePlannedStep(r *fieldReader, names *interner) (s PlannedStep) {
	for r.next() {
		switch r.num {
		case 1:
			s.Name = names.intern(r.single())
		case 2:
			s.DependsOn = r.place(s.DependsOn)
		default:
			r.unknown()
		}
	}
	return s
}

// finalization reads the field, a message Finalization.
func (r *fieldReader) finalization(names *interner) *Finalization {
	in := fieldReader{rest: r.single()}
	v := &Finalization{}
	for in.next() {
		switch in.num {
		case 1:
			v.ProcessorID = names.intern(in.single())
		case 2:
			v.Token = in.id()
		case 3:
			v.TimeoutMS = in.int64()
		case 4:
			v.EndU = in.int64()
		case 5:
			if v.Attempts == nil {
				v.Attempts = make([]FinalizationAttempt, 0, min(in.run(), finalizationAttemptsMax))
			}
			in.bound(len(v.Attempts), finalizationAttemptsMax)
			one := fieldReader{rest: in.raw()}
			v.Attempts = append(v.Attempts, decodeFinalizationAttempt(&one, names))
			in.within(one.err)
		default:
			in.unknown()
		}
	}
	r.within(in.err)
	return v
}

func decodeFinalizationAttempt(r *fieldReader, names *interner) (a FinalizationAttempt) {
	for r.next() {
		switch r.num {
		case 1:
			a.ProcessorID = names.intern(r.single())
		case 2:
			a.Outcome = FinalizationOutcome(r.enum(uint64(FinalizationNotReady)))
		case 3:
			a.Holder = names.intern(r.single())
		case 4:
			a.State = FinalizationState(r.enum(uint64(StateCancelled)))
		case 5:
			a.At = r.int64()
		default:
			r.unknown()
		}
	}
	return a
}

// stepsProblem returns what is wrong with the saved task as a parent, as a step or
// as neither, "" if nothing is. What it has to do with other tasks is looked at
// when all of them are there.
func (t *Task) stepsProblem(h *header) (problem string) {
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
func (f *Finalization) problem(s Status, h *header) string {
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
