package fsm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// reachedOfParents lists the cases of parents, steps and finalization that random logs must
// reach.
var reachedOfParents = []string{
	"a blocked step", "a blocked step in a group", "a blocked step that waits for its time", "a step expired before its claim", "a parent of 50 steps",
	"a step with a dependency behind it", "a scheduled step", "a step retried", "a parent retried", "a cancelled step of a running parent",
	"a claimed step asked by another's failure", "a parent that waits for its processor", "one whose steps were all cancelled",
	"a parent being cancelled", "a parent kept for ever", "a parent with a key", "a parent by itself completed", "a parent by itself failed",
	"a parent cancelled", "a parent cancelled with all steps completed", "a parent that failed as a step was cancelled",
	"a parent that completed though a step did not", "a processor completed", "a processor failed", "without a claim of its own",
	"a follow-up with steps", "claimed a step that its complete unblocked", "a parent patched", "refused a time for a parent",
	"batch undone after ops of parents", "an evicted parent", "a removed parent", "a removed step", "deleted a parent with its steps", "refused to delete a step",
	"refused as parent_ended", "refused a retry as the parent is being cancelled", "refused a parent's retry for a step",
	"refused a retry that would be undone",
	"event submitted of a step", "event cancelled of a step", "event cancel_requested of a step", "event scheduled of a step",
	"event expired of a step", "event finalized of a parent", "event cancelled of a parent", "event retried of a parent",
	"event deleted of a step", "event finalization_claimed of a parent", "event cancel_requested of a parent",
	"finalization claimed", "finalization extended", "finalization already claimed", "finalization already done", "finalization not ready",
	"finalization not found", "finalization of a removed task", "finalization of a task without steps", "finalization claimed after another's",
	"a claim near its end", "extended", "not extended", "released", "released after finalizing", "not released",
	"steps added", "steps added again", "some steps added", "a parent with steps that were added completed", "a step added that waits for one that was there", "a step added whose dependency was over",
	"steps not added: no_parent", "steps not added: step_taken", "steps not added: no_step", "steps not added: dependency_ended", "steps not added: cancel_requested",
	"event steps_added of a parent",
	"finalized", "already finalized", "already finalized and removed", "finalize code task_not_found", "finalize code task_not_claimable",
	"finalize code task_already_claimed", "finalize code stale_claim", "finalize code steps_unfinished",
}

// seeOfParent notes how parents and their steps are.
func (n reached) seeOfParent(m *Machine, t *record.Task) {
	o := t.Opts()
	if s := o.Step; s != nil {
		n.count(t.Status == record.StatusBlocked, "a blocked step")
		n.count(t.Status == record.StatusBlocked && o.Group != "", "a blocked step in a group")
		n.count(t.Status == record.StatusBlocked && t.RunAt > m.header.Stamp.T, "a blocked step that waits for its time")
		n.count(t.Status == record.StatusScheduled, "a scheduled step")
		n.count(t.Status == record.StatusCancelled && m.Get(s.ParentID).Status == record.StatusRunning, "a cancelled step of a running parent")
		n.count(t.Status == record.StatusFailed && t.Error == expiredUnclaimed, "a step expired before its claim")
		n.count(t.Status == record.StatusClaimed && t.CancelRequested && !m.Get(s.ParentID).CancelRequested, "a claimed step asked by another's failure")
		for _, on := range s.Plan.Steps[t.StepPlace()].DependsOn {
			n.count(int(on) > t.StepPlace(), "a step with a dependency behind it")
		}
	}
	if o.Parent == nil {
		return
	}
	plan, steps := o.Parent.Plan, map[record.Status]int{}
	for place := range plan.Steps {
		steps[m.Get(plan.IDOf(t.ID, place)).Status]++
	}
	completed := steps[record.StatusCompleted]
	open := len(plan.Steps) - completed - steps[record.StatusFailed] - steps[record.StatusCancelled]
	running := t.Status == record.StatusRunning
	n.count(len(plan.Steps) == 50, "a parent of 50 steps")
	n.count(t.Status == record.StatusCompleted && len(plan.Added) > 0, "a parent with steps that were added completed")
	n.count(running && open == 0, "a parent that waits for its processor")
	n.count(running && steps[record.StatusCancelled] == len(plan.Steps), "one whose steps were all cancelled")
	n.count(running && t.CancelRequested, "a parent being cancelled")
	n.count(!running && o.RetentionMS == record.KeepForever, "a parent kept for ever")
	n.count(t.Key != "", "a parent with a key")
	n.count(t.Status == record.StatusCancelled, "a parent cancelled")
	n.count(t.Status == record.StatusCancelled && completed == len(plan.Steps), "a parent cancelled with all steps completed")
	n.count(t.Status == record.StatusFailed && strings.HasSuffix(t.Error, " was cancelled"), "a parent that failed as a step was cancelled")
	n.count(t.Status == record.StatusCompleted && plan.Continue && completed < len(plan.Steps), "a parent that completed though a step did not")
	if t.Status == record.StatusCompleted || t.Status == record.StatusFailed {
		by := "a processor"
		if t.WorkerID == "" {
			by = "a parent by itself"
		}
		n.count(true, by+" "+t.Status.String())
		n.count(t.WorkerID != "" && t.Token == 0, "without a claim of its own")
	}
	if f := o.Parent.Finalization; f != nil && f.ProcessorID != "" {
		left := f.EndU - m.header.Stamp.U
		n.count(left < 3 && left > -4, "a claim near its end")
		for i, a := range f.Attempts {
			n.count(i > 0 && a.Outcome == record.FinalizationClaimed && f.Attempts[i-1].Holder != "", "finalization claimed after another's")
		}
	}
}

// seeTrail notes what the entry told of parents and steps.
func (n reached) seeTrail(m *Machine, e testEntry, known map[uint64]*record.Options) {
	for _, event := range m.Events(event.Query{After: event.Pos{Index: e.Index - 1, Sub: 1<<32 - 1}, Limit: 1000}).Events {
		if o := known[event.TaskID]; o != nil {
			n.count(o.Step != nil, fmt.Sprintf("event %v of a step", event.Kind))
			n.count(o.Parent != nil, fmt.Sprintf("event %v of a parent", event.Kind))
		}
	}
}

// isOfParent reports whether the op is about parents or their steps.
func isOfParent(m *Machine, op command.Command) bool {
	var id uint64
	switch op := op.(type) {
	case command.Submit:
		return op.Tasks[0].Parent != nil
	case command.Complete:
		id = op.ID
	case command.Fail:
		id = op.ID
	case command.Cancel:
		id = op.ID
	case command.Retry:
		id = op.ID
	case command.Delete:
		id = op.ID
	}
	t := m.Get(id)
	return t != nil && (t.Opts().Parent != nil || t.Opts().Step != nil)
}

func (n reached) seeComplete(c command.Complete, r Result) {
	for _, s := range r.Submitted {
		n.count(s.Created && s.Task.Opts().Parent != nil, "a follow-up with steps")
	}
	if r.Task == nil || r.Task.Opts().Step == nil || r.Repeated {
		return
	}
	done := r.Task.Options.Step
	for _, claim := range r.Claims {
		s := claim.Task.Opts().Step
		n.count(s != nil && s.ParentID == done.ParentID && slices.Contains(s.Plan.Steps[claim.Task.StepPlace()].DependsOn, uint16(r.Task.StepPlace())),
			"claimed a step that its complete unblocked")
	}
}

func (n reached) seeAddSteps(m *Machine, r Result) {
	if r.Code != "" {
		n.count(true, "steps not added: "+string(r.Reason))
		return
	}
	added := 0
	for _, s := range r.Submitted {
		if !s.Created {
			continue
		}
		added++
		step := s.Task.Opts().Step
		for _, on := range step.Plan.Steps[s.Task.StepPlace()].DependsOn {
			dependency := m.Get(step.Plan.IDOf(step.ParentID, int(on)))
			n.count(dependency.Status == record.StatusCompleted, "a step added whose dependency was over")
			n.count(int(on) < len(step.Plan.Steps)-len(step.Plan.Added) && s.Task.Status == record.StatusBlocked, "a step added that waits for one that was there")
		}
	}
	n.count(added == len(r.Submitted), "steps added")
	n.count(added == 0, "steps added again")
	n.count(added > 0 && added < len(r.Submitted), "some steps added")
}

func (n reached) seeRetry(r Result) {
	n.count(r.Reason == ReasonParentEnded, "refused as parent_ended")
	if r.Task == nil {
		return
	}
	o := r.Task.Opts()
	n.count(r.Code == CodeTaskCancelled && r.Reason == "" && o.Parent != nil, "refused a retry as the parent is being cancelled")
	n.count(r.Reason == ReasonCancelRequested && !o.Step.Plan.Continue, "refused a retry that would be undone")
	n.count(r.Reason == ReasonCancelRequested && o.Step.Plan.Continue, "refused one as it waits for a step that was asked")
	n.count(r.Code == CodeMaxAttemptsReached && o.Step != nil, "refused a parent's retry for a step")
	n.count(r.Code == "" && !r.Repeated && o.Step != nil, "a step retried")
	n.count(r.Code == "" && !r.Repeated && o.Parent != nil, "a parent retried")
}

func (n reached) seeFinalization(m *Machine, c command.Command, r Result) {
	switch c := c.(type) {
	case command.ClaimFinalization:
		name := map[record.FinalizationOutcome]string{
			record.FinalizationClaimed: "claimed", record.FinalizationExtended: "extended", record.FinalizationAlreadyClaimed: "already claimed",
			record.FinalizationAlreadyDone: "already done", record.FinalizationNotReady: "not ready", record.FinalizationNotFound: "not found",
		}[r.Parent.Outcome]
		n.count(true, "finalization "+name)
		n.count(r.Parent.State > record.PlainState, "finalization of a task without steps")
		n.count(r.Parent.Outcome == record.FinalizationAlreadyDone && m.Get(c.ID) == nil, "finalization of a removed task")
	case command.ExtendFinalization:
		n.count(r.Parent.Done, "extended")
		n.count(!r.Parent.Done, "not extended")
	case command.ReleaseFinalization:
		n.count(r.Parent.Done && r.Parent.State < record.StateComplete, "released")
		n.count(r.Parent.Done && r.Parent.State >= record.StateComplete, "released after finalizing")
		n.count(!r.Parent.Done, "not released")
	case command.Finalize:
		n.count(r.Code != "", "finalize code "+string(r.Code))
		n.count(r.Code == "" && !r.Parent.AlreadyFinalized, "finalized")
		n.count(r.Code == "" && r.Parent.AlreadyFinalized, "already finalized")
		n.count(r.Code == "" && r.Gone, "already finalized and removed")
	}
}
