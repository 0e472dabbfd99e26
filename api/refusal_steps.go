package api

import (
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// refuseFamily words a refusal where the code's own words do not fit because the
// task has steps, or is one.
func refuseFamily(r *refusal, cmd fsm.Command) {
	_, patches := cmd.(fsm.Patch)
	_, retries := cmd.(fsm.Retry)
	running := r.task != nil && r.task.Status == fsm.StatusRunning
	switch {
	case r.reason == fsm.ReasonStep:
		r.text, r.advice = "A step cannot be deleted", "Delete its parent once that has ended: its steps go with it"
	case r.reason == fsm.ReasonParentEnded:
		refuseParentEnded(r)
	case r.reason == fsm.ReasonDependencyEnded:
		r.text = "A step that this one depends on has failed"
		if r.code == wire.CodeTaskCancelled {
			r.text = "A step that this one depends on is cancelled"
		}
		r.advice = "Retry that step first, in task_id, or the parent: then all of them are retried"
	case r.code == wire.CodeTaskNotClaimable && running && patches:
		r.text, r.advice = "A task with steps has no run_at", "Change the run_at of its steps"
	case r.code == wire.CodeTaskNotClaimable && running:
		r.advice = "Claim its steps: a task with steps is not claimed itself"
	case r.code == wire.CodeTaskCancelled && running && retries:
		r.text, r.advice = "Task is being cancelled", "Wait until its claimed steps have ended, then retry it"
	}
}

// refuseParentEnded words the refusal to retry a step of a parent that has ended.
func refuseParentEnded(r *refusal) {
	const retry = "Retry the parent, in task_id: its failed and cancelled steps are retried with it"
	switch r.code {
	case wire.CodeTaskCompleted:
		r.text, r.advice = "The parent of the step is already completed", "Nothing is left to do: the parent has its result"
	case wire.CodeTaskFailed:
		r.text, r.advice = "The parent of the step has already failed", retry
	case wire.CodeTaskCancelled:
		r.text, r.advice = "The parent of the step is cancelled", retry
	}
}
