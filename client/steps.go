package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client/internal/hotjson"
)

// Values of Task.Finalize, for how a task with steps ends.
const (
	// FinalizeAuto ends the parent together with its last step, in the same entry of the log.
	FinalizeAuto = "auto"
	// FinalizeClaim leaves it to a processor to end the parent (FinalizationClaimer).
	FinalizeClaim = "claim"
)

// Values of Task.OnStepFailure, for what happens to the other steps when one fails or is cancelled.
const (
	// FailOnStepFailure cancels the steps that are not claimed, asks the workers of claimed ones to stop, and fails
	// the parent.
	FailOnStepFailure = "fail"
	// ContinueOnStepFailure cancels only the steps that depend on it, directly or indirectly. The parent completes if
	// at least one of its steps did.
	ContinueOnStepFailure = "continue"
)

// Step is one step of a task.
type Step struct {
	Name string // 1 to 128 of A-Z a-z 0-9 _ . : -; unique among the steps
	// DependsOn names the steps that have to complete before this one can be claimed.
	DependsOn []string
	// Task is the work. When submitted it must have no steps, and no IdempotencyKey, Unique and Retention,
	// which the parent sets. When read as part of its parent it has only ID, TaskType, Status and the first KiB of
	// Error; use Get with its ID, or Tasks with Filter.ParentID, for the rest.
	Task Task
}

// AddStep adds a step that can be claimed once the steps named in after have completed. Steps may be added in any
// order.
func (t *Task) AddStep(name string, step Task, after ...string) {
	t.Steps = append(t.Steps, Step{Name: name, DependsOn: after, Task: step})
}

// Workflow is a submitted task with steps.
type Workflow struct {
	ID    string            // of the parent
	Steps map[string]string // step ids by step name
	// Created is false if the parent's idempotency key was taken; then ID and Steps belong to the task that
	// has it.
	Created bool
}

// SubmitWorkflow is Submit for a task with steps, and also returns the ids of the steps. If the key is taken by a
// task without steps, the workflow has none. Errors: as Submit; ErrInvalidTask names the offending step: an unknown
// name in DependsOn, a duplicate name, a cycle.
func (c *Client) SubmitWorkflow(ctx context.Context, task Task) (*Workflow, error) {
	if len(task.Steps) == 0 {
		return nil, fmt.Errorf("submit workflow: %w: it has no steps", ErrInvalidTask)
	}
	answer, err := c.submit(ctx, &task)
	if err != nil {
		return nil, fmt.Errorf("submit workflow: %w", err)
	}
	w := &Workflow{
		ID: formatID(answer.Task.ID), Steps: make(map[string]string, len(answer.Task.Steps)),
		Created: answer.Created || task.IdempotencyKey == "",
	}
	for i := range answer.Task.Steps {
		w.Steps[answer.Task.Steps[i].Step] = formatID(answer.Task.Steps[i].ID)
	}
	return w, nil
}

// AddSteps adds steps to the task that the claimed step belongs to, all of them or none, and returns their ids by name.
// They may depend on each other and on steps that the task has. A step that the task has under that name is not added
// again, so adding can be repeated, also by another attempt. The task ends once these steps have ended, too. Errors:
// ErrStaleClaim if the claim is over, ErrTaskCancelled if the step is being cancelled or depends on one that was,
// ErrTaskFailed if it depends on one that failed, ErrInvalidTask if the name is another step's, ErrTaskNotClaimable if
// the claimed task is no step, ...; then nothing was added.
func (cl *Claim) AddSteps(ctx context.Context, steps ...Step) (ids map[string]string, err error) {
	all, err := encodeSteps(steps)
	if err != nil {
		return nil, cl.wrap("add steps to", fmt.Errorf("%w: %w", ErrInvalidTask, err))
	}
	return cl.addSteps(ctx, all)
}

// addSteps is AddSteps of a JSON array.
func (cl *Claim) addSteps(ctx context.Context, steps []byte) (ids map[string]string, err error) {
	body, err := json.Marshal(cl.hold())
	if err != nil {
		return nil, cl.wrap("add steps to", err)
	}
	a, err := cl.c.call(ctx, Request{Method: http.MethodPost, Path: taskPath(cl.taskID, "steps"), Body: hotjson.WithField("steps", steps, body), Repeatable: true})
	if err != nil {
		return nil, cl.wrap("add steps to", err)
	}
	var added wire.StepsAdded
	if err := json.Unmarshal(a.body, &added); err != nil {
		return nil, cl.wrap("add steps to", fmt.Errorf("decode answer: %w", err))
	}
	ids = make(map[string]string, len(added.Steps))
	for i := range added.Steps {
		ids[added.Steps[i].Step] = formatID(added.Steps[i].ID)
	}
	return ids, nil
}

// DependencyResults returns the results of the steps that step depends on, by name. step must have been read from the
// server, as in a Claim. The results do not change while the step is claimed. Without dependencies it returns an
// empty map. If they came with the claim (ClaimRequest.IncludeDependencies) it makes no request. Errors: ErrTaskNotFound
// if one of them no longer exists, ...
func (c *Client) DependencyResults(ctx context.Context, step *Task) (map[string][]byte, error) {
	if step.Dependencies != nil && len(step.DependenciesLeftOut) == 0 {
		return step.Dependencies, nil
	}
	tasks, err := c.Dependencies(ctx, step)
	if err != nil {
		return nil, err
	}
	results := make(map[string][]byte, len(tasks))
	for name, t := range tasks {
		results[name] = t.Result
	}
	return results, nil
}

// Dependencies returns the steps that step depends on, by name, with their results and without their payloads. step
// and errors are as for DependencyResults.
func (c *Client) Dependencies(ctx context.Context, step *Task) (map[string]*Task, error) {
	tasks := make(map[string]*Task, len(step.DependsOn))
	missing := make(map[string]bool, len(step.DependsOn))
	for _, name := range step.DependsOn {
		missing[name] = true
	}
	q := url.Values{"parent_id": {step.ParentID}, "include": {"result"}, "limit": {strconv.Itoa(listLimit)}}
	for len(missing) > 0 {
		a, err := c.call(ctx, Request{Method: http.MethodGet, Path: "/api/tasks?" + q.Encode()})
		if err != nil {
			return nil, fmt.Errorf("read results for step %s: %w", step.ID, err)
		}
		page, err := decodeAnswer(a.body)
		if err != nil {
			return nil, fmt.Errorf("read results for step %s: %w", step.ID, err)
		}
		for i := range page.Tasks {
			if t := &page.Tasks[i]; missing[t.Step] {
				tasks[t.Step] = fromWire(t)
				delete(missing, t.Step)
			}
		}
		if page.NextCursor == "" {
			break
		}
		q.Set("cursor", page.NextCursor)
	}
	for _, name := range step.DependsOn {
		if missing[name] {
			return nil, fmt.Errorf("read results for step %s: step %q of task %s: %w", step.ID, name, step.ParentID, ErrTaskNotFound)
		}
	}
	return tasks, nil
}

// encodeSteps encodes the steps as the array that the server reads.
func encodeSteps(steps []Step) ([]byte, error) {
	all := []byte{'['}
	for i := range steps {
		item, err := steps[i].encode()
		if err != nil {
			return nil, fmt.Errorf("step %d of %d, %q: %w", i+1, len(steps), steps[i].Name, err)
		}
		if i > 0 {
			all = append(all, ',')
		}
		all = append(all, item...)
	}
	return append(all, ']'), nil
}

func (s *Step) encode() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	body, err := s.Task.encodeFields("")
	if err != nil {
		return nil, err
	}
	if len(s.DependsOn) > 0 {
		names, err := json.Marshal(s.DependsOn)
		if err != nil {
			return nil, err
		}
		body = hotjson.WithField("depends_on", names, body)
	}
	name, err := json.Marshal(s.Name)
	if err != nil {
		return nil, err
	}
	return hotjson.WithField("step", name, body), nil
}

// check refuses fields that a step must not have.
func (s *Step) check() error {
	t := &s.Task
	switch {
	case t.IdempotencyKey != "":
		return errors.New("a step has no idempotency key: set its parent's")
	case t.Unique != "" || t.UniqueFor != 0:
		return errors.New("a step is not unique: its parent is")
	case t.Retention != 0:
		return errors.New("a step is kept as long as its parent: set the parent's retention")
	case t.Steps != nil, t.Finalize != "", t.OnStepFailure != "":
		return errors.New("a step cannot have steps")
	case len(s.DependsOn) == 0 && len(t.DependsOn) > 0:
		return errors.New("what a step depends on is Step.DependsOn, not its task's")
	}
	return t.check()
}

func stepsFromWire(w []wire.Step) []Step {
	if len(w) == 0 {
		return nil
	}
	steps := make([]Step, len(w))
	for i := range w {
		steps[i] = Step{Name: w[i].Step, Task: Task{
			ID: formatID(w[i].ID), TaskType: w[i].TaskType, Status: TaskStatus(w[i].Status), Error: w[i].Error,
		}}
		if len(w[i].DependsOn) > 0 {
			steps[i].DependsOn = w[i].DependsOn
		}
	}
	return steps
}
