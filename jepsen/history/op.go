package history

import (
	"slices"
	"time"
)

// Kind is what a call does.
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
	Retry     Kind = "retry"
	Delete    Kind = "delete"
	Cancel    Kind = "cancel"
	// Act is Retry, Cancel or Delete, by Action, with every task of TaskType, and of
	// Status if it is set.
	Act     Kind = "act"
	Get     Kind = "get"
	List    Kind = "list"
	SetType Kind = "set_type" // a type's max_claimed, or whether it is paused

	ClaimFinalization   Kind = "claim_finalization"
	ExtendFinalization  Kind = "extend_finalization"
	ReleaseFinalization Kind = "release_finalization"
	Finalize            Kind = "finalize"
)

// Outcome is what the caller knows of a call.
type Outcome string

// The outcomes.
const (
	// OK is an answer that says it was done, or what was read.
	OK Outcome = "ok"
	// Failed is an answer that says it was not done. Nothing was changed.
	Failed Outcome = "fail"
	// Unknown is no answer, or one that says that the outcome is not known: the
	// call may take effect at any time after it was made, or never.
	Unknown Outcome = "unknown"
)

// Op is one HTTP call as one caller saw it. A call that names several tasks
// (a submit of many, a claim with a limit) is one op per task with the same
// process and call time; so are a complete, what it submits and what it claims.
type Op struct {
	// Process is who called; a process makes one call after the other.
	Process int  `json:"p"`
	Kind    Kind `json:"k"`
	// Call and Return are nanoseconds of the recorder's monotonic clock. Call is
	// taken before the first byte is sent, Return after the last was read or the
	// caller gave up.
	Call   int64 `json:"call"`
	Return int64 `json:"ret"`

	Outcome Outcome `json:"out"`
	Code    string  `json:"code,omitempty"` // of a refusal, or why it is unknown
	Node    string  `json:"node,omitempty"` // that was asked

	// TaskID is the task asked for, or, of a submit or claim, the answer's. 0 =
	// none is known.
	TaskID uint64 `json:"task,omitempty"`
	// Token is the claim token sent, or, of a claim, the answer's.
	Token uint64 `json:"tok,omitempty"`
	// RequestID is the claim_request_id, or that of a claim in a complete without one: it is
	// the same claim whenever the complete is repeated.
	RequestID string `json:"req,omitempty"`
	Worker    string `json:"w,omitempty"`
	Key       string `json:"key,omitempty"`    // idempotency key sent
	Params    string `json:"params,omitempty"` // sent by a submit, as JSON
	Result    string `json:"result,omitempty"` // sent by a complete, as JSON

	// What chooses: the type and priority of a submit; the types (none = any) and
	// the order of a claim; the status and type (none = any) of a list.
	TaskType string   `json:"type,omitempty"`
	Priority int32    `json:"prio,omitempty"`
	Types    []string `json:"types,omitempty"`
	SortBy   string   `json:"sort,omitempty"`   // "" = priority, else created_at
	Status   string   `json:"status,omitempty"` // of a list
	Desc     bool     `json:"desc,omitempty"`   // of a list: the newest first

	// Group is the group of a submit's task, WaitMS how long a claim waits at most
	// for a task, and a read for the end of its task, DelayMS how long the task of a submit or a release is not to be
	// claimed (it is shown as pending), MaxClaimed what a set_type sets, unless it sets Paused.
	Group      string `json:"group,omitempty"`
	WaitMS     int64  `json:"wait,omitempty"`
	DelayMS    int64  `json:"delay,omitempty"`
	MaxClaimed int32  `json:"max_claimed,omitempty"`
	Paused     *bool  `json:"paused,omitempty"`

	// Count is how many tasks the answer to an act says that it has changed. More says
	// there that it has not done them all.
	Count int64 `json:"count,omitempty"`

	// Plan is what a submit's task has of steps, nil if it has none.
	Plan *Plan `json:"plan,omitempty"`

	// Of calls about a finalization Worker is the processor and LeaseMS the
	// timeout. An answer that is OK says whether it was Done: claimed (then Token
	// is its claim's), extended, released, or finalized by this call. Holder is who
	// it says has the claim, State how far the parent is, Action how it ended.
	// Goal is the outcome that a finalize asks for. Of an act Action is what it does.
	Done   bool   `json:"done,omitempty"`
	Holder string `json:"holder,omitempty"`
	State  string `json:"state,omitempty"`
	Action string `json:"action,omitempty"`
	Goal   string `json:"goal,omitempty"`

	Limit       int   `json:"limit,omitempty"`        // of a claim or list: tasks asked for; 0 = one
	LeaseMS     int64 `json:"lease,omitempty"`        // asked for by a claim or extend; 0 = the server's
	MaxAttempts int32 `json:"max_attempts,omitempty"` // of a submit, 0 = no limit; of a retry: how many more

	Created  bool `json:"created,omitempty"`  // a submit's answer
	Repeated bool `json:"repeated,omitempty"` // the answer says that it was done before
	Stale    bool `json:"stale,omitempty"`    // a read that asked for what the node has

	// Whole says that this op and the others of its call (the same process and call
	// time) are done in one step: all of them or none. Nothing else submits the keys
	// that it submits.
	Whole bool `json:"whole,omitempty"`

	// Index is the log index of the answer, 0 if it named none.
	Index uint64 `json:"index,omitempty"`
	// MinIndex is the index that a read asked its node to have reached.
	MinIndex uint64 `json:"min,omitempty"`
	// Seen is the task as the answer showed it, nil if it did not.
	Seen *Task `json:"seen,omitempty"`
	// Listed is the first page of a list, More whether another one follows.
	Listed []Task `json:"listed,omitempty"`
	More   bool   `json:"more,omitempty"`
}

// Task is a task as an answer showed it.
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
	// Cancelling says that its cancel was asked for.
	Cancelling bool `json:"cancelling,omitempty"`

	ParentID uint64 `json:"parent,omitempty"` // of a step
	// Steps are the statuses of a parent's steps in the plan's order, where the answer has
	// them.
	Steps []string `json:"steps,omitempty"`
}

// Plan is the steps of a parent as they were submitted. The id of the step at
// place i is the parent's + 1 + i.
type Plan struct {
	Steps    []Step `json:"steps"`
	ByClaim  bool   `json:"by_claim,omitempty"` // a processor ends it
	Continue bool   `json:"continue,omitempty"` // a step that fails cancels only what depends on it
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
	// Kind is set where a check or a picture needs to know.
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
	// Exited is a process that ended although no fault and no stop asked for it, or not as a stop ends.
	Exited EventKind = "exited"
	// LoadEnded is when the last caller of the workload had returned.
	LoadEnded EventKind = "load-ended"
	// Garbled is an answer to a heavy read that was neither what was asked for nor a refusal
	// that says to ask later, Unanswered a heavy read without an answer.
	Garbled    EventKind = "garbled"
	Unanswered EventKind = "unanswered"
	// Leaked is an answer to a tenant that has a mark of another caller in it.
	Leaked EventKind = "leaked"
)

// Final is the state read after all calls had returned.
type Final struct {
	Call   int64  `json:"call"` // before the first page was asked for
	Return int64  `json:"ret"`  // after the last was read
	Tasks  []Task `json:"tasks"`
}

// History is a run.
type History struct {
	Seed   int64
	Run    *Run // nil of a history that was made by hand
	Ops    []Op
	Events []Event
	// Samples are what each node said of itself, in the order of being asked.
	Samples []Sample
	// Dumps are what each node holds at the end, by its own state.
	Dumps []Dump
	// Trail is the trail at the end, as the first node of Dumps has it.
	Trail []Told
	// Final is nil if the state was not read at the end.
	Final *Final
}

// Changes reports whether the op is an acknowledged call that changes something.
func (o *Op) Changes() bool {
	return o.Outcome == OK && o.Kind != Get && o.Kind != List && (o.Kind != Claim || o.TaskID != 0)
}

// Over returns when the fault was over that event i says was injected, never if no event
// says so.
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

// Standstills returns the spans, of that length at least, in which nothing was acknowledged
// that changes anything.
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

// UnknownCount returns how many ops have an unknown outcome.
func (h *History) UnknownCount() int {
	count := 0
	for i := range h.Ops {
		if h.Ops[i].Outcome == Unknown {
			count++
		}
	}
	return count
}
