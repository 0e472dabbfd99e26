package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// Code says why a command was refused, or is "" if it was accepted. The values are stable
// codes of the API.
type Code string

// The codes of refusals. A refusal is a result, the same on every node, and never an error.
const (
	CodeInvalidRequest     Code = "invalid_request" // a claim_request_id reused for another request; a batch that changes too much
	CodeInvalidTask        Code = "invalid_task"    // the elements of Submitted that are Refused
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
	CodeKeyTaken           Code = "key_taken" // by another task, or one that was removed recently
	CodeStepsUnfinished    Code = "steps_unfinished"
	CodeNotEmpty           Code = "cluster_not_empty"
	CodeMembershipRefused  Code = "membership_refused"
)

// Reason details a refusal, mostly why a task is task_not_claimable: its status if that is
// not pending, or what else holds it back. The values are part of the API.
type Reason string

// The reasons why a pending task cannot be claimed by its id.
const (
	ReasonGroupBehind       Reason = "group_behind"        // its group's head comes first
	ReasonLimitReached      Reason = "limit_reached"       // its type's max_claimed
	ReasonRateLimited       Reason = "rate_limited"        // its type's rate_limit
	ReasonShareLimitReached Reason = "share_limit_reached" // its share's max_claimed, or its type's max_claimed_per_key
	ReasonShareRateLimited  Reason = "share_rate_limited"  // its share's rate_limit, or its type's rate_limit_per_key
)

// The reasons why calls about parents and steps are refused.
const (
	ReasonNoSteps     Reason = "no_steps"     // task_not_claimable: only parents can be finalized
	ReasonStep        Reason = "step"         // task_not_terminal: steps are deleted with their parent
	ReasonParentEnded Reason = "parent_ended" // retry of a step, with the code of the parent's end
	// ReasonDependencyEnded refuses the retry of a step, with the code of the end of a step
	// that it depends on and that did not complete.
	ReasonDependencyEnded Reason = "dependency_ended"
	// ReasonCancelRequested refuses the retry of steps with CodeTaskCancelled and a claimed
	// step that was asked to stop, because its end would cancel them again.
	ReasonCancelRequested Reason = "cancel_requested"
)

// The reasons why steps are not added.
const (
	ReasonNoParent     Reason = "no_parent"      // task_not_claimable: the claimed task is no step
	ReasonStepTaken    Reason = "step_taken"     // invalid_task: the name is another step's
	ReasonNoStep       Reason = "no_step"        // invalid_task: a step that one is to depend on is not there
	ReasonTooManySteps Reason = "too_many_steps" // invalid_task: the parent would have more than 1,000, or they name too much
)

// ReasonNoSignal refuses a signal for a task that needs none, with CodeTaskNotClaimable.
const ReasonNoSignal Reason = "no_signal"

// ReasonMovedOn refuses the retry of a task that goes on as a copy, its dead letter or where a move
// took it, with the code of its end.
const ReasonMovedOn Reason = "moved_on"

// ReasonReach refuses an op with CodeInvalidRequest, because its batch could change more
// than 10,000 tasks. Answers do not show it.
const ReasonReach Reason = "reach"

// Result is the outcome of one command. It is the same on every node.
type Result struct {
	// Code is "" if the command was accepted. Then the fields below describe what it did.
	Code Code
	// Reason details some codes; the Reason constants name them.
	Reason Reason
	// Repeated is true if an earlier command had already done the same.
	Repeated bool
	// Task is a copy of the one task that the command is about, in its state after the
	// command. For a refusal it is the task that caused it. nil if it concerns no task.
	Task *record.Task
	// Gone is true if the task was removed after its end. Then Task has only its id, key,
	// status, worker and token.
	Gone bool
	// Submitted has one element per task of a Submit or a Complete with follow-ups, even if
	// these caused a refusal, and one per step of an AddSteps. A RunSchedules has elements only
	// for the slots that were not skipped.
	Submitted []Submitted
	// Claims has the claims of a ClaimNext, ClaimTask or Complete, or those of the first
	// time if Repeated.
	Claims []Claim
	// ClaimsRepeated is true if a Complete is no repeat but its claim is. Then some of
	// Claims may have ended.
	ClaimsRepeated bool
	// Type is the type after a SetType or a MoveTasks.
	Type *TypeView
	// Share is the share after a SetShare.
	Share *ShareView
	// Defaults are the values in force after a SetDefaults.
	Defaults *InForce
	// Results has one element per op of a Batch. It is nil if an atomic batch was refused;
	// then FailedOp is the index of the refused op.
	Results  []Result
	FailedOp int
	// Parent has further results of a command about a parent or its finalization, else nil.
	Parent *ParentAnswer
	// Schedule is the schedule after a SetSchedule, and Created whether it is new.
	Schedule *record.ScheduleView
	Created  bool
	// JoinToken is the token of a SetJoinToken.
	JoinToken *record.JoinToken
	// Acted counts the tasks changed by an Act.
	Acted int
	// Evicted counts the tasks removed by an Evict.
	Evicted int
	// Forgotten counts the removed tasks and claim requests that a Forget forgot before
	// their time.
	Forgotten int
	// Expired counts the claims ended by an Expire.
	Expired int
}

// ShareView describes one share to callers.
type ShareView struct {
	Key      string
	Settings record.ShareSettings
	Pending  int64 // tasks that are pending, without those behind others of their group
	Claimed  int64
	State    index.ShareState
	OpensAt  int64 // by T: when its rate limit lets a claim through; 0 = now
	// OldestWaitMS is how long the oldest of its pending tasks has waited, as in TypeView.
	OldestWaitMS int64
}

// WaitingShares sums up the shares of a type that have claimable tasks, as of the last entry.
type WaitingShares struct {
	ByState [index.ShareStates]int
	// OldestWaitMS is the wait of the oldest task that could be claimed if its type had no limits, 0 without
	// such a task. The tasks without share key are one more share, always open.
	OldestWaitMS int64
}

// Submitted is the outcome of one task of a Submit.
type Submitted struct {
	Task        *record.Task // a copy; if not Created, the task that has the key; if Refused, empty
	Created     bool
	SameRequest bool // if not Created: type and parameters are the same
	Replaced    bool // the task waited with the key, and has what was submitted now
	Gone        bool // as in Result
	// Refused says that the task was not added, because it or the step in Step would expire
	// before its delay is over.
	Refused bool
	Step    int // index of the task's step, -1 = the task itself
}

// Claim is one claimed task in an answer.
type Claim struct {
	Task *record.Task // a copy of its current state
	// Token is the token of this claim; Task.Token may be a later one.
	Token uint64
	// Live is false if the claim has ended since, in a repeated answer.
	Live bool
}

// Applied describes what one entry did.
type Applied struct {
	Index   uint64
	Stamp   record.Stamp // the state's clocks after the entry
	Results []Result     // one per command, in order
	// Leases are the claims that the entry began, for the leader's timers, and those that it
	// shortened. Other extends are not included, because a timer that fires looks up the lease.
	Leases []command.Lease
	// Ready lists the types whose tasks the entry made claimable, each once, so that
	// waiting claims can be woken.
	Ready []ReadyTasks
	// Requeued counts the tasks that became pending or scheduled again, and Removed those
	// removed by retention or eviction, for metrics.
	Requeued, Removed int
	Tally             Tally
	// Ended are the tasks that the entry ended or removed, in order and possibly twice, so
	// that callers waiting for them can be woken.
	Ended []uint64
	// Events is true if the entry added to the trail.
	Events bool
	// Checkpoint is true if the entry contained a Checkpoint.
	Checkpoint bool
	// Restored is true if a RestoreEnd in the entry replaced the state. Anything remembered
	// about tasks is then out of date.
	Restored bool
	// Release gives the memory of the results back. Apply leaves it nil.
	Release func()
}

// Tally counts what an entry did to tasks, for metrics, without what an atomic batch took
// back.
type Tally struct {
	Submitted                    int // new tasks, including those of schedules
	Completed, Failed, Cancelled int // tasks that ended with this status
	SlotsRun, SlotsSkipped       int // slots that submitted a task; slots that were skipped
}

// ReadyTasks says how many tasks of a type became claimable.
type ReadyTasks = index.Ready

// ParentAnswer is the part of an answer about a parent that is not in its task. Each
// command sets only some of the fields.
type ParentAnswer struct {
	// Step and Name say why an AddSteps was refused: the index of the step, and for
	// ReasonNoStep the name that it depends on.
	Step int
	Name string

	// Steps are the steps after the command, in the plan's order: for a Submit of one task
	// and for commands about one task, if it has steps.
	Steps []StepView

	// For ClaimFinalization, ExtendFinalization and ReleaseFinalization:

	Outcome record.FinalizationOutcome // of a claim
	Done    bool                       // extended, or released
	Holder  string                     // who holds the claim now, or ""
	Token   uint64                     // of a new or extended claim, else 0
	State   record.FinalizationState

	// AlreadyFinalized is true if a Finalize came after the parent had ended; Result.Task
	// says how.
	AlreadyFinalized bool
}

// StepView is the current state of a step. Its fixed properties are in the parent's plan.
type StepView struct {
	Type   string
	Status record.Status
	Error  string // its last failure
}

// TypeView is the public view of a task type.
type TypeView struct {
	Type     string
	Counts   [record.StatusCancelled + 1]int64 // by Status
	Settings record.TypeSettings
	Move     *record.Move // the last one of its tasks, or nil
	// OldestPendingAgeMS is the age of the oldest pending task, or 0.
	OldestPendingAgeMS int64
	// OldestWaitMS is how long this task has waited to be claimed, since it last became pending or
	// was changed while pending.
	OldestWaitMS int64
	// OldestPending is this task's id, or 0.
	OldestPending uint64
	// Tasks submitted, completed and failed, in millionths per second over the last minute, by T.
	// They are not part of the state, and so not in results: counting restarts after a restart or
	// a restore.
	SubmittedPerS, CompletedPerS, FailedPerS int64
}

// InForce has the values that apply to a task: its own, else its type's, else the server's, else
// those built into the feature level.
type InForce struct {
	MaxAttempts int32           // 0 = no limit. A task has its own from its submit on
	LeaseMS     int64           // of a claim that names none
	Backoff     *record.Backoff // nil = none
	// How long the task is kept after completing and after failing: above 0, KeepForever or
	// KeepNone.
	RetentionMS, FailedRetentionMS int64
}

// refusalOf returns the refusal of an op of an atomic batch. A claim that finds nothing
// counts as refused.
func refusalOf(op command.Command, result Result) (refusal Result, refused bool) {
	switch op.(type) {
	case command.ClaimNext, *command.ClaimNext:
		if result.Code == "" && len(result.Claims) == 0 {
			return Result{Code: CodeNoPendingTasks}, true
		}
	}
	return Result{Code: result.Code, Reason: result.Reason, Task: result.Task, Gone: result.Gone, Submitted: result.Submitted}, result.Code != ""
}

// endedCode returns why nothing more can happen to an ended task.
func endedCode(s record.Status) Code {
	switch s {
	case record.StatusCompleted:
		return CodeTaskCompleted
	case record.StatusFailed:
		return CodeTaskFailed
	}
	return CodeTaskCancelled
}
