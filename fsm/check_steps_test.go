package fsm

import (
	"fmt"
	"slices"

	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// checkSteps compares what is derived of parents and their steps with what the
// saved records say, and ensures what holds of them between entries.
func (m *Machine) checkSteps() error {
	parents := 0
	var finalizing []index.Moment
	for id, t := range m.tasks.All() {
		o := t.Opts()
		if o.Step != nil {
			if problem := m.problemAsStep(t, o.Step); problem != "" {
				return fmt.Errorf("step %d of %d %s: %+v", t.StepPlace(), o.Step.ParentID, problem, *t)
			}
		}
		if o.Parent == nil {
			continue
		}
		parents++
		if steps, err := m.checkParent(t, o.Parent.Plan); err != nil {
			return fmt.Errorf("parent %d, %v, steps %v: %w", id, t.Status, steps, err)
		}
		if f := o.Parent.Finalization; f != nil && f.ProcessorID != "" {
			finalizing = append(finalizing, index.Moment{At: f.EndU + f.TimeoutMS/2000 + 2, ID: id})
		}
	}
	if len(m.parents.byID) != parents || len(m.stepsEnded) > 0 {
		return fmt.Errorf("%d parents in the index, want %d; %v have ended", len(m.parents.byID), parents, m.stepsEnded)
	}
	if got := slices.Collect(m.times.finalizing.All()); !slices.Equal(got, inOrder(finalizing)) {
		return fmt.Errorf("finalizations are over at %v, want %v", got, finalizing)
	}
	return nil
}

// problemAsStep returns what is wrong with the task as a step, "" if nothing is.
func (m *Machine) problemAsStep(t *record.Task, s *record.Step) string {
	parent := m.tasks.Get(s.ParentID)
	if parent == nil || parent.Opts().Parent == nil {
		return "has no parent"
	}
	place := slices.IndexFunc(placesIn(s.Plan), func(place int) bool { return s.Plan.IDOf(s.ParentID, place) == t.ID })
	switch {
	case s.Plan != parent.Options.Parent.Plan || place < 0 || t.StepPlace() != place:
		return "has no place in the plan, or another plan"
	case parent.Status.Ended() && !t.Status.Ended():
		return "goes on though its parent has ended"
	case t.Options.Parent != nil || t.Key != "" || t.Options.UniqueActive || t.Options.UniqueMS != 0 || t.Options.RetentionMS != 0 || t.RemoveAt != 0 || t.Status == record.StatusRunning:
		return "has what only a parent has"
	}
	waits, inVain := false, false
	for _, on := range s.Plan.Steps[place].DependsOn {
		status := m.tasks.Get(s.Plan.IDOf(s.ParentID, int(on))).Status
		waits = waits || status != record.StatusCompleted
		inVain = inVain || status == record.StatusFailed || status == record.StatusCancelled
	}
	asked := t.Status == record.StatusClaimed && t.CancelRequested
	switch {
	case !t.Status.Ended() && (waits || t.LacksSignal()) != (t.Status == record.StatusBlocked), waits && t.Opts().SignalUntil != 0, !waits && t.Status == record.StatusBlocked && t.Opts().SignalUntil == 0, t.Status == record.StatusCompleted && waits:
		return "is blocked, or is not, as it should not be"
	case inVain && !t.Status.Ended():
		return "waits for one that will not complete"
	case parent.CancelRequested && !t.Status.Ended() && !asked:
		return "goes on though its parent is being cancelled"
	}
	return ""
}

// placesIn returns the places of the plan.
func placesIn(p *record.Plan) []int {
	places := make([]int, len(p.Steps))
	for place := range places {
		places[place] = place
	}
	return places
}

// checkParent compares what is derived of the parent with its steps. It returns
// their statuses.
func (m *Machine) checkParent(t *record.Task, p *record.Plan) (statuses []record.Status, err error) {
	want := parentState{tasks: 1, ended: t.Status.Ended(), waiting: make([]uint16, len(p.Steps))}
	for place := range p.Steps {
		s := m.tasks.Get(p.IDOf(t.ID, place))
		if s == nil || s.Opts().Step == nil || s.Options.Step.ParentID != t.ID {
			return statuses, fmt.Errorf("step %d is not there", place)
		}
		statuses = append(statuses, s.Status)
		want.tasks++
		want.counts[s.Status]++
		want.bytes += record.HeldBytes(s)
		if s.Status == record.StatusClaimed && s.CancelRequested {
			want.asked++
		}
		for _, on := range p.Steps[place].DependsOn {
			if m.tasks.Get(p.IDOf(t.ID, int(on))).Status != record.StatusCompleted {
				want.waiting[place]++
			}
		}
	}
	got := m.parents.byID[t.ID]
	if got == nil || got.tasks != want.tasks || got.counts != want.counts || got.asked != want.asked || got.ended != want.ended || got.bytes != want.bytes {
		return statuses, fmt.Errorf("derived is %+v, want %+v", got, want)
	}
	if !slices.Equal(got.waiting, want.waiting) {
		return statuses, fmt.Errorf("its steps wait for so many: %v, want %v", got.waiting, want.waiting)
	}
	return statuses, problemAsParent(t, p, statuses)
}

// problemAsParent returns what is wrong with the parent itself.
func problemAsParent(t *record.Task, p *record.Plan, steps []record.Status) error {
	open := slices.ContainsFunc(steps, func(s record.Status) bool { return !s.Ended() })
	f := t.Options.Parent.Finalization
	held := f != nil && f.ProcessorID != ""
	switch {
	case t.Status != record.StatusRunning && !t.Status.Ended():
		return fmt.Errorf("it has steps and is %v", t.Status)
	case t.Status == record.StatusRunning && !open && (!p.ByClaim || t.CancelRequested):
		return fmt.Errorf("it is stuck: nothing is left to wait for")
	case t.Attempts != 0 || len(t.Log) != 0 || t.Options.Group != "" || t.Options.ShareKey != "" || t.Options.ExpiresAt != 0 || t.RunAt != 0:
		return fmt.Errorf("it has what only a task has that is claimed: %+v", *t)
	case t.Status == record.StatusRunning && t.WorkerID != "" || t.Status.Ended() && !p.ByClaim && t.WorkerID != "":
		return fmt.Errorf("it was finalized by %q with token %d", t.WorkerID, t.Token)
	case held && t.Status != record.StatusRunning, f != nil && held != (f.Token != 0 && f.TimeoutMS > 0 && f.EndU > 0), f != nil && len(f.Attempts) > 100:
		return fmt.Errorf("its finalization is %+v", *f)
	}
	return nil
}
