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
	"github.com/claimq/claimq/client/internal/hotjson"
)

// Limits for one request of SubmitMany, below the server's 1,000 items, 10,000 tasks with their steps and 8 MiB.
const (
	submitItemsMax = 1_000
	submitTasksMax = 10_000
	submitBytesMax = 7 << 20
)

// Submitted is the outcome of one submit: an ID, or an Err.
type Submitted struct {
	ID string
	// Created is false if the idempotency key of the task was taken; ID is then the task that has it. After a lost
	// answer it may also be false although this call created the task, because the repeat finds it.
	Created bool
	// Replaced is true if the task waited with that key and has the payload and times of this submit now (UniqueReplace).
	Replaced bool
	// Differs is true if the task that has the key has another type or payload than the submitted one. This usually
	// means that keys are made wrongly.
	Differs bool
	Err     error // only from SubmitMany
}

// Submit adds a task and returns its id. A task without an idempotency key gets a random one, so that the call can be
// repeated. If the key is taken, Submit returns the id of the task that has it, whatever that task looks like; use
// SubmitTask to find out. Errors: ErrInvalidTask, ErrTooLarge, ErrOverloaded, ErrOutcomeUnknown, ...
func (c *Client) Submit(ctx context.Context, task Task) (string, error) {
	s, err := c.SubmitTask(ctx, task)
	return s.ID, err
}

// SubmitTask is Submit, and also tells whether the task is new and, if its key was taken, whether that task differs.
func (c *Client) SubmitTask(ctx context.Context, task Task) (Submitted, error) {
	result, err := c.submitResult(ctx, &task)
	if err != nil {
		return Submitted{}, fmt.Errorf("submit task: %w", err)
	}
	return submittedAs(result, task.IdempotencyKey == ""), nil
}

// submittedAs converts the result of a successful submit. ownedKey says that its key is random, so that no other task
// can have it.
func submittedAs(r wire.SubmitResult, ownedKey bool) Submitted {
	return Submitted{ID: strconv.FormatUint(r.ID, 10), Created: r.Created || ownedKey, Replaced: r.Replaced, Differs: differs(r.SameRequest)}
}

// differs reports whether the answer to a submit says that another task has its key.
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

// resultOfOne converts the answer to a submit of one task into an element of an answer to many.
func resultOfOne(answer *wire.Answer) wire.SubmitResult {
	return wire.SubmitResult{ID: answer.Task.ID, Created: answer.Created, Replaced: answer.Replaced, SameRequest: answer.SameRequest}
}

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

// SubmitMany adds tasks and returns the outcome of each, in order; err joins the errors, with one line for tasks in a
// row that have the same one. It sends requests of up to 1,000 tasks, 10,000 with their steps, and 7 MiB. Of each
// request either all valid tasks are stored, or none. After a request fails nothing further is sent, and the remaining
// tasks get its error.
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

// EncodeTask encodes a task for SubmitEncoded, as a JSON object with an idempotency key (a random one if it has none)
// and with the trace context of ctx, if any (WithTraceparent). Use it to store a task that is to be submitted later,
// possibly more than once.
func EncodeTask(ctx context.Context, task Task) ([]byte, error) {
	body, err := task.encode(rand.Text())
	if err != nil {
		return nil, fmt.Errorf("encode task: %w", err)
	}
	return traced(ctx, body), nil
}

// SubmitEncoded is SubmitMany for tasks encoded by EncodeTask. Created is false for a task that was submitted before,
// even if by the same program.
func (c *Client) SubmitEncoded(ctx context.Context, tasks [][]byte) ([]Submitted, error) {
	s := submission{c: c, results: make([]Submitted, len(tasks))}
	for i, item := range tasks {
		s.add(ctx, i, item, 1+bytes.Count(item, []byte(`"step":`)), false)
	}
	return s.end(ctx)
}

// submission is the state of a SubmitMany.
type submission struct {
	c       *Client
	results []Submitted
	failed  error // why a request failed; the rest is not sent

	// The next request.
	body     []byte
	members  []int  // indexes into results
	tasks    int    // members including their steps
	ownedKey []bool // per member: the key is random, so that no other task can have it
}

// end sends the last request, and returns the results and their errors. Tasks in a row with the same error share one
// line, as do those of a request that fails.
func (s *submission) end(ctx context.Context) ([]Submitted, error) {
	s.send(ctx)
	var errs []error
	for first, next := 0, 0; first < len(s.results); first = next {
		err := s.results[first].Err
		for next = first + 1; next < len(s.results) && same(s.results[next].Err, err); next++ {
		}
		switch {
		case err == nil:
		case next == first+1:
			errs = append(errs, fmt.Errorf("submit task %d of %d: %w", next, len(s.results), err))
		default:
			errs = append(errs, fmt.Errorf("submit tasks %d to %d of %d: %w", first+1, next, len(s.results), err))
		}
	}
	return s.results, errors.Join(errs...)
}

// same reports whether both errors have the same text, or neither is one.
func same(a, b error) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Error() == b.Error()
}

// add adds a task to the next request, and first sends that request if it is full. item is the encoded task, size the
// number of tasks including its steps.
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

// send makes the request, if it has any members, and stores its results.
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

// post makes a call whose repeats the server recognizes.
func (c *Client) post(ctx context.Context, path string, body []byte) (decoded wire.Answer, a answer, err error) {
	r := Request{Method: http.MethodPost, Path: path, Body: body, Repeatable: true, take: takeAnswer(&decoded, true)}
	a, err = c.call(ctx, r)
	return decoded, a, err
}

// takeAnswer returns a Request.take that decodes the answer. Without tasks it skips the task that the call is about.
func takeAnswer(decoded *wire.Answer, tasks bool) func(body []byte) bool {
	return func(body []byte) (ok bool) {
		*decoded, ok = hotjson.Answer(body, tasks, nil)
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
