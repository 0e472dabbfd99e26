// Package refuse represents failed calls: their codes, texts and details, and how they are appended. Codes with a
// fixed text have it in one table. Refusals of the state machine and errors of the node are worded only here. A
// Refusal belongs to one request, and may be changed until it is appended.
package refuse

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Refusal is a failed call before it is encoded: the contract's error body.
type Refusal struct {
	Code   wire.Code
	Text   string // error: what happened
	Advice string // message: what to do
	Field  string // JSON path of the invalid field, "" if none is
	// Syntax says that the rest of the body cannot be read, so that the request is refused as a whole.
	Syntax bool
	// Task is the task that conflicts with the command, or nil.
	Task *fsm.Task
	// Reason says why that task cannot be claimed, or what is full; "" otherwise.
	Reason fsm.Reason
	// holder is the conflicting party, if it is not that task's worker.
	holder string
	// Details are further fields of the body, as JSON, each preceded by a comma.
	Details string
}

// New returns a refusal with what happened and what to do.
func New(code wire.Code, text, advice string) *Refusal {
	return &Refusal{Code: code, Text: text, Advice: advice}
}

// At sets the invalid field, and returns the refusal.
func (r *Refusal) At(field string) *Refusal {
	r.Field = field
	return r
}

// phrase is the fixed text of a code.
type phrase struct{ text, Advice string }

// Phrases has the codes with a fixed text.
var Phrases = map[wire.Code]phrase{
	wire.CodeTaskNotFound:       {"Task not found", "Check the id or the key: there is no such task, or it was deleted"},
	wire.CodeNoPendingTasks:     {"No pending tasks available", "No pending tasks available"},
	wire.CodeScheduleNotFound:   {"Schedule not found", "Check the name: there is no such schedule, or it was deleted"},
	wire.CodeNotFound:           {"No such path", "Check the path: docs/api.md lists the calls of this server"},
	wire.CodeMethodNotAllowed:   {"Method not allowed", "Use one of the methods in the Allow header"},
	wire.CodeTaskAlreadyClaimed: {"Task already claimed by another worker", "Race condition detected, please retry"},
	wire.CodeTaskNotClaimed:     {"Task is not claimed", "Claim the task first; its claim has ended or never began"},
	wire.CodeTaskNotClaimable:   {"Task cannot be claimed now", "Wait until what reason names has passed"},
	wire.CodeWrongWorker:        {"Task is claimed by another worker", "Stop working on this task: only the worker that holds its claim may change it"},
	wire.CodeStaleClaim:         {"Claim is no longer valid", "Stop working on this task: its claim has ended, and the next worker that claims it does it again"},
	wire.CodeTaskCompleted:      {"Task is already completed", "Nothing is left to do: the task has its result"},
	wire.CodeTaskFailed:         {"Task has already failed", "Retry the task if it is to run again"},
	wire.CodeTaskCancelled:      {"Task is cancelled", "Retry the task if it is to run again"},
	wire.CodeTaskNotTerminal:    {"Task has not ended", "Wait until the task is completed, failed or cancelled, then delete it"},
	wire.CodeStepsUnfinished:    {"The task has steps that have not ended", "Wait until all of its steps have ended, then finalize it"},
	wire.CodeKeyTaken:           {"The idempotency_key is taken by another task", "Retry this one once the task in task_id no longer has the key"},
	wire.CodeCountMismatch:      {"The filter does not match as many tasks as expected", "Nothing was done: check the filter, then send matched as expect"},
	wire.CodeEventsGone:         {"The events asked for are kept no more", "Go on without a place: oldest is the first that is kept"},
	wire.CodePlaceAhead:         {"The trail has not come to this place", "Go on behind a place of this cluster: place is where its trail is. Yours is another cluster's, or of a state that was lost"},
	wire.CodeMaxAttemptsReached: {"Maximum attempts reached", "Send add_attempts to raise max_attempts"},
	wire.CodeInternal:           {"Internal server error", "Report this with its request_id: the server's log has the reason"},
	wire.CodeOverloaded:         {"The server is overloaded", "Nothing was written: repeat the request after the time in Retry-After"},
	wire.CodeNoLeader:           {"The cluster has no leader", "Nothing was written: repeat the request after the time in Retry-After"},
	wire.CodeShuttingDown:       {"The server is shutting down", "Nothing was written: repeat the request at another node"},
	wire.CodeOutcomeUnknown:     {"The outcome is unknown", "The command may still be applied: repeat it with the same idempotency_key, claim_request_id or claim_token"},
}

const (
	// AdviceField is the advice for an invalid field.
	AdviceField = "Correct the field and send the request again"
	// AdviceSyntax is the advice for a body that is not valid JSON.
	AdviceSyntax = "Send one JSON object in UTF-8, each field at most once"
)

// RetryAfterS is the Retry-After header of answers after which nothing was written, because a new leader is elected
// in about a second.
const RetryAfterS = "1"

// Because returns the refusal of a code, with the code's fixed text if it has one.
func Because(code wire.Code) *Refusal {
	p := Phrases[code]
	return &Refusal{Code: code, Text: p.text, Advice: p.Advice}
}

// Overloaded returns the refusal of something that there is no room for; bound names what is full, "" if that has no
// name.
func Overloaded(bound nodes.Bound, text string) *Refusal {
	f := Because(wire.CodeOverloaded)
	f.Text, f.Reason = text, fsm.Reason(bound)
	return f
}

// Result returns the refusal of cmd that the state machine decided.
func Result(cmd command.Command, res fsm.Result) *Refusal {
	switch {
	case res.Reason == fsm.ReasonReach:
		return reach()
	case res.Code == fsm.CodeInvalidRequest:
		return invalid(cmd)
	case res.Code == fsm.CodeInvalidTask && res.Parent != nil:
		return notAdded(res.Reason, res.Parent)
	case res.Code == fsm.CodeInvalidTask:
		return neverClaimable(cmd, res.Submitted)
	}
	r := Because(wire.Code(res.Code))
	r.Task, r.Reason = res.Task, res.Reason
	if _, ok := cmd.(command.Finalize); ok {
		finalize(r, &res)
	} else {
		family(r, cmd)
	}
	return r
}

// neverClaimable refuses a command whose task, or a follow-up, could never be claimed.
func neverClaimable(cmd command.Command, submitted []fsm.Submitted) *Refusal {
	i := slices.IndexFunc(submitted, func(s fsm.Submitted) bool { return s.Refused })
	within := ""
	if _, ok := cmd.(command.Complete); ok {
		within = "submit[" + strconv.Itoa(i) + "]."
	}
	return Task(&submitted[i], within)
}

// Task refuses a task that could never be claimed. within is the path of the task followed by a dot, "" if it is the
// whole body.
func Task(s *fsm.Submitted, within string) *Refusal {
	if s.Step >= 0 {
		within += "steps[" + strconv.Itoa(s.Step) + "]."
	}
	return New(wire.CodeInvalidTask, "expires_at is not after the end of delay_ms: the task could never be claimed",
		"Send an expires_at after the end of the delay, or leave it out").At(within + "expires_at")
}

// notAdded refuses steps that the parent cannot have.
func notAdded(reason fsm.Reason, why *fsm.ParentAnswer) *Refusal {
	within := "steps[" + strconv.Itoa(why.Step) + "]."
	switch reason {
	case fsm.ReasonStepTaken:
		return New(wire.CodeInvalidTask, "Invalid "+within+"step: the parent has another step of that name",
			"Send the step as it was added, or another name").At(within + "step")
	case fsm.ReasonNoStep:
		return New(wire.CodeInvalidTask, "Invalid "+within+"depends_on: no step is named "+why.Name, AdviceField).At(within + "depends_on")
	}
	return New(wire.CodeInvalidTask, "Invalid steps: with them the parent would have more than "+strconv.Itoa(fsm.StepsMax)+" steps, or more than 8 MiB of names in them and in depends_on",
		"Add fewer steps, or submit them as a task of their own").At("steps")
}

// invalid refuses a command that the state machine found malformed.
func invalid(cmd command.Command) *Refusal {
	f := New(wire.CodeInvalidRequest, "The claim_request_id was used before for another request",
		"Use a new claim_request_id, or repeat the request with the same worker, task types and order").At("claim_request_id")
	switch cmd.(type) {
	case command.Complete:
		f.Field = "claim." + f.Field
	case command.SetType:
		return New(wire.CodeInvalidRequest, "Too many task types have settings",
			"Clear the settings of types that are no longer used, by null in each field")
	case command.SetShare:
		return New(wire.CodeInvalidRequest, "10000 shares have settings already", "Delete the settings of shares that are no longer used")
	case command.SetSchedule:
		return New(wire.CodeInvalidRequest, "There are too many schedules", "Delete the schedules that are no longer used: there may be 10,000")
	}
	return f
}

// reach refuses an op that would make its batch change too many tasks.
func reach() *Refusal {
	return New(wire.CodeInvalidRequest, "The ops before it and the steps that it reaches are more than "+strconv.Itoa(wire.ChangesMax)+" tasks",
		"Send it in another batch").At("ops")
}

// Level refuses something that the cluster's feature level does not have.
func Level() *Refusal {
	return New(wire.CodeInvalidRequest, "The cluster's feature level is too low for this request",
		"Once all nodes run the new version, run claimq cluster upgrade --finalize")
}

// Param refuses something outside of the body.
func Param(field, text string) *Refusal {
	return &Refusal{Code: wire.CodeInvalidRequest, Text: text, Advice: AdviceField, Field: field}
}

// TooLarge refuses the size of field; "" means the body.
func TooLarge(field, text string) *Refusal {
	return &Refusal{Code: wire.CodePayloadTooLarge, Text: text, Advice: "Send less, or keep the data elsewhere and send where it is", Field: field}
}

// CodeOf maps an error of the node to the code of the answer. mutation says whether something may have been written.
// CodeInternal stands for unexpected errors.
func CodeOf(err error, mutation bool) wire.Code {
	unwritten := errors.Is(err, nodes.ErrNoLeader) && !errors.Is(err, nodes.ErrOutcomeUnknown)
	switch {
	case mutation && unwritten: // even if the time was over meanwhile
		return wire.CodeNoLeader
	case errors.Is(err, nodes.ErrOutcomeUnknown), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		if mutation {
			return wire.CodeOutcomeUnknown
		}
		return wire.CodeOverloaded
	case errors.Is(err, nodes.ErrNotLeader), errors.Is(err, nodes.ErrNoLeader):
		return wire.CodeNoLeader
	case errors.Is(err, nodes.ErrOverloaded):
		return wire.CodeOverloaded
	case errors.Is(err, nodes.ErrShuttingDown):
		return wire.CodeShuttingDown
	case errors.Is(err, nodes.ErrTooLarge):
		return wire.CodePayloadTooLarge
	case errors.Is(err, nodes.ErrLevel):
		return wire.CodeInvalidRequest
	}
	return wire.CodeInternal
}

// family words a refusal where the code's fixed text does not fit because the task has steps, or is one.
func family(r *Refusal, cmd command.Command) {
	_, patches := cmd.(command.Patch)
	_, retries := cmd.(command.Retry)
	_, adds := cmd.(command.AddSteps)
	running := r.Task != nil && r.Task.Status == fsm.StatusRunning
	switch {
	case r.Reason == fsm.ReasonNoParent:
		r.Text, r.Advice = "The task is no step", "Add steps with the claim of a step of the task that is to have them"
	case adds && r.Reason == fsm.ReasonCancelRequested:
		r.Text, r.Advice = "The step is being cancelled, and adds no steps", "End it: fail or complete the task"
	case r.Reason == fsm.ReasonMovedOn:
		r.Advice = "It goes on as the task in its moved_to_id"
	case r.Reason == fsm.ReasonNoSignal:
		r.Text, r.Advice = "The task needs no signal", "Submit it with wait_for_signal_ms, if it is to wait for one"
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
		r.Advice = "Retry once that step, in task_id, has ended: it does when its worker obeys, at its lease's end, or by a retry of that step"
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

// AlreadyFinalizing is the text of an answer about a task that a processor is finalizing already. A claim that comes too
// late is told the same without being refused.
const AlreadyFinalizing = "Task already claimed for finalization"

// finalize words the refusal of a finalize. The conflicting party is the one that has the claim.
func finalize(f *Refusal, res *fsm.Result) {
	if res.Parent != nil {
		f.holder = res.Parent.Holder
	}
	switch f.Code {
	case wire.CodeTaskNotClaimable:
		f.Text, f.Advice = "Task has no steps", "Settle it as any task: only a task with steps is finalized"
	case wire.CodeTaskAlreadyClaimed:
		f.Text, f.Advice = AlreadyFinalizing, "Leave it to the processor in worker_id, or wait until its claim has ended"
	}
}

// Append appends the body of a failed call: the contract's fields, then any details.
func Append(b []byte, f *Refusal, requestID []byte) []byte {
	b = AppendOpen(b, f, requestID)
	return append(b, '}')
}

// AppendOpen is Append without the closing brace.
func AppendOpen(b []byte, f *Refusal, requestID []byte) []byte {
	b = jsonout.StringField(b, `{"success":false,"error":`, f.Text)
	b = jsonout.WordField(b, `,"code":`, f.Code)
	b = jsonout.StringField(b, `,"message":`, f.Advice)
	b = jsonout.StringField(b, `,"request_id":`, requestID)
	if f.Field != "" {
		b = jsonout.StringField(b, `,"field":`, f.Field)
	}
	if f.Task != nil {
		b = appendTask(b, f)
	}
	if f.Reason != "" {
		b = jsonout.StringField(b, `,"reason":`, f.Reason)
	}
	return append(b, f.Details...)
}

// appendTask appends what conflicts with a command: the task's status and its holder.
func appendTask(b []byte, f *Refusal) []byte {
	t, holder := f.Task, f.holder
	if holder == "" {
		holder = t.WorkerID
	}
	b = jsonout.UintField(b, `,"task_id":`, t.ID)
	b = jsonout.WordField(b, `,"status":`, t.Status.String())
	b = jsonout.StringOrNull(b, `,"worker_id":`, holder)
	if f.Code == wire.CodeMaxAttemptsReached {
		b = jsonout.IntField(b, `,"attempts":`, int64(t.Attempts))
		b = jsonout.IntField(b, `,"max_attempts":`, int64(t.MaxAttempts))
	}
	return b
}
