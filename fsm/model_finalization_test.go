package fsm

import (
	"encoding/base64"
	"slices"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// finalizer returns the current holder of the parent's finalization, or "". A claim is over
// some time after its end, because a clock may be slower than the leader's by half a
// thousandth.
func (s *model) finalizer(p *record.Task) string { return finalizerAt(p, s.u) }

func finalizerAt(p *record.Task, u int64) string {
	f := p.Opts().Parent.Finalization
	if f == nil || u >= f.EndU+f.TimeoutMS/2000+2 {
		return ""
	}
	return f.ProcessorID
}

// setFinalizer changes the parent's claim; what answers have of it stays.
func (s *model) setFinalizer(p *record.Task, change func(f *record.Finalization)) {
	o := *p.Opts()
	f := record.Finalization{}
	if was := o.Parent.Finalization; was != nil {
		f = *was
		f.Attempts = slices.Clone(f.Attempts)
	}
	change(&f)
	o.Parent = &record.Parent{Plan: o.Parent.Plan, Finalization: &f}
	setPlainly(p, o)
}

// dropFinalizer takes the claim from who has it.
func (s *model) dropFinalizer(p *record.Task) {
	if f := p.Opts().Parent.Finalization; f != nil && f.ProcessorID != "" {
		s.setFinalizer(p, func(f *record.Finalization) { *f = record.Finalization{Attempts: f.Attempts} })
	}
}

// dropFinalizersDue takes the claims that are over.
func (s *model) dropFinalizersDue() {
	for _, t := range s.tasks {
		if t.Opts().Parent != nil && s.finalizer(t) == "" {
			s.dropFinalizer(t)
		}
	}
}

// finalizationState returns the state of the task's finalization.
func (s *model) finalizationState(t *record.Task) record.FinalizationState {
	switch {
	case t.Opts().Parent == nil:
		return record.PlainState + record.FinalizationState(t.Status)
	case t.Status >= record.StatusCompleted:
		return endState(t.Status)
	case s.allEnded(t):
		return record.StateEvaluatingResults
	}
	return record.StateWaitingForSteps
}

func endState(end record.Status) record.FinalizationState {
	return map[record.Status]record.FinalizationState{record.StatusCompleted: record.StateComplete, record.StatusFailed: record.StateFailed, record.StatusCancelled: record.StateCancelled}[end]
}

// claimFinalization goes by the contract's order.
func (s *model) claimFinalization(c command.ClaimFinalization) Result {
	t, gone := s.find(c.ID), s.findGone(c.ID)
	switch {
	case t == nil && gone != nil:
		return Result{Parent: &ParentAnswer{Outcome: record.FinalizationAlreadyDone, State: endState(gone.Status)}}
	case t == nil:
		return Result{Parent: &ParentAnswer{Outcome: record.FinalizationNotFound, State: record.StateNotFound}}
	case t.Opts().Parent == nil:
		return Result{Parent: &ParentAnswer{Outcome: record.FinalizationNotReady, State: s.finalizationState(t)}}
	}
	a := s.tryFinalization(t, c)
	a.State = s.finalizationState(t)
	s.setFinalizer(t, func(f *record.Finalization) {
		f.Attempts = append(f.Attempts, record.FinalizationAttempt{ProcessorID: c.ProcessorID, Outcome: a.Outcome, Holder: a.Holder, State: a.State, At: s.t})
		if len(f.Attempts) > 100 {
			f.Attempts = f.Attempts[1:]
		}
	})
	return Result{Parent: a}
}

// tryFinalization claims the finalization of a parent.
func (s *model) tryFinalization(p *record.Task, c command.ClaimFinalization) *ParentAnswer {
	ready := slices.ContainsFunc(s.stepsOf(p), func(t *record.Task) bool {
		return t.Status == record.StatusCompleted || t.Status == record.StatusFailed
	})
	holder := s.finalizer(p)
	switch {
	case p.Status >= record.StatusCompleted:
		return &ParentAnswer{Outcome: record.FinalizationAlreadyDone}
	case holder != "" && holder != c.ProcessorID:
		return &ParentAnswer{Outcome: record.FinalizationAlreadyClaimed, Holder: holder}
	case holder == c.ProcessorID:
		s.lengthenFinalization(p, c.TimeoutMS)
		return &ParentAnswer{Outcome: record.FinalizationExtended, Holder: holder, Token: p.Opts().Parent.Finalization.Token}
	case !ready:
		return &ParentAnswer{Outcome: record.FinalizationNotReady}
	}
	s.tokens++
	s.setFinalizer(p, func(f *record.Finalization) {
		f.ProcessorID, f.Token, f.TimeoutMS, f.EndU = c.ProcessorID, s.tokens, c.TimeoutMS, s.u+c.TimeoutMS
	})
	s.tell(event.FinalizationClaimed, p, &record.Task{WorkerID: c.ProcessorID, Token: s.tokens}, "")
	return &ParentAnswer{Outcome: record.FinalizationClaimed, Holder: c.ProcessorID, Token: s.tokens}
}

// lengthenFinalization lets the claim last so long from now, 0 = as long as it
// did. It is over no earlier than it was.
func (s *model) lengthenFinalization(p *record.Task, timeout int64) {
	s.setFinalizer(p, func(f *record.Finalization) {
		if timeout == 0 {
			timeout = f.TimeoutMS
		}
		f.EndU = max(s.u+timeout, f.EndU+f.TimeoutMS/2000-timeout/2000)
		f.TimeoutMS = timeout
	})
}

// finalizationAnswer tells how the finalization of the task stands.
func (s *model) finalizationAnswer(id uint64) *ParentAnswer {
	t, gone := s.find(id), s.findGone(id)
	a := &ParentAnswer{State: record.StateNotFound}
	switch {
	case t == nil && gone != nil:
		a.State = endState(gone.Status)
	case t != nil:
		a.State = s.finalizationState(t)
		if t.Opts().Parent != nil {
			a.Holder = s.finalizer(t)
		}
	}
	return a
}

func (s *model) extendFinalization(c command.ExtendFinalization) Result {
	a := s.finalizationAnswer(c.ID)
	if a.Holder == c.ProcessorID {
		t := s.find(c.ID)
		s.lengthenFinalization(t, c.TimeoutMS)
		a.Done, a.Token = true, t.Opts().Parent.Finalization.Token
	}
	return Result{Parent: a}
}

func (s *model) releaseFinalization(c command.ReleaseFinalization) Result {
	a := s.finalizationAnswer(c.ID)
	t, gone := s.find(c.ID), s.findGone(c.ID)
	switch {
	case a.Holder == c.ProcessorID:
		s.dropFinalizer(t)
		a.Done, a.Holder = true, ""
	case t != nil:
		a.Done = s.finalizedBy(t, c.ProcessorID)
	case gone != nil:
		a.Done = s.finalizedBy(gone, c.ProcessorID)
	}
	return Result{Parent: a}
}

// finalizedBy tells whether the processor ended the task.
func (s *model) finalizedBy(t *record.Task, processor string) bool {
	return t.Opts().Parent != nil && t.Status >= record.StatusCompleted && t.WorkerID == processor
}

// finalize goes by the contract's order.
func (s *model) finalize(c command.Finalize) Result {
	t, gone := s.find(c.ID), s.findGone(c.ID)
	a := s.finalizationAnswer(c.ID)
	answer := func(code Code) Result {
		a.Steps, a.AlreadyFinalized = s.stepViews(t), code == "" && a.AlreadyFinalized
		return Result{Code: code, Task: s.answer(t), Parent: a}
	}
	switch {
	case t == nil && gone != nil:
		a.AlreadyFinalized = true
		return Result{Gone: true, Task: goneAnswer(gone), Parent: a}
	case t == nil:
		return Result{Code: CodeTaskNotFound}
	case t.Opts().Parent == nil:
		r := s.refuse(CodeTaskNotClaimable, t)
		r.Reason = "no_steps"
		return r
	case t.Status >= record.StatusCompleted:
		a.AlreadyFinalized = true
		return answer("")
	}
	token := uint64(0)
	if a.Holder != "" {
		token = t.Opts().Parent.Finalization.Token
	}
	switch {
	case a.Holder != "" && a.Holder != c.ProcessorID:
		return answer(CodeTaskAlreadyClaimed)
	case c.Token != 0 && c.Token != token:
		return answer(CodeStaleClaim)
	case !s.allEnded(t):
		return answer(CodeStepsUnfinished)
	case c.Failed:
		t.Error = c.Error
		s.endParent(t, record.StatusFailed, c.ProcessorID, token)
	default:
		t.Result = c.Result
		s.endParent(t, record.StatusCompleted, c.ProcessorID, token)
	}
	a.State, a.Holder = s.finalizationState(t), ""
	return answer("")
}

// compareParents compares what can be asked of parents and of their finalization.
func compareParents(t rapid.TB, g *generator, m *Machine, s *model) {
	claims := 0
	for id := range s.ids + 2 {
		now := s.u + pick[int64](g, 0, 1, 1000, 5000, 60_000)
		x := s.find(id)
		var want FinalizationView
		var steps []StepView
		if x != nil && x.Opts().Parent != nil {
			steps = s.stepViews(x)
			want.ClaimedBy = finalizerAt(x, now)
			if f := x.Opts().Parent.Finalization; f != nil {
				want.Attempts = f.Attempts
				if want.ClaimedBy != "" {
					want.LeftMS = max(0, f.EndU-now)
				}
				if f.ProcessorID != "" {
					claims++
				}
			}
		}
		got, ok := m.Finalization(id, record.Stamp{U: now, T: s.t})
		if diff := diffOf(want, got); ok != (x != nil) || diff != "" {
			t.Fatalf("finalization of task %d, %v (-model +machine):\n%s", id, ok, diff)
		}
		if diff := diffOf(steps, m.Steps(id)); diff != "" {
			t.Fatalf("steps of task %d (-model +machine):\n%s", id, diff)
		}
	}
	if got := m.FinalizationCount(); got != claims {
		t.Fatalf("%d claims of finalizations, want %d", got, claims)
	}
}

// jsonOfResult is the result of a step as a part of its parent's.
func jsonOfResult(t *record.Task) string {
	switch {
	case t.Result != nil:
		return string(t.Result)
	case t.ResultPayload != nil:
		return `"` + base64.StdEncoding.EncodeToString(t.ResultPayload) + `"`
	}
	return "null"
}
