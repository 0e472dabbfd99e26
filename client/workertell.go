package client

import (
	"context"
	"errors"
	"log/slog"
)

// What else is told of a task than its errors.
var (
	errLeftBehind = errors.New("the handler ignores that its context has ended; its claim expires")
	errUnasked    = errors.New("the worker did not ask for it")
)

// tell tells what went wrong, the Logger, with args, and OnError, with err. task is nil if
// it is about none.
func (r *shift) tell(ctx context.Context, level slog.Level, what string, task *Task, err error, args ...any) {
	cfg := &r.w.cfg
	cfg.Logger.Log(ctx, level, "claimq: "+what, append([]any{"worker_id", cfg.ID}, args...)...)
	if cfg.OnError != nil {
		cfg.OnError(ctx, task, err)
	}
}

// tellOf is tell of a claim. Without args the log has err.
func (r *shift) tellOf(cl *Claim, level slog.Level, what string, err error, args ...any) {
	t := cl.Task
	if len(args) == 0 {
		args = []any{"err", err}
	}
	args = append([]any{"task_id", t.ID, "task_type", t.TaskType, "attempt", t.Attempts, "claim_token", cl.Token}, args...)
	r.tell(r.traced(cl), level, what, t, err, args...)
}
