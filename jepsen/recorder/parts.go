package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

// CodeWithOthers is of an op of an atomic batch that was refused for another op.
const CodeWithOthers = "refused_with_others"

// ask makes one request of several ops and does not record it. The answer is empty unless
// whole is OK, and then as must says.
func (c *Caller) ask(ctx context.Context, whole history.Op, path string, body any, must func(*wire.Answer) bool) (history.Op, *wire.Answer) {
	a := &wire.Answer{}
	whole, _ = c.exchange(ctx, whole, http.MethodPost, path, body, answered(func(_ *history.Op, got *wire.Answer) bool {
		a = got
		return must(got)
	}))
	if whole.Outcome != history.OK {
		a = &wire.Answer{}
	}
	return whole, a
}

// SubmitMany submits tasks in one call: one op for each.
func (c *Caller) SubmitMany(ctx context.Context, tasks []wire.NewTask) []history.Op {
	whole, a := c.ask(ctx, history.Op{}, "/api/tasks", wire.SubmitMany{Tasks: tasks}, func(a *wire.Answer) bool {
		return len(a.Results) == len(tasks) && !slices.ContainsFunc(a.Results, func(r wire.SubmitResult) bool { return r.ID == 0 })
	})
	ops := make([]history.Op, len(tasks))
	for i := range tasks {
		ops[i] = with(whole, submitOf(&tasks[i]))
		if i < len(a.Results) {
			ops[i].TaskID, ops[i].Created = a.Results[i].ID, a.Results[i].Created
		}
	}
	c.record(ops...)
	return ops
}

// ClaimMany claims up to req.Limit tasks in one call: one op for each, and one
// without a task if there were none.
func (c *Caller) ClaimMany(ctx context.Context, req wire.Claim) []history.Op {
	whole, a := c.ask(ctx, claimOf(&req), "/api/tasks/claim", req, func(a *wire.Answer) bool {
		return !slices.ContainsFunc(a.Tasks, func(t wire.Task) bool { return t.ClaimToken == nil })
	})
	ops := claimed(whole, &req, a)
	c.record(ops...)
	return ops
}

// Complete completes the task, submits what follows and claims, as s says: an op
// of the complete, one of each submit, and one of the claim.
func (c *Caller) Complete(ctx context.Context, taskID uint64, s wire.Settle) []history.Op {
	path := fmt.Sprintf(routes[history.Complete].path, taskID)
	whole, a := c.ask(ctx, history.Op{Whole: len(s.Submit) > 0 || s.Claim != nil}, path, s, func(a *wire.Answer) bool {
		return a.Task != nil && len(a.Submitted) == len(s.Submit) && (a.Claimed == nil) == (s.Claim == nil)
	})
	ops := settled(whole, history.Complete, taskID, &s, a)
	c.record(ops...)
	return ops
}

// with is the op of a call with what is alike in all of its ops.
func with(whole, op history.Op) history.Op {
	op.Process, op.Call, op.Return, op.Index, op.Node, op.Whole = whole.Process, whole.Call, whole.Return, whole.Index, whole.Node, whole.Whole
	op.Outcome, op.Code, op.Repeated = whole.Outcome, whole.Code, whole.Repeated
	return op
}

// taken is the op for each of the tasks that an answer to a claim names, or without one.
func taken(op history.Op, tasks []wire.Task) []history.Op {
	if op.Outcome != history.OK || len(tasks) == 0 {
		return []history.Op{op}
	}
	ops := slices.Repeat([]history.Op{op}, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		ops[i].TaskID, ops[i].Token = t.ID, value(t.ClaimToken)
		if t.ClaimToken != nil && t.ClaimState == "" { // of a repeat it shows what is now
			ops[i].Seen = seen(t)
		}
	}
	return ops
}

// claimed are the ops of a claim.
func claimed(whole history.Op, asked *wire.Claim, a *wire.Answer) []history.Op {
	tasks := a.Tasks
	if len(tasks) == 0 && a.Task != nil {
		tasks = []wire.Task{*a.Task}
	}
	return taken(with(whole, claimOf(asked)), tasks)
}

// settled are the ops of a settling call: its own, a submit for each task that
// follows, and a claim.
func settled(whole history.Op, kind history.Kind, id uint64, s *wire.Settle, a *wire.Answer) []history.Op {
	op := with(whole, settleOf(kind, id, s))
	if a.Task != nil && !a.Repeated {
		op.Seen = seen(a.Task)
	}
	ops := []history.Op{op}
	for i := range s.Submit {
		op := with(whole, submitOf(&s.Submit[i]))
		if i < len(a.Submitted) {
			// A repeat tells what the first complete created.
			op.TaskID, op.Created = a.Submitted[i].ID, a.Submitted[i].Created && !a.Repeated
		}
		ops = append(ops, op)
	}
	if s.Claim != nil {
		next := wire.Answer{}
		if a.Claimed != nil {
			next.Task = a.Claimed.Task
		}
		ops = append(ops, claimed(whole, s.Claim, &next)...)
	}
	return ops
}

// Batch makes the ops of b, whose Fields are a wire.NewTask, a wire.Settle or a
// wire.Claim: an op of each, in order. No two of them may be about one task.
func (c *Caller) Batch(ctx context.Context, b wire.Batch) []history.Op {
	var done wire.BatchAnswer
	whole, raw := c.exchange(ctx, history.Op{Whole: b.Atomic}, http.MethodPost, "/api/batch", b, as(func(_ *history.Op, got *wire.BatchAnswer) bool {
		done = *got
		return got.Success && len(got.Results) == len(b.Ops)
	}))
	failed := -1
	if whole.Outcome != history.OK {
		done.Results = make([]wire.OpResult, len(b.Ops))
		var refusal wire.Refusal
		if json.Unmarshal(raw, &refusal) == nil && refusal.FailedOp != nil && whole.Outcome == history.Failed {
			failed = *refusal.FailedOp
		}
	}
	var ops []history.Op
	for i := range b.Ops {
		part, result := whole, &done.Results[i]
		switch {
		case whole.Outcome == history.OK && result.Code != "":
			part.Outcome, part.Code = history.Failed, string(result.Code)
		case whole.Outcome == history.OK:
			part.Repeated = result.Repeated
		case failed >= 0 && i != failed:
			part.Code = CodeWithOthers
		}
		ops = append(ops, batchOf(part, &b.Ops[i], &result.Answer)...)
	}
	c.record(ops...)
	return ops
}

// batchOf is the op, or ops, of one op of a batch. What it did is in a.
func batchOf(part history.Op, asked *wire.Op, a *wire.Answer) []history.Op {
	switch fields := asked.Fields.(type) {
	case wire.NewTask:
		op := with(part, submitOf(&fields))
		if part.Outcome == history.OK && a.Task != nil {
			op.TaskID, op.Created = a.Task.ID, a.Created
		}
		return []history.Op{op}
	case wire.Claim:
		return claimed(part, &fields, a)
	case wire.Settle:
		return settled(part, history.Kind(asked.Op), asked.ID, &fields, a)
	}
	return nil
}
