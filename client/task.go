package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/claimq/claimq/api/wire"
)

// DefaultAttempts in Task.MaxAttempts stands for the server's default, 3.
const DefaultAttempts = -1

// Task is a task, as it is submitted and as it is read. The fields from Status
// on are the server's; Submit ignores them, and ID.
type Task struct {
	ID string // decimal digits
	// IdempotencyKey lets the server recognize a repeated submit. 1 to 256
	// bytes; "": Submit makes a random one.
	IdempotencyKey string
	TaskType       string // "" is "default"
	// Payload is the work's parameters, at least one byte. JSON travels as
	// params, so that others can read it, other bytes as payload; the same
	// bytes come back.
	Payload  []byte
	Priority int // int32; higher is claimed first
	// MaxAttempts is how many claims are counted before the task fails for
	// good. 0 is no limit. DefaultAttempts: the server's default.
	MaxAttempts int
	// Lease is how long claims of this task last that do not ask for another
	// length: 100 ms to 24 h. 0: the server's default, 30 s.
	Lease time.Duration

	Status   TaskStatus
	Attempts int // counted claims so far
	// ClaimedBy is the worker that holds the claim; of a completed or failed
	// task the one that ended it; else "".
	ClaimedBy   string
	Error       string // of the last failure; kept after a later success
	Result      []byte // as given to Complete
	CreatedAt   time.Time
	ClaimedAt   *time.Time // of the last claim
	CompletedAt *time.Time // of the end, whatever it was
	// AttemptsLog is the last 20 claims, oldest first; only Get has it.
	AttemptsLog []Attempt
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

// NewTask returns a task with params as JSON and DefaultAttempts. Errors: what
// json.Marshal returns.
func NewTask[P any](taskType string, params P) (Task, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(params); err != nil {
		return Task{}, fmt.Errorf("encode params: %w", err)
	}
	payload := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	return Task{TaskType: taskType, Payload: payload, MaxAttempts: DefaultAttempts}, nil
}

// encode returns the task's JSON as submitted, with key in place of its own
// idempotency key if that is empty.
func (t *Task) encode(key string) ([]byte, error) {
	switch {
	case len(t.Payload) == 0:
		return nil, fmt.Errorf("%w: the payload is empty", ErrInvalidTask)
	case t.Priority < math.MinInt32 || t.Priority > math.MaxInt32:
		return nil, fmt.Errorf("%w: priority %d is not an int32", ErrInvalidTask, t.Priority)
	case t.MaxAttempts < DefaultAttempts || t.MaxAttempts > math.MaxInt32:
		return nil, fmt.Errorf("%w: max attempts %d", ErrInvalidTask, t.MaxAttempts)
	case t.Lease < 0:
		return nil, fmt.Errorf("%w: lease %v is negative", ErrInvalidTask, t.Lease)
	case !utf8.ValidString(t.IdempotencyKey) || !utf8.ValidString(t.TaskType):
		// The encoder would replace bytes, and make two keys one.
		return nil, fmt.Errorf("%w: key or type is not UTF-8", ErrInvalidTask)
	}
	if t.IdempotencyKey != "" {
		key = t.IdempotencyKey
	}
	n := wire.NewTask{
		TaskType: t.TaskType, Priority: int32(t.Priority), IdempotencyKey: key, LeaseMS: milliseconds(t.Lease),
	}
	if t.MaxAttempts != DefaultAttempts {
		attempts := int32(t.MaxAttempts)
		n.MaxAttempts = &attempts
	}
	if travelsAsJSON(t.Payload) {
		return withRaw("params", t.Payload, n)
	}
	n.Payload = t.Payload
	return json.Marshal(n)
}

// milliseconds rounds up, so that only 0 is 0.
func milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

// fromWire makes the server's task ours. It keeps w's byte slices.
func fromWire(w *wire.Task) *Task {
	t := &Task{
		ID: strconv.FormatUint(w.ID, 10), IdempotencyKey: w.IdempotencyKey, TaskType: w.TaskType,
		Payload: either(w.Params, w.Payload), Priority: int(w.Priority), MaxAttempts: int(w.MaxAttempts),
		Lease: time.Duration(w.LeaseMS) * time.Millisecond, Status: TaskStatus(w.Status), Attempts: int(w.Attempts),
		Error: w.Error, Result: either(w.Result, w.ResultPayload),
		CreatedAt: w.CreatedAt, ClaimedAt: w.ClaimedAt, CompletedAt: w.CompletedAt,
	}
	if w.WorkerID != nil {
		t.ClaimedBy = *w.WorkerID
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
