package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

// planOf is what the history keeps of a task's steps, nil if it has none. A name
// that no step has is left out.
func planOf(task *wire.NewTask) *history.Plan {
	if len(task.Steps) == 0 {
		return nil
	}
	p := &history.Plan{ByClaim: task.Finalize == "claim", Continue: task.OnStepFailure == "continue"}
	for i := range task.Steps {
		s := history.Step{Name: task.Steps[i].Step}
		if task.Steps[i].MaxAttempts != nil {
			s.MaxAttempts = *task.Steps[i].MaxAttempts
		}
		for _, name := range task.Steps[i].DependsOn {
			if on := slices.IndexFunc(task.Steps, func(other wire.NewStep) bool { return other.Step == name }); on >= 0 {
				s.DependsOn = append(s.DependsOn, on)
			}
		}
		p.Steps = append(p.Steps, s)
	}
	return p
}

// claimExtended is the message to a processor that had the claim already.
const claimExtended = "Claim extended"

// ClaimFinalization claims the finalization of the parent. An op that is OK and
// Done has the claim's token.
func (c *Caller) ClaimFinalization(ctx context.Context, taskID uint64, req wire.FinalizationClaim) history.Op {
	op := finalizationOf(history.ClaimFinalization, taskID, &req)
	return exchangeFor(ctx, c, op, "finalization/claim", req, func(op *history.Op, a *wire.FinalizationClaimed) bool {
		op.Done, op.State = a.Claimed, a.TaskState
		op.Repeated = a.Message == claimExtended
		if a.AlreadyClaimedBy != nil {
			op.Holder = *a.AlreadyClaimedBy
		}
		if a.ClaimToken != nil {
			op.Token = *a.ClaimToken
		}
		return a.Success && a.Claimed == (a.ClaimToken != nil)
	})
}

// ExtendFinalization lets the claim last longer.
func (c *Caller) ExtendFinalization(ctx context.Context, taskID uint64, req wire.FinalizationClaim) history.Op {
	op := finalizationOf(history.ExtendFinalization, taskID, &req)
	return exchangeFor(ctx, c, op, "finalization/extend", req, func(op *history.Op, a *wire.FinalizationExtended) bool {
		op.Done = a.Extended
		return a.Success
	})
}

// ReleaseFinalization gives the claim back.
func (c *Caller) ReleaseFinalization(ctx context.Context, taskID uint64, processor string) history.Op {
	req := wire.FinalizationClaim{ProcessorID: processor}
	op := finalizationOf(history.ReleaseFinalization, taskID, &req)
	return exchangeFor(ctx, c, op, "finalization/release", req, func(op *history.Op, a *wire.FinalizationReleased) bool {
		op.Done = a.Released
		return a.Success
	})
}

// Finalize ends the parent, with the token of a claim or without one (0).
func (c *Caller) Finalize(ctx context.Context, taskID uint64, req wire.Finalize) history.Op {
	op := history.Op{
		Kind: history.Finalize, TaskID: taskID, Worker: req.ProcessorID, Token: req.ClaimToken, Goal: req.Outcome, Result: string(req.Result),
	}
	return exchangeFor(ctx, c, op, "finalize", req, func(op *history.Op, a *wire.Finalized) bool {
		op.Done, op.Repeated, op.Action = !a.AlreadyFinalized, a.AlreadyFinalized, a.Action
		op.Seen = seen(&a.Task)
		return a.Success && a.Task.ID == taskID
	})
}

// finalizationOf is the op of a call about a finalization before it is made.
func finalizationOf(kind history.Kind, taskID uint64, req *wire.FinalizationClaim) history.Op {
	return history.Op{Kind: kind, TaskID: taskID, Worker: req.ProcessorID, LeaseMS: (time.Duration(req.TimeoutSeconds) * time.Second).Milliseconds()}
}

// exchangeFor makes a call about a parent, whose answer is a T, and records it.
func exchangeFor[T any](ctx context.Context, c *Caller, op history.Op, call string, body any, take func(*history.Op, *T) bool) history.Op {
	op, raw := c.exchange(ctx, op, http.MethodPost, fmt.Sprintf("/api/tasks/%d/%s", op.TaskID, call), body)
	if op.Outcome == history.OK {
		var a T
		if err := json.Unmarshal(raw, &a); err != nil || !take(&op, &a) {
			op.Outcome, op.Code = history.Unknown, CodeOddAnswer
		}
	}
	c.record(op)
	return op
}
