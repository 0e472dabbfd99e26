package client

import (
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
	"github.com/claimq/claimq/client/internal/hotwire"
)

// Special values of Task.Retention.
const (
	KeepForever = time.Duration(-1) // until it is deleted
	KeepNone    = time.Duration(-2) // gone as soon as it ends
)

// UniqueActive in Task.Unique frees the idempotency key as soon as the task
// ends.
const UniqueActive = "active"

// Task is a task, as it is submitted and as it is read. The fields from Status
// on are the server's; Submit ignores them, and ID.
type Task struct {
	ID string // decimal digits
	// IdempotencyKey lets the server recognize a repeated submit. 1 to 256
	// bytes; "": Submit makes a random one.
	IdempotencyKey string
	TaskType       string // "" is "default"
	// Payload is the work's parameters, at least one byte; a task with Steps may
	// have none. JSON travels as params, so that others can read it, other bytes as
	// payload; the same bytes come back.
	Payload  []byte
	Priority int // int32; higher is claimed first
	// MaxAttempts is how many claims are counted before the task fails for
	// good. 0: the type's, else the server's, 10 in a new cluster; as read it is what came of that.
	// UnlimitedAttempts: no limit.
	MaxAttempts int
	// RunAt is before when nobody can claim the task. Zero: at once. As read it
	// is what the task waits for, or last waited for.
	RunAt time.Time
	// ExpiresAt is by when the task has to be claimed first: else it fails. Zero:
	// never.
	ExpiresAt time.Time
	// Lease is how long claims of this task last that do not ask for another
	// length: 100 ms to 24 h. 0: the type's, else the server's default, 30 s.
	Lease time.Duration
	// Retention is how long the task is kept after its end. 0: the type's, else
	// the server's, 24 h, and 14 days if it failed. KeepForever, KeepNone.
	Retention time.Duration
	// Backoff is how long the task waits after an attempt that failed or expired.
	// nil: the type's, else the server's: 1 s, doubled up to 1 h, in a new cluster.
	Backoff *Backoff
	// Labels are up to 16 names with values, up to 64 bytes each; no colon in a
	// name. Lists can select by them.
	Labels map[string]string
	// Group makes the tasks of one type that have it run one at a time, in the
	// order of their submits. Up to 128 bytes; "": none.
	Group string
	// Unique is for how long the idempotency key is taken: "": while the task
	// exists; UniqueActive: only until it ends.
	Unique string
	// Steps make the task a parent: nobody claims it, its steps are claimed as tasks
	// of their own, and it ends with them. Up to 1,000, without cycles. A parent may
	// have no Payload; it has no RunAt, ExpiresAt and Group, which are its steps'.
	// As read only Get, GetByIdempotencyKey and what changes one task have them.
	Steps []Step
	// Finalize is how a parent ends: FinalizeAuto, which "" stands for, or
	// FinalizeClaim.
	Finalize string
	// OnStepFailure is what a step of the parent that failed or was cancelled means
	// for the others: FailOnStepFailure, which "" stands for, or
	// ContinueOnStepFailure.
	OnStepFailure string

	Status   TaskStatus
	Attempts int // counted claims so far
	// ClaimedBy is the worker that holds the claim; of a completed or failed
	// task the one that ended it; else "".
	ClaimedBy string
	Error     string // of the last failure; kept after a later success
	Result    []byte // as given to Complete
	Progress  []byte // JSON: the last that was given to Extend
	// CancelRequested is true of a claimed task of which somebody asked that it be
	// cancelled.
	CancelRequested bool
	CreatedAt       time.Time
	ClaimedAt       *time.Time // of the last claim
	CompletedAt     *time.Time // of the end, whatever it was
	// AttemptsLog is the last 20 claims, oldest first; only Get has it.
	AttemptsLog []Attempt
	// InForce is what counts for the task; only Get has it, else it is nil.
	InForce *InForce
	// Traceparent is the W3C trace context of the submit, "" = none: hand it to
	// what traces the work.
	Traceparent string
	// ParentID is the id of the task whose step this one is, StepName its name there
	// and DependsOn the names of those that it depends on. "" if it is no step.
	ParentID, StepName string
	DependsOn          []string
}

// LogValue is the task in a log: task_id, task_type and attempt, the number of its claims.
func (t *Task) LogValue() slog.Value {
	return slog.GroupValue(slog.String("task_id", t.ID), slog.String("task_type", t.TaskType), slog.Int("attempt", t.Attempts))
}

// Attempt is one claim in a task's log.
type Attempt struct {
	WorkerID  string
	Token     int64
	ClaimedAt time.Time
	EndedAt   *time.Time // nil while it lasts
	// Outcome is completed, failed, released, expired, retried or cancelled;
	// "" while it lasts.
	Outcome string
	Error   string
}

// InForce is what counts for a task: its own value, else its type's, else the server's.
type InForce struct {
	Lease     time.Duration // of a claim that asks for none; 0: nobody claims a parent
	Backoff   *Backoff      // nil: none
	Retention time.Duration // as Task.Retention; 0: a step is kept as long as its parent
}

// NewTask returns a task with params as JSON; a []byte or a json.RawMessage is its payload as
// it is, as Handle hands it over. Errors: what json.Marshal returns.
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

// encode returns the task's JSON as submitted, with key in place of its own
// idempotency key if that is empty.
func (t *Task) encode(key string) ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidTask, err)
	}
	body, err := t.encodeFields(key)
	if err != nil || len(t.Steps) == 0 {
		return body, err
	}
	steps, err := encodeSteps(t.Steps)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidTask, err)
	}
	return hotjson.WithField("steps", steps, body), nil
}

// encodeFields is encode of what was checked, without the steps.
func (t *Task) encodeFields(key string) ([]byte, error) {
	if t.IdempotencyKey != "" {
		key = t.IdempotencyKey
	}
	n := wire.NewTask{
		TaskType: t.TaskType, Priority: int32(t.Priority), MaxAttempts: wireAttempts(t.MaxAttempts), IdempotencyKey: key, Unique: t.Unique,
		RunAt: wireTime(t.RunAt), ExpiresAt: wireTime(t.ExpiresAt), LeaseMS: milliseconds(t.Lease),
		Backoff: t.Backoff.wire(), RetentionMS: wireRetention(t.Retention), Labels: t.Labels, Group: t.Group,
		Finalize: t.Finalize, OnStepFailure: t.OnStepFailure,
	}
	if hotjson.Travels(t.Payload) {
		n.Params = t.Payload
	} else {
		n.Payload = t.Payload
	}
	return hotwire.Task(&n)
}

// check refuses what would not reach the server as it is meant; the rest is the
// server's to refuse.
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
	case t.Retention < KeepNone:
		return fmt.Errorf("retention %v is negative", t.Retention)
	// The encoder would replace bytes that are not UTF-8, and make two keys one.
	case !utf8.ValidString(t.IdempotencyKey) || !utf8.ValidString(t.TaskType) || !utf8.ValidString(t.Group):
		return errors.New("key, type or group is not UTF-8")
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

// wireTime is t to the millisecond, rounded up: a task does not run early. nil
// for the zero time.
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

// wireRetention is d as it travels, nil for the default.
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

// fromWire makes the server's task ours. Of w's memory it keeps the byte slices and maps alone.
func fromWire(w *wire.Task) *Task {
	t := &Task{
		ID: strconv.FormatUint(w.ID, 10), IdempotencyKey: w.IdempotencyKey, TaskType: w.TaskType,
		Payload: either(w.Params, w.Payload), Priority: int(w.Priority), MaxAttempts: attemptsFromWire(w.MaxAttempts),
		Lease: time.Duration(w.LeaseMS) * time.Millisecond, Status: TaskStatus(w.Status), Attempts: int(w.Attempts),
		Retention: retentionFromWire(w.RetentionMS), Backoff: backoffFromWire(w.Backoff), Labels: w.Labels, Group: w.Group,
		Traceparent: w.Traceparent,
		Steps:       stepsFromWire(w.Steps), Finalize: w.Finalize, OnStepFailure: w.OnStepFailure,
		StepName: w.Step,
		Error:    w.Error, Result: either(w.Result, w.ResultPayload), Progress: either(w.Progress, nil), CancelRequested: w.CancelRequested,
		CreatedAt: w.CreatedAt, ClaimedAt: copied(w.ClaimedAt), CompletedAt: copied(w.CompletedAt),
	}
	if w.RunAt != nil {
		t.RunAt = *w.RunAt
	}
	if w.ExpiresAt != nil {
		t.ExpiresAt = *w.ExpiresAt
	}
	if w.ParentID != 0 {
		t.ParentID = formatID(w.ParentID)
	}
	if len(w.DependsOn) > 0 {
		t.DependsOn = w.DependsOn
	}
	if w.Unique == UniqueActive {
		t.Unique = UniqueActive
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
	return t
}

// copied returns a pointer of its own to what t points to, nil if t is.
func copied(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(*t)
}

// either returns the one that was sent. A JSON null is as absent.
func either(asJSON json.RawMessage, asBytes []byte) []byte {
	if len(asBytes) > 0 {
		return asBytes
	}
	if len(asJSON) == 0 || string(asJSON) == "null" {
		return nil
	}
	return asJSON
}

// idMax is the greatest id that there can be: JSON readers that know only
// floating point have to be able to hold it.
const idMax = 1<<53 - 1

// parseID returns the number of a task id. What is none names no task.
func parseID(taskID string) (uint64, error) {
	id, err := strconv.ParseUint(taskID, 10, 64)
	if err != nil || id == 0 || id > idMax || strconv.FormatUint(id, 10) != taskID {
		return 0, fmt.Errorf("%q is not a task id: %w", taskID, ErrTaskNotFound)
	}
	return id, nil
}

// TaskStatus is where a task is in its life.
type TaskStatus string

// The statuses. The last three are ends.
const (
	StatusPending   TaskStatus = "pending"   // can be claimed
	StatusScheduled TaskStatus = "scheduled" // waits for its time
	StatusBlocked   TaskStatus = "blocked"   // a step that waits for others
	StatusClaimed   TaskStatus = "claimed"   // a worker holds it
	StatusRunning   TaskStatus = "running"   // a parent whose steps go on
	StatusCompleted TaskStatus = "completed"
	StatusFailed    TaskStatus = "failed"
	StatusCancelled TaskStatus = "cancelled"
)

// Ended reports whether the status is an end.
func (s TaskStatus) Ended() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// UnlimitedAttempts in Task.MaxAttempts and TypeSettings.MaxAttempts is no limit.
const UnlimitedAttempts = -1

// checkAttempts refuses what is no limit of attempts.
func checkAttempts(n int) error {
	if n < UnlimitedAttempts || n > math.MaxInt32 {
		return fmt.Errorf("max attempts is %d: it must be 1 to %d, 0 for the default or %d for no limit", n, math.MaxInt32, UnlimitedAttempts)
	}
	return nil
}

// wireAttempts is a limit of attempts as it travels: nil is the default, and 0 no
// limit.
func wireAttempts(n int) *int32 {
	switch n {
	case 0:
		return nil
	case UnlimitedAttempts:
		return new(int32(0))
	}
	return new(int32(n))
}

// attemptsFromWire is the limit of a task or a type that is read.
func attemptsFromWire(n int32) int {
	if n == 0 {
		return UnlimitedAttempts
	}
	return int(n)
}
