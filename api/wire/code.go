package wire

// Code is a stable error code of the contract.
type Code string

// The codes of the server's answers.
const (
	CodeInvalidRequest      Code = "invalid_request"
	CodeInvalidTask         Code = "invalid_task"
	CodeInvalidWorkerID     Code = "invalid_worker_id"
	CodeUnauthorized        Code = "unauthorized"
	CodeForbidden           Code = "forbidden"
	CodeTaskNotFound        Code = "task_not_found"
	CodeNoPendingTasks      Code = "no_pending_tasks"
	CodeScheduleNotFound    Code = "schedule_not_found"
	CodeNotFound            Code = "not_found"
	CodeMethodNotAllowed    Code = "method_not_allowed"
	CodeTaskAlreadyClaimed  Code = "task_already_claimed"
	CodeTaskNotClaimed      Code = "task_not_claimed"
	CodeTaskNotClaimable    Code = "task_not_claimable"
	CodeWrongWorker         Code = "wrong_worker"
	CodeStaleClaim          Code = "stale_claim"
	CodeTaskCompleted       Code = "task_completed"
	CodeTaskFailed          Code = "task_failed"
	CodeTaskCancelled       Code = "task_cancelled"
	CodeTaskNotTerminal     Code = "task_not_terminal"
	CodeMaxAttemptsReached  Code = "max_attempts_reached"
	CodeStepsUnfinished     Code = "steps_unfinished"
	CodeCountMismatch       Code = "count_mismatch"
	CodeKeyTaken            Code = "key_taken"
	CodeClusterNotEmpty     Code = "cluster_not_empty"
	CodeMembershipRefused   Code = "membership_refused"
	CodePlaceAhead          Code = "place_ahead"
	CodeEventsGone          Code = "events_gone"
	CodePayloadTooLarge     Code = "payload_too_large"
	CodeUnsupportedEncoding Code = "unsupported_encoding"
	CodeRateLimited         Code = "rate_limited"
	CodeHeadersTooLarge     Code = "headers_too_large"
	CodeInternal            Code = "internal"
	CodeOverloaded          Code = "overloaded"
	CodeNoLeader            Code = "no_leader"
	CodeShuttingDown        Code = "shutting_down"
	CodeOutcomeUnknown      Code = "outcome_unknown"
)

// statuses maps a code to its HTTP status.
var statuses = map[Code]int{
	CodeInvalidRequest: 400, CodeInvalidTask: 400, CodeInvalidWorkerID: 400,
	CodeUnauthorized: 401, CodeForbidden: 403,
	CodeTaskNotFound: 404, CodeNoPendingTasks: 404, CodeScheduleNotFound: 404, CodeNotFound: 404,
	CodeMethodNotAllowed:   405,
	CodeTaskAlreadyClaimed: 409, CodeTaskNotClaimed: 409, CodeTaskNotClaimable: 409, CodeWrongWorker: 409,
	CodeStaleClaim: 409, CodeTaskCompleted: 409, CodeTaskFailed: 409, CodeTaskCancelled: 409,
	CodeTaskNotTerminal: 409, CodeMaxAttemptsReached: 409, CodeStepsUnfinished: 409, CodeCountMismatch: 409,
	CodeKeyTaken: 409, CodeClusterNotEmpty: 409, CodeMembershipRefused: 409, CodePlaceAhead: 409,
	CodeEventsGone: 410, CodePayloadTooLarge: 413, CodeUnsupportedEncoding: 415, CodeRateLimited: 429, CodeHeadersTooLarge: 431, CodeInternal: 500,
	CodeOverloaded: 503, CodeNoLeader: 503, CodeShuttingDown: 503,
	CodeOutcomeUnknown: 504,
}

// Status returns the HTTP status of the code, 0 for an unknown code.
func (c Code) Status() int { return statuses[c] }
