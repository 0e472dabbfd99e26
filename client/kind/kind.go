package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/claimq/claimq/client"
)

// None is the result type of a kind whose tasks have no result.
type None struct{}

// An Option sets fields of tasks to submit: for all tasks of a kind (New), or for one (Kind.Task, Kind.Submit), which
// overrides the former. It cannot change the type and the payload, which the kind sets.
type Option func(*client.Task)

// Kind is a task type with parameters of type P and results of type R. It is safe for concurrent use.
type Kind[P, R any] struct {
	taskType string
	options  []Option
	unique   []field
}

// New returns the kind of the task type. The options set defaults for its tasks; for other fields the type's settings
// in the cluster apply, else the server's. P and R can be anything that encoding/json encodes and decodes; []byte and
// json.RawMessage are sent unchanged.
//
// New is meant for package variables, so it panics if a claimq tag of P is invalid: if it is not claimq:"unique", or
// the field has no name in JSON.
func New[P, R any](taskType string, options ...Option) *Kind[P, R] {
	unique, err := uniqueFields[P]()
	if err != nil {
		panic(fmt.Sprintf("claimq: kind %q: %v", taskType, err))
	}
	if taskType == "" {
		taskType = "default"
	}
	return &Kind[P, R]{taskType: taskType, options: options, unique: unique}
}

// Type returns the task type.
func (k *Kind[P, R]) Type() string { return k.taskType }

// Task returns a task of the kind, to be submitted with others (Client.SubmitMany), as a step, as a follow-up
// (Job.Then) or in a transaction (package outbox). Its idempotency key is made from its unique fields unless an
// option sets another. Errors: as json.Marshal.
func (k *Kind[P, R]) Task(params P, options ...Option) (client.Task, error) {
	made, err := client.NewTask(k.taskType, params)
	if err != nil {
		return client.Task{}, fmt.Errorf("task of kind %s: %w", k.taskType, err)
	}
	var t client.Task
	if len(k.unique) > 0 {
		if t.IdempotencyKey, err = uniqueKey(k.taskType, k.unique, params); err != nil {
			return client.Task{}, fmt.Errorf("task of kind %s: make its key: %w", k.taskType, err)
		}
	}
	for _, set := range k.options {
		set(&t)
	}
	for _, set := range options {
		set(&t)
	}
	t.TaskType, t.Payload = made.TaskType, made.Payload
	return t, nil
}

// Submitter is the part of a client that Submit needs. *client.Client implements it.
type Submitter interface {
	SubmitTask(ctx context.Context, task client.Task) (client.Submitted, error)
}

// Submit adds a task of the kind. Errors: as Task and Client.SubmitTask.
func (k *Kind[P, R]) Submit(ctx context.Context, c Submitter, params P, options ...Option) (client.Submitted, error) {
	t, err := k.Task(params, options...)
	if err != nil {
		return client.Submitted{}, err
	}
	return c.SubmitTask(ctx, t)
}

// Handle makes fn the worker's handler of the kind, as client.Handle does. The task is completed with the result of
// fn; if fn returns an error, that settles the attempt and the result is dropped. fn must not call Job.SetResult.
func (k *Kind[P, R]) Handle(w *client.Worker, fn func(context.Context, *client.Job[P]) (R, error), options ...client.HandlerOption) {
	client.Handle(w, k.taskType, func(ctx context.Context, job *client.Job[P]) error {
		result, err := fn(ctx, job)
		if _, none := any(result).(None); err != nil || none {
			return err
		}
		job.SetResult(result)
		return nil
	}, options...)
}

// Waiter is the part of a client that Result needs. *client.Client implements it.
type Waiter interface {
	Wait(ctx context.Context, id string) (*client.Task, error)
}

// Result waits until the task has ended, and returns its result. Errors: as ResultOf and Client.Wait.
func (k *Kind[P, R]) Result(ctx context.Context, c Waiter, id string) (R, error) {
	t, err := c.Wait(ctx, id)
	if err != nil {
		var none R
		return none, err
	}
	return k.ResultOf(t)
}

// errNotEnded is returned by ResultOf for a task that has not ended.
var errNotEnded = errors.New("it has not ended yet")

// ResultOf returns the result of a task, or the zero value if it has none. Errors: client.ErrTaskFailed,
// client.ErrTaskCancelled; another error if the task has not ended, has another type, or has a result that does not
// decode.
func (k *Kind[P, R]) ResultOf(t *client.Task) (R, error) {
	var result R
	err := k.check(t)
	switch {
	case err != nil:
	case t.Status == client.StatusFailed:
		err = ended(client.ErrTaskFailed, t)
	case t.Status == client.StatusCancelled:
		err = ended(client.ErrTaskCancelled, t)
	case t.Status != client.StatusCompleted:
		err = fmt.Errorf("%w: it is %s", errNotEnded, t.Status)
	default:
		result, err = decode[R](t.Result)
	}
	if err != nil {
		return result, fmt.Errorf("result of task %s (%s, attempt %d): %w", t.ID, t.TaskType, t.Attempts, err)
	}
	return result, nil
}

// ended returns the error for a task that ended without a result.
func ended(how error, t *client.Task) error {
	if t.Error == "" {
		return how
	}
	return fmt.Errorf("%w: %s", how, t.Error)
}

// ParamsOf returns the parameters of a task. It fails if the task has another type or does not decode.
func (k *Kind[P, R]) ParamsOf(t *client.Task) (P, error) {
	var params P
	err := k.check(t)
	if err == nil {
		params, err = decode[P](t.Payload)
	}
	if err != nil {
		return params, fmt.Errorf("params of task %s (%s): %w", t.ID, t.TaskType, err)
	}
	return params, nil
}

func (k *Kind[P, R]) check(t *client.Task) error {
	if t.TaskType != k.taskType {
		return fmt.Errorf("it is not of the kind %s", k.taskType)
	}
	return nil
}

// decode reverses the encoding of client.NewTask and Job.SetResult. Empty input is the zero value.
func decode[T any](b []byte) (v T, err error) {
	switch p := any(&v).(type) {
	case *None:
	case *[]byte:
		*p = b
	case *json.RawMessage:
		*p = b
	default:
		if len(b) > 0 {
			err = json.Unmarshal(b, p)
		}
	}
	return v, err
}
