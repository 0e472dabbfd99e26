package client

import (
	"context"
	"encoding/json"
	"fmt"
)

// Job is one attempt of a task, as its handler sees it. Its methods are safe for
// concurrent use.
type Job[P any] struct {
	Params P // the task's parameters, decoded
	// Task is the task as it was when it was claimed.
	Task *Task
	// Token is the claim's. It grows with every claim: give it to whatever the work
	// writes to, so that it can refuse the late write of an older one.
	Token int64
	// Attempt is the number of this attempt, from 1.
	Attempt int

	a *attempt
}

func jobOf[P any](a *attempt) *Job[P] {
	return &Job[P]{Task: a.cl.Task, Token: a.cl.Token, Attempt: a.cl.Task.Attempts, a: a}
}

// SetResult sets what the task is completed with, if the handler returns nil, in
// place of an earlier call: a []byte or a json.RawMessage as it is, which must not
// change any more, anything else as JSON; nil is no result. Up to 1 MiB. A value
// that JSON cannot hold, or that the server refuses, fails the task for good.
func (j *Job[P]) SetResult(result any) {
	var b []byte
	var err error
	switch v := result.(type) {
	case nil:
	case []byte:
		b = v
	case json.RawMessage:
		b = v
	default:
		b, err = marshal(v)
		if string(b) == "null" {
			b = nil
		}
	}
	j.a.mu.Lock()
	defer j.a.mu.Unlock()
	j.a.result, j.a.resultErr = b, err
}

// Then adds tasks that are submitted in the very step that completes this one:
// either both is done or none. They are submitted only if the handler returns nil.
// One without an idempotency key gets a random one. Up to 1,000. If one is
// malformed the task fails for good.
func (j *Job[P]) Then(tasks ...Task) {
	j.a.mu.Lock()
	defer j.a.mu.Unlock()
	j.a.then = append(j.a.then, tasks...)
}

// Progress keeps progress with the task, as JSON of up to 4 KiB, in place of the
// last one, for those who look at the task; it extends the claim too. If somebody
// asked for the task to be cancelled, the handler's context ends with
// ErrCancelRequested. Errors: as of Claim.Extend; ErrLeaseLost if the attempt is over,
// its claim was lost, or the worker has let go of it.
func (j *Job[P]) Progress(ctx context.Context, progress any) error {
	// After ErrLeaseLost nothing of this attempt counts any more, though the server may
	// still take an extend: it would only keep the task from others.
	if j.a.letGo.Load() || j.a.leaseLost.Load() || j.a.cl.hasLapsed() {
		return fmt.Errorf("report progress: %w", ErrLeaseLost)
	}
	if progress == nil {
		progress = json.RawMessage("{}") // the server takes null for none
	}
	cancelRequested, err := j.a.cl.Extend(ctx, 0, progress)
	if err != nil {
		return fmt.Errorf("report progress: %w", err)
	}
	if cancelRequested {
		j.a.cancel(ErrCancelRequested)
	}
	return nil
}
