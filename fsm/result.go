package fsm

import (
	"github.com/claimq/claimq/fsm/claimable"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// Code says why a command was refused. "" means that it was not. The values
// are the contract's stable codes.
type Code string

// The refusals. They are results, equal on every node, never errors.
const (
	CodeInvalidRequest     Code = "invalid_request" // a claim_request_id used again for another request; a batch that would change too many tasks
	CodeInvalidTask        Code = "invalid_task"    // Submitted has it, Refused
	CodeTaskNotFound       Code = "task_not_found"
	CodeNoPendingTasks     Code = "no_pending_tasks" // a claim in an atomic batch found nothing
	CodeTaskAlreadyClaimed Code = "task_already_claimed"
	CodeTaskNotClaimed     Code = "task_not_claimed"
	CodeTaskNotClaimable   Code = "task_not_claimable"
	CodeWrongWorker        Code = "wrong_worker"
	CodeStaleClaim         Code = "stale_claim"
	CodeTaskCompleted      Code = "task_completed"
	CodeTaskFailed         Code = "task_failed"
	CodeTaskCancelled      Code = "task_cancelled"
	CodeTaskNotTerminal    Code = "task_not_terminal"
	CodeMaxAttemptsReached Code = "max_attempts_reached"
	CodeScheduleNotFound   Code = "schedule_not_found"
	CodeKeyTaken           Code = "key_taken" // by another task, or by one that was removed
	CodeStepsUnfinished    Code = "steps_unfinished"
	CodeNotEmpty           Code = "cluster_not_empty"
	CodeMembershipRefused  Code = "membership_refused"
)

// Reason says more of a refusal, above all why a task is task_not_claimable: its
// status, if that is not pending, or what else holds it back. The values are the
// contract's.
type Reason string

// The reasons for which a pending task cannot be claimed by its id.
const (
	ReasonGroupBehind  Reason = "group_behind"  // behind its group's head
	ReasonLimitReached Reason = "limit_reached" // its type's max_claimed
	ReasonRateLimited  Reason = "rate_limited"  // its type's rate_limit
)

// More reasons for which a call about a parent or a step is refused.
const (
	ReasonNoSteps     Reason = "no_steps"     // task_not_claimable: only a parent is finalized
	ReasonStep        Reason = "step"         // task_not_terminal: a step is deleted with its parent
	ReasonParentEnded Reason = "parent_ended" // of a retry of a step, with the code of the parent's end
	// ReasonDependencyEnded is of a retry of a step, with the code of the end of the
	// step that it depends on and that has not completed.
	ReasonDependencyEnded Reason = "dependency_ended"
	// ReasonCancelRequested is of a retry of steps, with CodeTaskCancelled and the claimed
	// step that was asked to stop, whose end would cancel them again.
	ReasonCancelRequested Reason = "cancel_requested"
)

// ReasonReach is of an op, with CodeInvalidRequest: with what it reaches, its batch
// could change more than 10,000 tasks. Answers do not show it.
const ReasonReach Reason = "reach"

// Result is the outcome of one command. It is the same on every node.
type Result struct {
	// Code is "" if the command was accepted; then the fields below say what
	// it did.
	Code Code
	// Reason says more of some codes; the values name them.
	Reason Reason
	// Repeated is true if an earlier command had done the same already.
	Repeated bool
	// Task is a copy of the one task that the command is about, as it is
	// after the command; of a refusal, the task that stood against it. nil if
	// there is none.
	Task *record.Task
	// Gone is true if the task was removed since it ended: then Task has its
	// id, key, status, worker and token, and nothing else is known.
	Gone bool
	// Submitted has one element per task of a Submit, of a Complete with
	// follow-ups, also of one that was refused for them, and of a RunSchedules, whose
	// slots may be passed over.
	Submitted []Submitted
	// Claims has what a ClaimNext, ClaimTask or Complete took, or took the
	// first time if Repeated.
	Claims []Claim
	// ClaimsRepeated is true of a Complete, itself no repeat, whose claim had
	// been answered before: some of Claims may have ended.
	ClaimsRepeated bool
	// Type is what a SetType made of the type.
	Type *TypeView
	// Defaults are what counts after a SetDefaults.
	Defaults *InForce
	// Results has one element per op of a Batch, nil if it was atomic and
	// refused; then FailedOp is the place of the op that was.
	Results  []Result
	FailedOp int
	// Parent is what a command about a parent, or about its finalization, answers
	// beside; else nil.
	Parent *ParentAnswer
	// Schedule is what a SetSchedule made, Created whether it was new.
	Schedule *record.ScheduleView
	Created  bool
	// JoinToken is what a SetJoinToken made.
	JoinToken *record.JoinToken
	// Acted is how many tasks an Act changed.
	Acted int
	// Evicted is how many tasks an Evict removed.
	Evicted int
	// Forgotten is how many removed tasks and claim requests a Forget forgot before
	// their time.
	Forgotten int
	// Expired is how many claims an Expire ended.
	Expired int
}

// Submitted is the outcome of one task of a Submit.
type Submitted struct {
	Task        *record.Task // a copy; the task that has the key if not Created; empty if Refused
	Created     bool
	SameRequest bool // not Created: whether type and parameters are the same
	Gone        bool // as in Result
	// Refused says that the task was not added: it, or the step in Step, would expire
	// before its delay is over.
	Refused bool
	Step    int // the step's place among the task's, -1 = the task itself
}

// Claim is one task of a claim's answer.
type Claim struct {
	Task record.Task // a copy, as it is now
	// Token is the token that this claim got: Task.Token may be a later one.
	Token uint64
	// Live is false if the claim has ended since (a repeated answer).
	Live bool
}

// Applied is what one entry did.
type Applied struct {
	Index   uint64
	Stamp   record.Stamp // the state's clocks after the entry
	Results []Result     // one per command, in order
	// Leases are the claims that the entry began, for the leader's timers.
	// Extends are not listed: a timer that runs out looks the lease up.
	Leases []command.Lease
	// Ready are the types of which the entry made tasks claimable, each once,
	// for those who wait for one.
	Ready []ReadyTasks
	// Requeued is how many tasks came back to pending, or to scheduled, and
	// Removed how many were removed by retention or eviction: for metrics.
	Requeued, Removed int
	Tally             Tally
	// Ended are the tasks that the entry ended or removed, in that order, for
	// those who wait for it. One may be there twice.
	Ended []uint64
	// Events is true if the entry added to the trail.
	Events bool
	// Checkpoint is true if the entry held a Checkpoint.
	Checkpoint bool
	// Restored is true if a RestoreEnd of the entry replaced the state: nothing that
	// was known of tasks before holds.
	Restored bool
	// Release gives back the memory of the results. Apply leaves it nil.
	Release func()
}

// Tally counts what an entry did to tasks, for metrics. What an atomic batch took
// back is not in it.
type Tally struct {
	Submitted                    int // new tasks, those of schedules too
	Completed, Failed, Cancelled int // tasks that ended so; Failed: for good
	SlotsRun, SlotsSkipped       int // slots of schedules that gave a task, that were passed over
}

// ReadyTasks says how many tasks of a type became claimable.
type ReadyTasks = claimable.Ready
