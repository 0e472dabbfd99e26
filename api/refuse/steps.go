package refuse

import (
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// family words a refusal where the code's fixed text does not fit because the task has steps, or is one.
func family(r *Refusal, cmd command.Command) {
	_, patches := cmd.(command.Patch)
	_, retries := cmd.(command.Retry)
	running := r.Task != nil && r.Task.Status == fsm.StatusRunning
	switch {
	case r.Reason == fsm.ReasonStep:
		r.Text, r.Advice = "A step cannot be deleted", "Delete its parent once that has ended: its steps go with it"
	case r.Reason == fsm.ReasonParentEnded:
		parentEnded(r)
	case r.Reason == fsm.ReasonDependencyEnded:
		r.Text = "A step that this one depends on has failed"
		if r.Code == wire.CodeTaskCancelled {
			r.Text = "A step that this one depends on is cancelled"
		}
		r.Advice = "Retry that step first, in task_id, or the parent: then all of them are retried"
	case r.Reason == fsm.ReasonCancelRequested:
		r.Text = "A claimed step is being cancelled, and would cancel again what is retried"
		r.Advice = "Retry once that step, in task_id, has ended: it does when its worker obeys, at its lease's end, or by a retry of its own"
	case r.Code == wire.CodeTaskNotClaimable && running && patches:
		r.Text, r.Advice = "A task with steps has no run_at", "Change the run_at of its steps"
	case r.Code == wire.CodeTaskNotClaimable && running:
		r.Advice = "Claim its steps: a task with steps is not claimed itself"
	case r.Code == wire.CodeTaskCancelled && running && retries:
		r.Text, r.Advice = "Task is being cancelled", "Wait until its claimed steps have ended, then retry it"
	}
}

// parentEnded words the refusal to retry a step of a parent that has ended.
func parentEnded(r *Refusal) {
	const retry = "Retry the parent, in task_id: its failed and cancelled steps are retried with it"
	switch r.Code {
	case wire.CodeTaskCompleted:
		r.Text, r.Advice = "The parent of the step is already completed", "Nothing is left to do: the parent has its result"
	case wire.CodeTaskFailed:
		r.Text, r.Advice = "The parent of the step has already failed", retry
	case wire.CodeTaskCancelled:
		r.Text, r.Advice = "The parent of the step is cancelled", retry
	}
}
