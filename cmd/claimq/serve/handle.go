package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/child"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// handle gives a task to a program and waits for its answer. The returned error settles the claim.
func (p *pool) handle(ctx context.Context, job *client.Job[[]byte], timeout time.Duration) error {
	begun := time.Now()
	line, id, err := p.lineOf(ctx, job, timeout)
	if err != nil {
		return err
	}
	h := &handling{key: key{id, job.Token}, taskType: job.Task.TaskType, answer: make(chan *programMessage, 1)}
	if err := p.place(ctx, h, line); err != nil {
		return client.Snooze(0) // whatever the reason is, it is not the task's fault
	}
	h.begin(ctx, job)
	defer h.endReports()
	select {
	case a := <-h.answer:
		return settle(ctx, job, a)
	case <-h.p.over:
		return p.programEnded(h)
	case <-ctx.Done():
	}
	return p.cancel(ctx, h, job, timeout-time.Since(begun))
}

// cancel tells the program to end a task whose context has ended, and waits up to the rest of the
// task's time, left.
func (p *pool) cancel(ctx context.Context, h *handling, job *client.Job[[]byte], left time.Duration) error {
	cause := context.Cause(ctx)
	why, grace := "shutdown", child.Grace
	switch {
	case errors.Is(cause, client.ErrLeaseLost):
		why, grace = "lease_lost", child.LostGrace(job.LeaseEndsAt())
	case errors.Is(cause, client.ErrCancelRequested):
		why, grace = "cancel_requested", max(left, 0)+child.Grace
	case errors.Is(cause, context.DeadlineExceeded):
		why = "timeout"
	}
	h.p.send(cancelMessage{kindCancel, h.key.id, h.key.token, why})
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case a := <-h.answer:
		return settle(ctx, job, a)
	case <-h.p.over:
		return p.programEnded(h)
	case <-timer.C:
	}
	h.p.mu.Lock()
	_, has := h.p.tasks[h.key]
	h.p.mu.Unlock()
	if !has { // its answer has just arrived
		return settle(ctx, job, <-h.answer)
	}
	text := fmt.Sprintf("task %s (%s, attempt %d) went on for %v after it was cancelled (%s)", job.Task.ID, job.Task.TaskType, job.Attempt, grace, why)
	p.log("%s: %s: it is killed", h.p.name, text)
	h.p.kill(errors.New(text), true)
	<-h.p.over
	return errors.New(text + ", and its program was killed")
}

// programEnded returns the error of a task whose program has ended without answering it.
func (p *pool) programEnded(h *handling) error {
	select {
	case a := <-h.answer: // its last message
		return errorOf(a)
	default:
	}
	var f *failure
	h.p.mu.Lock()
	err := h.p.failure
	h.p.mu.Unlock()
	if errors.As(err, &f) && (f.noTaskAtFault || f.terminated && child.Stops(p.stopping)) {
		return client.Snooze(0)
	}
	return err
}

// settle gives the program's answer to the job. Steps are added first, because no claim holds the task any more once it
// has ended.
func settle(ctx context.Context, job *client.Job[[]byte], a *programMessage) error {
	if a.Kind != kindDone {
		return errorOf(a)
	}
	if len(a.Steps) > 0 {
		if err := AddSteps(ctx, job, a.Steps); err != nil {
			return err
		}
	}
	switch {
	case len(a.ResultPayload) > 0:
		job.SetResult(client.Binary(a.ResultPayload))
	case len(a.Result) > 0 && string(a.Result) != "null":
		job.SetResult(a.Result)
	}
	if len(a.Submit) > 0 {
		job.ThenJSON(a.Submit)
	}
	return nil
}

// AddSteps adds steps to the parent of the job's task. Steps that the server does not take fail the task for good, because
// another attempt would have the same.
func AddSteps(ctx context.Context, job *client.Job[[]byte], steps json.RawMessage) error {
	_, err := job.AddStepsJSON(context.WithoutCancel(ctx), steps)
	if errors.Is(err, client.ErrInvalidTask) || errors.Is(err, client.ErrTaskNotClaimable) {
		return client.Permanent(err)
	}
	return err
}

// errorOf returns the handler's error for an answer other than done.
func errorOf(a *programMessage) error {
	if a.Kind == kindSnooze {
		return client.Snooze(time.Duration(a.MS) * time.Millisecond)
	}
	text := a.Error
	if text == "" {
		text = "no reason given"
	}
	err := errors.New(text)
	switch {
	case a.Permanent:
		return client.Permanent(err)
	case a.RetryInMS != nil:
		return client.RetryAfter(time.Duration(*a.RetryInMS)*time.Millisecond, err)
	}
	return err
}

// lineOf returns the line that gives the task to a program.
func (p *pool) lineOf(ctx context.Context, job *client.Job[[]byte], timeout time.Duration) (line []byte, id uint64, err error) {
	t := job.Task
	if id, err = strconv.ParseUint(t.ID, 10, 64); err != nil {
		return nil, 0, fmt.Errorf("the task's id: %w", err)
	}
	m := taskMessage{
		Kind: kindTask, ID: id, Token: job.Token, Type: t.TaskType, Attempt: job.Attempt, Labels: t.Labels,
		Attributes: t.Attributes, Signal: t.Signal, Traceparent: t.Traceparent, TimeoutMS: timeout.Milliseconds(), ParentID: json.RawMessage(t.ParentID), Step: t.StepName,
	}
	if t.Binary {
		m.Payload = t.Payload
	} else {
		m.Params = t.Payload
	}
	if len(t.DependsOn) > 0 {
		if err := p.dependencies(ctx, t, &m); err != nil {
			return nil, 0, err
		}
	}
	if line, err = m.line(); err != nil {
		return nil, 0, client.Permanent(fmt.Errorf("the task does not fit into a message: %w", err))
	}
	return line, id, nil
}

func (p *pool) dependencies(ctx context.Context, t *client.Task, m *taskMessage) error {
	results, tooLarge, err := Dependencies(ctx, p.c, t)
	if errors.Is(err, client.ErrTaskNotFound) || errors.Is(err, client.ErrForbidden) {
		return err // such as a key that may not read them, which would be the same again
	}
	if err != nil {
		p.log("task %s (%s): given back for %v: %s", t.ID, t.TaskType, roomWait, err)
		return client.Snooze(roomWait)
	}
	m.Dependencies, m.DependenciesLeftOut = results, tooLarge
	return nil
}

// begin allows the program to report progress, until endReports.
func (h *handling) begin(ctx context.Context, job *client.Job[[]byte]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.send = func() { h.sendReports(ctx, job) }
	h.startReport()
}

// endReports ends the report that is being sent, and prevents others.
func (h *handling) endReports() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.send = nil
	if h.endReport != nil {
		h.endReport()
	}
}

// sendReports sends progress until none waits.
func (h *handling) sendReports(ctx context.Context, job *client.Job[[]byte]) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		h.mu.Lock()
		progress := h.progress
		h.progress, h.endReport = nil, cancel
		if progress == nil || h.send == nil || ctx.Err() != nil {
			h.endReport, h.reporting = nil, false
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		if err := job.Progress(ctx, progress); err != nil && ctx.Err() == nil {
			h.p.pool.log("task %s: its progress was not kept: %s", job.Task.ID, term.Printable(err.Error()))
		}
	}
}

// report stores progress with the task. It replaces progress that was not sent yet.
func (h *handling) report(progress json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progress = progress
	h.startReport()
}

// startReport sends the waiting progress, unless a report is being sent. The caller holds the lock.
func (h *handling) startReport() {
	if h.progress != nil && h.send != nil && !h.reporting {
		h.reporting = true
		go h.send()
	}
}

// dependenciesMax bounds the results of a step's dependencies, together.
const dependenciesMax = 4 << 20

// Result is the result of a step as programs get it. It is JSON or bytes; a step may have none.
type Result struct {
	Result        json.RawMessage `json:"result,omitempty"`
	ResultPayload []byte          `json:"result_payload,omitempty"` // base64
}

// Dependencies returns the results of the steps that the step t depends on, by name. If they have
// more than 4 MiB together it returns none, and tooLarge. Errors: as client.Client.Dependencies.
func Dependencies(ctx context.Context, c *client.Client, t *client.Task) (results map[string]Result, tooLarge bool, err error) {
	steps, err := c.Dependencies(ctx, t)
	if err != nil {
		return nil, false, err
	}
	size := 0
	results = make(map[string]Result, len(steps))
	for name, step := range steps {
		size += len(step.Result)
		if step.ResultBinary {
			results[name] = Result{ResultPayload: step.Result}
		} else {
			results[name] = Result{Result: step.Result}
		}
	}
	if size > dependenciesMax {
		return nil, true, nil
	}
	return results, false, nil
}
