package client

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/hotjson"
)

// NoDelay in Task.Delay lets the task be claimed at once, even if its type has a delay.
const NoDelay = time.Duration(-1)

// Special values of Task.Retention.
const (
	KeepForever = time.Duration(-1) // until it is deleted
	KeepNone    = time.Duration(-2) // removed as soon as it ends
)

// UniqueActive in Task.Unique frees the idempotency key as soon as the task ends, UniqueWindow when Task.UniqueFor has
// passed since its submit. UniqueReplace is UniqueActive, and if a task of the type waits with the key, that task gets
// the new payload, RunAt and ExpiresAt.
const (
	UniqueActive  = "active"
	UniqueReplace = "replace"
	UniqueWindow  = "window"
)

// Task is a task, as submitted and as read. The server sets ID and the fields from Status on; Submit ignores them.
type Task struct {
	ID string // decimal digits
	// IdempotencyKey lets the server recognize a repeated submit. 1 to 256 bytes; "": Submit makes a random one.
	IdempotencyKey string
	TaskType       string // "" is "default"
	// Payload holds the parameters of the work, at least one byte; a task with Steps may have none. JSON is sent as
	// params, so that it stays readable in the API; other bytes are sent as payload. Reading returns the same bytes.
	Payload []byte
	// Binary sends Payload as payload even if it happens to be JSON, because workers in other languages see params and
	// payload as different fields. In a task that is read it says that the task has a payload, not params.
	Binary   bool
	Priority int // int32; tasks with a higher one are claimed first
	// MaxAttempts limits the counted claims of a task before it fails for good. 0: the type's setting, else the
	// server's, 10 in a new cluster; a task that is read has the resulting value. UnlimitedAttempts: no limit.
	MaxAttempts int
	// RunAt is the earliest time the task can be claimed. Zero: at once. In a task that is read it is the time that
	// the task waits for or last waited for.
	RunAt time.Time
	// Delay keeps the task from being claimed for a time after its submit, up to 365 days; with it RunAt must be zero.
	// 0: the type's setting, else none; NoDelay: none. Of tasks that are read only those of schedules have it.
	Delay time.Duration
	// ExpiresAt is the deadline for the first claim; after it the task fails. Zero: none.
	ExpiresAt time.Time
	// ExpiresAgain lets the task fail also if it waits at ExpiresAt, or later, after a claim.
	ExpiresAgain bool
	// Lease sets how long a claim of this task lasts unless it asks for another length: 100 ms to 24 h. 0: the type's
	// setting, else the server's default, 30 s.
	Lease time.Duration
	// Retention sets how long the task is kept after its end, or KeepForever or KeepNone. 0: the type's setting, else
	// the server's default, 24 h, and 14 days if it failed.
	Retention time.Duration
	// Backoff sets how long the task waits after an attempt that failed or expired. nil: the type's setting, else the
	// server's default, in a new cluster 1 s, doubled up to 1 h.
	Backoff *Backoff
	// Labels are up to 16 names with values, up to 64 bytes each; names must not contain a colon. Filter.Labels
	// selects tasks by them.
	Labels map[string]string
	// Group makes the tasks of one type and group run one at a time, in the order of their submits. Up to 128 bytes;
	// "": none.
	Group string
	// ShareKey names the share of the type's tasks that this one belongs to, a tenant for example. The type's
	// MaxClaimedPerKey applies to each, and they take turns if it is Fair. Up to 128 bytes; "": none.
	ShareKey string
	// WaitForSignal blocks the task until Client.Signal hands it a signal; without one it fails after this time, up to
	// 365 days. For a step the time begins when the last step that it depends on has completed. Signal is the signal
	// that it was handed, JSON or nil; Signalled says that it was handed one, and SignalUntil when a waiting task
	// fails.
	WaitForSignal time.Duration
	Signal        []byte
	Signalled     bool
	SignalUntil   time.Time
	// Unique says how long the idempotency key stays taken: while the task exists (""), until it ends (UniqueActive),
	// or for UniqueFor after the submit, whether or not the task still exists (UniqueWindow). UniqueReplace is only for
	// a task to submit, which then has UniqueActive. UniqueFor requires UniqueWindow, and is up to a day.
	Unique    string
	UniqueFor time.Duration
	// Steps make the task a parent: it is not claimed itself, its steps are claimed as separate tasks, and it
	// ends with them. Up to 1,000, without cycles. A parent may have no Payload. It cannot have RunAt, ExpiresAt,
	// Group or ShareKey; its steps can. Only Get, GetByIdempotencyKey and calls that change one task return them.
	Steps []Step
	// Finalize says how a parent ends: FinalizeAuto (the same as "") or FinalizeClaim.
	Finalize string
	// OnStepFailure says what happens to the other steps if one fails or is cancelled: FailOnStepFailure (the same as
	// "") or ContinueOnStepFailure.
	OnStepFailure string

	Status   TaskStatus
	Attempts int // counted claims so far
	// ClaimedBy is the worker that holds the claim, or that completed or failed the task; else "".
	ClaimedBy string
	Error     string // of the last failure; kept after a later success
	Result    []byte // as given to Complete
	// ResultBinary says that Result is bytes, not JSON.
	ResultBinary bool
	Progress     []byte // JSON, as last given to Extend
	// CancelRequested is true for a claimed task after a cancel was requested.
	CancelRequested bool
	CreatedAt       time.Time
	ClaimedAt       *time.Time // time of the last claim
	CompletedAt     *time.Time // time of the end, whatever the outcome
	// AttemptsLog lists the last 20 claims, oldest first; only Get returns it.
	AttemptsLog []Attempt
	// InForce are the settings that apply to the task; only Get returns them.
	InForce *InForce
	// Attributes is a JSON object that describes the payload. Workers get it unchanged. nil: none.
	Attributes []byte
	// OriginID and OriginType are the id and type of the task that this dead letter is a copy of; "" if it is not a
	// dead letter.
	OriginID, OriginType string
	// MovedToID is the copy that continues the task: the dead letter of a failed task, or the task that a move of dead
	// letters made of this one. A task with a copy cannot be retried. "": it has none.
	MovedToID string
	// Traceparent is the W3C trace context of the submit; "": none. Start the spans of the work in it.
	Traceparent string
	// ParentID is the task that this step belongs to, StepName its name there, and DependsOn names the steps that it
	// depends on. Empty if it is not a step.
	ParentID, StepName string
	DependsOn          []string
	// Dependencies has the results of the steps that this one depends on, by name, if the claim included them, nil if it
	// did not. DependenciesLeftOut names those that had no room: DependencyResults reads them.
	Dependencies        map[string][]byte
	DependenciesLeftOut []string
}

// LogValue implements slog.LogValuer: task_id, task_type and attempt, the number of its claims.
func (t *Task) LogValue() slog.Value {
	return slog.GroupValue(slog.String("task_id", t.ID), slog.String("task_type", t.TaskType), slog.Int("attempt", t.Attempts))
}

// Attempt is one claim in a task's log.
type Attempt struct {
	WorkerID  string
	Token     int64
	ClaimedAt time.Time
	EndedAt   *time.Time // nil while it lasts
	// Outcome is completed, failed, released, expired, retried or cancelled; "" while it lasts.
	Outcome string
	Error   string
}

// InForce holds the settings that apply to a task: its own, else its type's, else the server's.
type InForce struct {
	Lease     time.Duration // of a claim that does not ask for one; 0 for a parent, which is never claimed
	Backoff   *Backoff      // nil: none
	Retention time.Duration // as Task.Retention; 0 for a step, which is kept as long as its parent
}

// NewTask returns a task with params encoded as JSON. A []byte or json.RawMessage becomes the payload unchanged, as
// Handle passes it. Errors: as json.Marshal.
func NewTask[P any](taskType string, params P) (Task, error) {
	t := Task{TaskType: taskType}
	var err error
	switch p := any(params).(type) {
	case []byte:
		t.Payload = p
	case json.RawMessage:
		t.Payload = p
	default:
		if t.Payload, err = marshal(p); err != nil {
			return Task{}, fmt.Errorf("encode params: %w", err)
		}
	}
	return t, nil
}

// encode returns the task's JSON for a submit. key is used if the task has no idempotency key.
func (t *Task) encode(key string) ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidTask, err)
	}
	body, err := t.encodeFields(key)
	if err == nil && len(t.Steps) > 0 {
		var steps []byte
		steps, err = encodeSteps(t.Steps)
		body = hotjson.WithField("steps", steps, body)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidTask, err)
	}
	return body, nil
}

// taskBytes is the initial capacity for a task with short values, without its payload.
const taskBytes = 128

// encodeFields encodes a checked task without its steps.
func (t *Task) encodeFields(key string) ([]byte, error) {
	if t.IdempotencyKey != "" {
		key = t.IdempotencyKey
	}
	o := hotjson.Open(taskBytes + base64.StdEncoding.EncodedLen(len(t.Payload)))
	if !t.Binary && hotjson.RoundTrips(t.Payload) {
		o.Raw("params", t.Payload)
	} else {
		o.Bytes("payload", t.Payload)
	}
	o.Text("task_type", t.TaskType)
	o.Number("priority", int64(t.Priority))
	o.Pointer("max_attempts", wireAttempts(t.MaxAttempts))
	o.Text("idempotency_key", key)
	o.Text("unique", t.Unique)
	o.Number("unique_ms", milliseconds(t.UniqueFor))
	o.Value("run_at", !t.RunAt.IsZero(), wireTime(t.RunAt))
	o.Pointer("delay_ms", wireDelay(t.Delay))
	o.Value("expires_at", !t.ExpiresAt.IsZero(), wireTime(t.ExpiresAt))
	o.True("expires_again", t.ExpiresAgain)
	o.Number("lease_ms", milliseconds(t.Lease))
	o.Value("backoff", t.Backoff != nil, t.Backoff.wire())
	o.Pointer("retention_ms", wireRetention(t.Retention))
	o.Value("labels", len(t.Labels) > 0, t.Labels)
	o.Value("attributes", len(t.Attributes) > 0, json.RawMessage(t.Attributes))
	o.Text("group", t.Group)
	o.Text("share_key", t.ShareKey)
	o.Number("wait_for_signal_ms", milliseconds(t.WaitForSignal))
	o.Text("finalize", t.Finalize)
	o.Text("on_step_failure", t.OnStepFailure)
	return o.Close()
}

// check refuses values that the encoding would change. The server checks the rest.
func (t *Task) check() error {
	switch {
	case t.Steps != nil && len(t.Steps) == 0:
		return errors.New("its steps are empty, not nil")
	case len(t.Payload) == 0 && t.Steps == nil:
		return errors.New("the payload is empty")
	case t.Priority < math.MinInt32 || t.Priority > math.MaxInt32:
		return fmt.Errorf("priority %d is not an int32", t.Priority)
	case t.Lease < 0:
		return fmt.Errorf("lease %v is negative", t.Lease)
	case t.Delay < NoDelay:
		return fmt.Errorf("delay %v is negative", t.Delay)
	case t.Retention < KeepNone:
		return fmt.Errorf("retention %v is negative", t.Retention)
	}
	return errors.Join(checkAttempts(t.MaxAttempts), checkLabels(t.Labels), t.Backoff.check())
}

func checkLabels(labels map[string]string) error {
	for name, value := range labels {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return fmt.Errorf("label %q is not UTF-8", name)
		}
	}
	return nil
}

// wireTime rounds t up to the millisecond, so that a task does not run early. It returns nil for the zero time.
func wireTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	at := t.UTC().Truncate(time.Millisecond)
	if at.Before(t) {
		at = at.Add(time.Millisecond)
	}
	return &at
}

// wireDelay returns d for a request, nil for the type's setting.
func wireDelay(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	return new(milliseconds(d)) // of NoDelay it is 0
}

func delayFromWire(ms *int64) time.Duration {
	switch {
	case ms == nil:
		return 0
	case *ms == 0:
		return NoDelay
	}
	return time.Duration(*ms) * time.Millisecond
}

// wireRetention returns d for a request, nil for the default.
func wireRetention(d time.Duration) *int64 {
	switch d {
	case 0:
		return nil
	case KeepForever:
		return new(int64(-1))
	case KeepNone:
		return new(int64)
	}
	return new(milliseconds(d))
}

func retentionFromWire(ms *int64) time.Duration {
	switch {
	case ms == nil:
		return 0
	case *ms < 0:
		return KeepForever
	case *ms == 0:
		return KeepNone
	}
	return time.Duration(*ms) * time.Millisecond
}

// milliseconds rounds up, so that only 0 is 0.
func milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

// fromWire converts the server's task. The result shares only byte slices and maps with w.
func fromWire(w *wire.Task) *Task {
	t := &Task{}
	setFromWire(t, w)
	return t
}

// setFromWire is fromWire into memory of the caller.
func setFromWire(t *Task, w *wire.Task) {
	*t = Task{
		ID: strconv.FormatUint(w.ID, 10), IdempotencyKey: w.IdempotencyKey, TaskType: w.TaskType,
		Payload: either(w.Params, w.Payload), Binary: len(w.Payload) > 0, Priority: int(w.Priority), MaxAttempts: attemptsFromWire(w.MaxAttempts),
		Lease: time.Duration(w.LeaseMS) * time.Millisecond, Status: TaskStatus(w.Status), Attempts: int(w.Attempts),
		Retention: retentionFromWire(w.RetentionMS), Backoff: backoffFromWire(w.Backoff), Labels: w.Labels, Group: w.Group, ShareKey: w.ShareKey,
		WaitForSignal: time.Duration(w.SignalMS) * time.Millisecond, Signal: either(w.Signal, nil), Signalled: w.Signalled,
		Traceparent: w.Traceparent, Attributes: either(w.Attributes, nil),
		Steps: stepsFromWire(w.Steps), Finalize: w.Finalize, OnStepFailure: w.OnStepFailure,
		StepName: w.Step,
		Error:    w.Error, Result: either(w.Result, w.ResultPayload), ResultBinary: len(w.ResultPayload) > 0, Progress: either(w.Progress, nil), CancelRequested: w.CancelRequested,
		CreatedAt: w.CreatedAt, ClaimedAt: copied(w.ClaimedAt), CompletedAt: copied(w.CompletedAt),
	}
	if w.RunAt != nil {
		t.RunAt = *w.RunAt
	}
	if w.ExpiresAt != nil {
		t.ExpiresAt = *w.ExpiresAt
	}
	t.ExpiresAgain = w.ExpiresAgain
	if w.SignalUntil != nil {
		t.SignalUntil = *w.SignalUntil
	}
	if w.ParentID != 0 {
		t.ParentID = formatID(w.ParentID)
	}
	if w.Origin != nil {
		t.OriginID, t.OriginType = strconv.FormatUint(w.Origin.ID, 10), w.Origin.TaskType
	}
	if w.MovedToID != 0 {
		t.MovedToID = strconv.FormatUint(w.MovedToID, 10)
	}
	if len(w.DependsOn) > 0 {
		t.DependsOn = w.DependsOn
	}
	if w.Dependencies != nil {
		t.Dependencies = make(map[string][]byte, len(w.Dependencies))
		for name, s := range w.Dependencies {
			t.Dependencies[name] = either(s.Result, s.ResultPayload)
		}
	}
	t.DependenciesLeftOut = w.DependenciesLeftOut
	t.UniqueFor = time.Duration(w.UniqueMS) * time.Millisecond
	if w.Unique == UniqueActive || w.Unique == UniqueWindow {
		t.Unique = w.Unique
	}
	if w.WorkerID != nil {
		t.ClaimedBy = *w.WorkerID
	}
	if f := w.InForce; f != nil {
		t.InForce = &InForce{time.Duration(f.LeaseMS) * time.Millisecond, backoffFromWire(f.Backoff), retentionFromWire(f.RetentionMS)}
	}
	for _, a := range w.AttemptsLog {
		attempt := Attempt{
			WorkerID: a.WorkerID, Token: int64(a.ClaimToken), ClaimedAt: a.ClaimedAt, EndedAt: a.EndedAt, Error: a.Error,
		}
		if a.Outcome != nil {
			attempt.Outcome = *a.Outcome
		}
		t.AttemptsLog = append(t.AttemptsLog, attempt)
	}
}

// copied returns a pointer to a copy of *t, or nil.
func copied(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(*t)
}

// either returns the field that is set. A JSON null counts as absent.
func either(asJSON json.RawMessage, asBytes []byte) []byte {
	if len(asBytes) > 0 {
		return asBytes
	}
	if len(asJSON) == 0 || string(asJSON) == "null" {
		return nil
	}
	return asJSON
}

// idMax is the largest possible id. JSON readers that use floating point represent it exactly.
const idMax = 1<<53 - 1

// parseID returns the number of a task id. A malformed id is ErrTaskNotFound.
func parseID(taskID string) (uint64, error) {
	id, err := strconv.ParseUint(taskID, 10, 64)
	if err != nil || id == 0 || id > idMax || strconv.FormatUint(id, 10) != taskID {
		return 0, fmt.Errorf("%q is not a task id: %w", taskID, ErrTaskNotFound)
	}
	return id, nil
}

// TaskStatus is a task's state.
type TaskStatus string

// The statuses. The last three are final.
const (
	StatusPending   TaskStatus = "pending"   // can be claimed
	StatusScheduled TaskStatus = "scheduled" // waits for its time
	StatusBlocked   TaskStatus = "blocked"   // a step that waits for others
	StatusClaimed   TaskStatus = "claimed"   // held by a worker
	StatusRunning   TaskStatus = "running"   // a parent with unfinished steps
	StatusCompleted TaskStatus = "completed"
	StatusFailed    TaskStatus = "failed"
	StatusCancelled TaskStatus = "cancelled"
)

// Ended reports whether the status is final.
func (s TaskStatus) Ended() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// UnlimitedAttempts in Task.MaxAttempts and TypeSettings.MaxAttempts means no limit.
const UnlimitedAttempts = -1

// checkAttempts refuses an invalid limit of attempts.
func checkAttempts(n int) error {
	if n < UnlimitedAttempts || n > math.MaxInt32 {
		return fmt.Errorf("max attempts is %d: it must be 1 to %d, 0 for the default or %d for no limit", n, math.MaxInt32, UnlimitedAttempts)
	}
	return nil
}

// wireAttempts returns a limit of attempts for a request: nil is the default, 0 no limit.
func wireAttempts(n int) *int64 {
	switch n {
	case 0:
		return nil
	case UnlimitedAttempts:
		return new(int64)
	}
	return new(int64(n))
}

// attemptsFromWire converts the limit of a task or type that is read.
func attemptsFromWire(n int32) int {
	if n == 0 {
		return UnlimitedAttempts
	}
	return int(n)
}
