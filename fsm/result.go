package fsm

// Code says why a command was refused. "" means that it was not. The values
// are the contract's stable codes.
type Code string

// The refusals. They are results, equal on every node, never errors.
const (
	CodeInvalidRequest     Code = "invalid_request" // a claim_request_id used again for another request
	CodeTaskNotFound       Code = "task_not_found"
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
)

// Result is what became of one command. It is the same on every node.
type Result struct {
	// Code is "" if the command was accepted; then the fields below say what
	// it did.
	Code Code
	// Repeated is true if an earlier command had done the same already.
	Repeated bool
	// Task is a copy of the one task that the command is about, as it is
	// after the command; of a refusal, the task that stood against it. nil if
	// there is none.
	Task *Task
	// Submitted has one element per task of a Submit.
	Submitted []Submitted
	// Claims has what a ClaimNext or ClaimTask took, or took the first time
	// if Repeated.
	Claims []Claim
	// Expired is how many claims an Expire ended.
	Expired int
}

// Submitted is what became of one task of a Submit.
type Submitted struct {
	Task        *Task // a copy; the task that has the key if not Created
	Created     bool
	SameRequest bool // not Created: whether type and parameters are the same
}

// Claim is one task of a claim's answer.
type Claim struct {
	Task Task // a copy, as it is now
	// Token is the token that this claim got: Task.Token may be a later one.
	Token uint64
	// Live is false if the claim has ended since (a repeated answer).
	Live bool
}

// Applied is what one entry did.
type Applied struct {
	Index   uint64
	Stamp   Stamp    // the state's clocks after the entry
	Results []Result // one per command, in order
	// Leases are the claims that the entry began, for the leader's timers.
	// Extends are not listed: a timer that runs out looks the lease up.
	Leases []Lease
	// Checkpoint is true if the entry held a Checkpoint.
	Checkpoint bool
}
