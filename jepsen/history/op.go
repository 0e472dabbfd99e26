package history

import (
	"slices"
	"time"
)

// Kind says what a call does.
type Kind string

// The kinds of calls.
const (
	Submit    Kind = "submit"
	Claim     Kind = "claim"      // claim-next
	ClaimTask Kind = "claim_task" // claim by id
	Complete  Kind = "complete"
	Fail      Kind = "fail"
	Extend    Kind = "extend"
	Release   Kind = "release"
	AddSteps  Kind = "steps" // by the claim of a step, to its parent
	Retry     Kind = "retry"
	Delete    Kind = "delete"
	Cancel    Kind = "cancel"
	// Act is Retry, Cancel or Delete, as given by Action, for every task of TaskType, and of Status
	// if it is set.
	Act     Kind = "act"
	Get     Kind = "get"
	List    Kind = "list"
	SetType Kind = "set_type" // a type's max_claimed, its pause, or that it is fair
	// SetShare sets the weight and max_claimed of the share ShareKey of TaskType.
	SetShare Kind = "set_share"

	ClaimFinalization   Kind = "claim_finalization"
	ExtendFinalization  Kind = "extend_finalization"
	ReleaseFinalization Kind = "release_finalization"
	Finalize            Kind = "finalize"
)

// Outcome says what the caller knows about a call.
type Outcome string

// The outcomes.
const (
	// OK is an answer that the call was done, or the result of a read.
	OK Outcome = "ok"
	// Failed is an answer that the call was not done. Nothing was changed.
	Failed Outcome = "fail"
	// Unknown is no answer, or one that says that the outcome is unknown: the call may take effect
	// at any time after it was made, or never.
	Unknown Outcome = "unknown"
)

// Op is one HTTP call as one caller saw it. A call that names several tasks
// (a submit of many, a claim with a limit) is one op per task with the same
// process and call time; so are a complete, what it submits and what it claims.
type Op struct {
	// Process is the caller; it makes one call after the other.
	Process int  `json:"p"`
	Kind    Kind `json:"k"`
	// Call and Return are nanoseconds of the recorder's monotonic clock. Call is taken before the
	// first byte is sent, Return after the last was read or when the caller gave up.
	Call   int64 `json:"call"`
	Return int64 `json:"ret"`

	Outcome Outcome `json:"out"`
	Code    string  `json:"code,omitempty"` // of a refusal, or why it is unknown
	Node    string  `json:"node,omitempty"` // that the caller asked

	// TaskID is the requested task, or the task in the answer to a submit or claim. 0 = not known.
	TaskID uint64 `json:"task,omitempty"`
	// Token is the claim token sent, or the token in the answer to a claim.
	Token uint64 `json:"tok,omitempty"`
	// RequestID is the claim_request_id, or that of the claim in a complete without one: a repeated
	// complete has the same.
	RequestID string `json:"req,omitempty"`
	Worker    string `json:"w,omitempty"`
	Key       string `json:"key,omitempty"`    // idempotency key sent
	Params    string `json:"params,omitempty"` // sent by a submit, as JSON
	Result    string `json:"result,omitempty"` // sent by a complete, as JSON

	// Selectors: the type and priority of a submit; the types (none = any) and the order of a
	// claim; the status and type (none = any) of a list.
	TaskType string   `json:"type,omitempty"`
	Priority int32    `json:"prio,omitempty"`
	Types    []string `json:"types,omitempty"`
	SortBy   string   `json:"sort,omitempty"`   // "" = priority, else created_at
	Status   string   `json:"status,omitempty"` // of a list
	Desc     bool     `json:"desc,omitempty"`   // of a list: the newest first

	// Group is the group of a submit's task. WaitMS bounds the wait of a claim for a task, or of a
	// read for the end of its task. DelayMS is the time for which the task of a submit or a release
	// cannot be claimed (it is shown as pending). MaxClaimed is the value that a set_type sets,
	// unless it sets Paused or Fair.
	Group      string `json:"group,omitempty"`
	WaitMS     int64  `json:"wait,omitempty"`
	DelayMS    int64  `json:"delay,omitempty"`
	MaxClaimed int32  `json:"max_claimed,omitempty"`
	Paused     *bool  `json:"paused,omitempty"`
	Fair       bool   `json:"fair,omitempty"`
	ShareKey   string `json:"share,omitempty"`  // of a submit's task, or of a set_share
	Weight     int32  `json:"weight,omitempty"` // that a set_share sets; 0 = the default

	// Count is the number of tasks that an act has changed according to its answer. More says that
	// it has not done them all.
	Count int64 `json:"count,omitempty"`

	// Plan holds the steps of a submit's task, nil if it has none, and those that an add_steps adds.
	Plan *Plan `json:"plan,omitempty"`
	// Added is the answer to an add_steps.
	Added *Added `json:"added,omitempty"`

	// In calls about a finalization Worker is the processor and LeaseMS the timeout. A successful
	// answer says whether it was Done: claimed (then Token is its claim's), extended, released, or
	// finalized by this call. Holder is the current holder of the claim, State the state of the
	// parent, Action how it ended. Goal is the outcome that a finalize requests. In an act, Action
	// says what it does.
	Done   bool   `json:"done,omitempty"`
	Holder string `json:"holder,omitempty"`
	State  string `json:"state,omitempty"`
	Action string `json:"action,omitempty"`
	Goal   string `json:"goal,omitempty"`

	Limit       int   `json:"limit,omitempty"`        // of a claim or list: tasks requested; 0 = one
	LeaseMS     int64 `json:"lease,omitempty"`        // requested by a claim or extend; 0 = the server's
	MaxAttempts int32 `json:"max_attempts,omitempty"` // of a submit, 0 = no limit; of a retry: how many more

	Created  bool `json:"created,omitempty"`  // in a submit's answer
	Repeated bool `json:"repeated,omitempty"` // the answer says that it was done before
	Stale    bool `json:"stale,omitempty"`    // a read from the node's own state

	// Whole says that this op and the others of its call (the same process and call time) are done
	// atomically. Their idempotency keys are not used by other submits.
	Whole bool `json:"whole,omitempty"`

	// Index is the log index of the answer, 0 if it had none.
	Index uint64 `json:"index,omitempty"`
	// MinIndex is the index that a read required of its node.
	MinIndex uint64 `json:"min,omitempty"`
	// Seen is the task in the answer, nil if it had none.
	Seen *Task `json:"seen,omitempty"`
	// Listed is the first page of a list, More says whether another one follows.
	Listed []Task `json:"listed,omitempty"`
	More   bool   `json:"more,omitempty"`
}

// Task is a task in an answer.
type Task struct {
	ID       uint64 `json:"id"`
	Key      string `json:"key,omitempty"`
	Status   string `json:"status"`
	Token    uint64 `json:"tok,omitempty"` // 0 = null
	Attempts int32  `json:"attempts"`
	Worker   string `json:"w,omitempty"`
	Params   string `json:"params,omitempty"` // as JSON, "" if the answer has none
	Result   string `json:"result,omitempty"` // as JSON
	Type     string `json:"type,omitempty"`
	Priority int32  `json:"prio,omitempty"`
	Group    string `json:"group,omitempty"`
	ShareKey string `json:"share,omitempty"`
	// Cancelling says that its cancel was requested.
	Cancelling bool `json:"cancelling,omitempty"`

	ParentID uint64 `json:"parent,omitempty"` // of a step
	// Steps are the statuses of a parent's steps in the plan's order, if they are in the answer.
	Steps []string `json:"steps,omitempty"`
}

// Added says which ids the steps have that were to be added to a parent.
type Added struct {
	ParentID uint64   `json:"parent"`
	IDs      []uint64 `json:"ids"`
}

// Plan describes the submitted steps of a parent. The id of the step at place i is the
// parent's + 1 + i.
type Plan struct {
	Steps    []Step `json:"steps"`
	ByClaim  bool   `json:"by_claim,omitempty"` // a processor ends it
	Continue bool   `json:"continue,omitempty"` // a step that fails cancels only those that depend on it
}

// Step is a step of a plan.
type Step struct {
	Name        string `json:"name"`
	DependsOn   []int  `json:"on,omitempty"`           // places
	MaxAttempts int32  `json:"max_attempts,omitempty"` // 0 = no limit
}

// Event is something that was done to the cluster, or happened to it.
type Event struct {
	At   int64  `json:"at"` // ns of the recorder's clock
	Text string `json:"text"`
	// Kind is set if a check or a picture needs it.
	Kind  EventKind `json:"kind,omitempty"`
	Fault string    `json:"fault,omitempty"` // of Injected, Healed
	Node  string    `json:"node,omitempty"`  // of Exited
	Code  int       `json:"code,omitempty"`  // of Exited
}

// EventKind says what an event means.
type EventKind string

// The kinds of events.
const (
	Injected EventKind = "injected" // a fault begins
	Healed   EventKind = "healed"   // it was undone: what it ended was started again
	// Exited is the end of a process without a fault or a stop that asked for it, or with another
	// exit code than a stop's.
	Exited EventKind = "exited"
	// LoadEnded is the return of the workload's last caller.
	LoadEnded EventKind = "load-ended"
	// Garbled is an answer to a heavy read that was neither the requested data nor a refusal that
	// says to ask later, Unanswered a heavy read without an answer.
	Garbled    EventKind = "garbled"
	Unanswered EventKind = "unanswered"
	// Leaked is an answer to a tenant that contains a mark of another caller.
	Leaked EventKind = "leaked"
)

// Final is the state read after all calls had returned.
type Final struct {
	Call   int64  `json:"call"` // before the first page was requested
	Return int64  `json:"ret"`  // after the last was read
	Tasks  []Task `json:"tasks"`
}

// History is a run.
type History struct {
	Seed   int64
	Run    *Run // nil for a history that was made by hand
	Ops    []Op
	Events []Event
	// Samples are the figures that each node reported about itself, in the order of the requests.
	Samples []Sample
	// Dumps are the contents of each node at the end, by its own state.
	Dumps []Dump
	// Trail is the trail at the end, from the first node of Dumps.
	Trail []Told
	// Final is nil if the state was not read at the end.
	Final *Final
}

// Changes reports whether the op is an acknowledged call that changes something.
func (o *Op) Changes() bool {
	return o.Outcome == OK && o.Kind != Get && o.Kind != List && (o.Kind != Claim || o.TaskID != 0)
}

// Over returns the time when the fault injected by event i was over, or never if no event says so.
func (h *History) Over(i int, never int64) int64 {
	for n := range h.Events[i:] {
		if e := &h.Events[i+n]; e.Kind == Healed && e.Fault == h.Events[i].Fault {
			return e.At
		}
	}
	return never
}

// Span is a part of the run.
type Span struct{ From, To int64 }

// Standstills returns the spans of at least that length in which no change was acknowledged.
func (h *History) Standstills(least time.Duration) []Span {
	var done []int64
	for i := range h.Ops {
		if h.Ops[i].Changes() {
			done = append(done, h.Ops[i].Return)
		}
	}
	slices.Sort(done)
	var still []Span
	for n := 1; n < len(done); n++ {
		if done[n]-done[n-1] >= int64(least) {
			still = append(still, Span{done[n-1], done[n]})
		}
	}
	return still
}

// UnknownCount returns the number of ops with an unknown outcome.
func (h *History) UnknownCount() int {
	count := 0
	for i := range h.Ops {
		if h.Ops[i].Outcome == Unknown {
			count++
		}
	}
	return count
}
