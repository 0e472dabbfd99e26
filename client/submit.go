package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/hotwire"
)

// Bounds of one request of SubmitMany, below the server's 1,000 items, 10,000
// tasks with their steps and 8 MiB.
const (
	submitItemsMax = 1_000
	submitTasksMax = 10_000
	submitBytesMax = 7 << 20
)

// Submitted is the outcome of one submit: an ID, or an Err.
type Submitted struct {
	ID string
	// Created is false if the task's own idempotency key was taken; ID is then
	// the task that has it. A repeat after a lost answer may find the task that
	// this very call created; then it is false too.
	Created bool
	// Differs is true if the task that has the key has another type or payload than the
	// one that was submitted: a mistake in how the keys are made.
	Differs bool
	Err     error // of one of SubmitMany
}

// Submit adds a task and returns its id. A task without an idempotency key
// gets a random one, so that the call can be repeated. If the key is taken,
// Submit returns the id of the task that has it, whatever that task looks like:
// SubmitTask tells. Errors: ErrInvalidTask, ErrTooLarge, ErrOverloaded,
// ErrOutcomeUnknown, ...
func (c *Client) Submit(ctx context.Context, task Task) (string, error) {
	s, err := c.SubmitTask(ctx, task)
	return s.ID, err
}

// SubmitTask is Submit that tells whether the task is new, and if its key was taken,
// whether by another task.
func (c *Client) SubmitTask(ctx context.Context, task Task) (Submitted, error) {
	result, err := c.submitResult(ctx, &task)
	if err != nil {
		return Submitted{}, fmt.Errorf("submit task: %w", err)
	}
	return submittedAs(result, task.IdempotencyKey == ""), nil
}

// submittedAs is the result of a submit that was not refused. ownedKey says that its key is
// random, so nobody else has it.
func submittedAs(r wire.SubmitResult, ownedKey bool) Submitted {
	return Submitted{ID: strconv.FormatUint(r.ID, 10), Created: r.Created || ownedKey, Differs: differs(r.SameRequest)}
}

// differs reports whether the answer to a submit says that the task that has its key is
// another.
func differs(same *bool) bool { return same != nil && !*same }

func (c *Client) submitResult(ctx context.Context, task *Task) (wire.SubmitResult, error) {
	if len(task.Steps) > 0 {
		answer, err := c.submit(ctx, task)
		if err != nil {
			return wire.SubmitResult{}, err
		}
		return resultOfOne(&answer), nil
	}
	body, err := task.encode(rand.Text())
	if err != nil {
		return wire.SubmitResult{}, err
	}
	return c.submitOne(ctx, body)
}

// resultOfOne is what the answer to a submit of one task says, as one of many says it.
func resultOfOne(answer *wire.Answer) wire.SubmitResult {
	return wire.SubmitResult{ID: answer.Task.ID, Created: answer.Created, SameRequest: answer.SameRequest}
}

// submit returns an answer that has a task.
func (c *Client) submit(ctx context.Context, task *Task) (wire.Answer, error) {
	body, err := task.encode(rand.Text())
	if err != nil {
		return wire.Answer{}, err
	}
	answer, _, err := c.post(ctx, "/api/tasks", body)
	if err == nil && answer.Task == nil {
		err = errors.New("the answer has no task")
	}
	return answer, err
}

// SubmitMany adds tasks and returns the outcome of each, in order; err joins
// the elements' errors. It sends up to 1,000 tasks, 10,000 with their steps, or
// 7 MiB a request: of the
// tasks of one request all valid ones are on a quorum's disks, or none. After a
// request that failed nothing further is sent, and the rest has its error.
func (c *Client) SubmitMany(ctx context.Context, tasks []Task) ([]Submitted, error) {
	s := submission{c: c, results: make([]Submitted, len(tasks))}
	for i := range tasks {
		item, err := tasks[i].encode(rand.Text())
		if err != nil {
			s.results[i].Err = err
			continue
		}
		s.add(ctx, i, item, 1+len(tasks[i].Steps), tasks[i].IdempotencyKey == "")
	}
	return s.end(ctx)
}

// EncodeTask returns the task as SubmitEncoded takes it: a JSON object with an idempotency
// key, a random one if the task has none, and with the trace context of ctx, if it has one
// (WithTraceparent). It is kept where a task is to be submitted later, and maybe twice.
func EncodeTask(ctx context.Context, task Task) ([]byte, error) {
	body, err := task.encode(rand.Text())
	if err != nil {
		return nil, fmt.Errorf("encode task: %w", err)
	}
	return traced(ctx, body), nil
}

// SubmitEncoded is SubmitMany of tasks that EncodeTask returned. Created tells only what
// the server knows: of one that was submitted before it is false.
func (c *Client) SubmitEncoded(ctx context.Context, tasks [][]byte) ([]Submitted, error) {
	s := submission{c: c, results: make([]Submitted, len(tasks))}
	for i, item := range tasks {
		s.add(ctx, i, item, 1+bytes.Count(item, []byte(`"step":`)), false)
	}
	return s.end(ctx)
}

// submission is a SubmitMany under way.
type submission struct {
	c       *Client
	results []Submitted
	failed  error // of a request; the rest is not sent

	// The request that is being put together.
	body     []byte
	members  []int  // indexes into results
	tasks    int    // members and their steps
	ownedKey []bool // per member: the key is random, so nobody else has it
}

// end sends the last request, and returns the results and their errors.
func (s *submission) end(ctx context.Context) ([]Submitted, error) {
	s.send(ctx)
	var errs []error
	for i := range s.results {
		if err := s.results[i].Err; err != nil {
			errs = append(errs, fmt.Errorf("submit task %d of %d: %w", i+1, len(s.results), err))
		}
	}
	return s.results, errors.Join(errs...)
}

// add puts a task into the next request, and sends the one before if it is full. item is
// the encoded task, size how many tasks it is with its steps.
func (s *submission) add(ctx context.Context, i int, item []byte, size int, ownedKey bool) {
	if len(s.members) == submitItemsMax || len(s.members) > 0 && (s.tasks+size > submitTasksMax || len(s.body)+len(item) > submitBytesMax) {
		s.send(ctx)
	}
	if s.failed != nil {
		s.results[i].Err = fmt.Errorf("not sent: %w", s.failed)
		return
	}
	if len(s.members) == 0 {
		s.body = append(s.body, `{"tasks":[`...)
	} else {
		s.body = append(s.body, ',')
	}
	s.body = append(s.body, item...)
	s.members = append(s.members, i)
	s.tasks += size
	s.ownedKey = append(s.ownedKey, ownedKey)
}

// send makes the request, if there is one, and takes its results.
func (s *submission) send(ctx context.Context) {
	if len(s.members) == 0 {
		return
	}
	results, a, err := s.c.callMany(ctx, Request{Path: "/api/tasks", Body: append(s.body, "]}"...), Repeatable: true, acts: len(s.members)})
	s.failed = err
	for n, i := range s.members {
		if err != nil {
			s.results[i].Err = err
			continue
		}
		result, err := submitResultOf(results[n], a.requestID)
		if err != nil {
			s.results[i].Err = err
			continue
		}
		s.results[i] = submittedAs(result, s.ownedKey[n])
	}
	s.body, s.members, s.tasks, s.ownedKey = nil, nil, 0, nil
}

// post makes a call that the server recognizes when it is repeated.
func (c *Client) post(ctx context.Context, path string, body []byte) (decoded wire.Answer, a answer, err error) {
	r := Request{Method: http.MethodPost, Path: path, Body: body, Repeatable: true, take: takeAnswer(&decoded, true)}
	a, err = c.call(ctx, r)
	return decoded, a, err
}

// takeAnswer has the answer's body decoded as it is judged, once. Without tasks the task
// that the call is about is left out.
func takeAnswer(decoded *wire.Answer, tasks bool) func(body []byte) bool {
	return func(body []byte) (ok bool) {
		*decoded, ok = hotwire.Answer(body, tasks, nil)
		return ok && decoded.Success
	}
}

func decodeAnswer(body []byte) (wire.Answer, error) {
	var decoded wire.Answer
	if err := json.Unmarshal(body, &decoded); err != nil {
		return wire.Answer{}, fmt.Errorf("decode answer: %w", err)
	}
	return decoded, nil
}
