package recorder

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

// CodeWithOthers means that an op of an atomic batch was refused because of another op.
const CodeWithOthers = "refused_with_others"

// ask makes one request of several ops without recording it. The answer is empty unless whole is
// OK, which requires must.
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

// Submit submits one task.
func (c *Caller) Submit(ctx context.Context, task wire.NewTask) history.Op {
	whole, a := c.ask(ctx, history.Op{}, "/api/tasks", task, func(a *wire.Answer) bool { return a.Task != nil })
	op := submitted(whole, &task, a)
	c.record(op)
	return op
}

// SubmitMany submits tasks in one call, with one op for each.
func (c *Caller) SubmitMany(ctx context.Context, tasks []wire.NewTask) []history.Op {
	whole, a := c.ask(ctx, history.Op{}, "/api/tasks", wire.SubmitMany{Tasks: tasks}, func(a *wire.Answer) bool {
		return len(a.Results) == len(tasks) && !slices.ContainsFunc(a.Results, func(r wire.SubmitResult) bool { return r.ID == 0 })
	})
	ops := make([]history.Op, len(tasks))
	for i := range tasks {
		ops[i] = submitOf(whole, &tasks[i])
		if i < len(a.Results) {
			ops[i].TaskID, ops[i].Created = a.Results[i].ID, a.Results[i].Created
		}
	}
	c.record(ops...)
	return ops
}

// Claim claims the next task. A successful op has the task and the token.
func (c *Caller) Claim(ctx context.Context, req wire.Claim) history.Op {
	return c.ClaimMany(ctx, req)[0]
}

// ClaimMany claims up to req.Limit tasks in one call: one op for each, or one without a task if
// no task was ready.
func (c *Caller) ClaimMany(ctx context.Context, req wire.Claim) []history.Op {
	return c.claim(ctx, claimOf(history.Op{}, &req), "/api/tasks/claim", req)
}

// ClaimTask claims the task by its id.
func (c *Caller) ClaimTask(ctx context.Context, taskID uint64, req wire.Claim) history.Op {
	op := claimOf(history.Op{}, &req)
	op.Kind, op.TaskID = history.ClaimTask, taskID
	return c.claim(ctx, op, fmt.Sprintf("/api/tasks/%d/claim", taskID), req)[0]
}

func (c *Caller) claim(ctx context.Context, op history.Op, path string, req wire.Claim) []history.Op {
	op, a := c.ask(ctx, op, path, req, func(a *wire.Answer) bool {
		return (req.Limit > 0 || a.Task != nil) && !slices.ContainsFunc(tasksOf(a), func(t wire.Task) bool { return t.ClaimToken == nil })
	})
	ops := taken(op, tasksOf(a))
	c.record(ops...)
	return ops
}

// Settle completes, fails, extends or releases the task, by kind. A complete may also submit tasks
// and claim, according to s: this gives an op for the complete, one for each submit, and one for
// the claim.
func (c *Caller) Settle(ctx context.Context, kind history.Kind, taskID uint64, s wire.Settle) []history.Op {
	path := fmt.Sprintf("/api/tasks/%d/%s", taskID, kind)
	whole, a := c.ask(ctx, history.Op{Whole: len(s.Submit) > 0 || s.Claim != nil}, path, s, func(a *wire.Answer) bool {
		return (a.Task != nil || kind == history.Extend) && len(a.Submitted) == len(s.Submit) && (a.Claimed == nil) == (s.Claim == nil)
	})
	ops := settled(whole, kind, taskID, &s, a)
	c.record(ops...)
	return ops
}

// taken returns an op for each task in the answer to a claim, or one without a task.
func taken(op history.Op, tasks []wire.Task) []history.Op {
	if op.Outcome != history.OK || len(tasks) == 0 {
		return []history.Op{op}
	}
	ops := slices.Repeat([]history.Op{op}, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		ops[i].TaskID, ops[i].Token = t.ID, value(t.ClaimToken)
		if t.ClaimToken != nil && t.ClaimState == "" { // a repeat shows the current state
			ops[i].Seen = seen(t)
		}
	}
	return ops
}

// tasksOf returns the tasks in the answer to a claim of one or of many.
func tasksOf(a *wire.Answer) []wire.Task {
	if len(a.Tasks) == 0 && a.Task != nil {
		return []wire.Task{*a.Task}
	}
	return a.Tasks
}

// submitted returns the op of a submit of one task.
func submitted(whole history.Op, asked *wire.NewTask, a *wire.Answer) history.Op {
	op := submitOf(whole, asked)
	if op.Outcome == history.OK && a.Task != nil {
		op.TaskID, op.Created = a.Task.ID, a.Created
	}
	return op
}

// claimEnded is the claim_state in a repeated answer when the claim is over.
const claimEnded = "ended"

// settled returns the ops of a settling call: its own, a submit for each following task, and a
// claim.
func settled(whole history.Op, kind history.Kind, id uint64, s *wire.Settle, a *wire.Answer) []history.Op {
	op := settleOf(whole, kind, id, s)
	if a.Task != nil {
		op.Seen = seen(a.Task)
	}
	ops := []history.Op{op}
	for i := range s.Submit {
		op := submitOf(whole, &s.Submit[i])
		if i < len(a.Submitted) {
			// A repeat reports what the first complete created.
			op.TaskID, op.Created = a.Submitted[i].ID, a.Submitted[i].Created && !a.Repeated
		}
		ops = append(ops, op)
	}
	if s.Claim != nil {
		next := wire.Answer{}
		if a.Claimed != nil {
			next.Task = a.Claimed.Task
		}
		op := claimOf(whole, s.Claim)
		if t := next.Task; op.RequestID == "" && t != nil && t.ClaimState == claimEnded {
			// A repeat about a claim that is over: it was given back because its first answer could
			// not be written. No worker has had it.
			op.Outcome, next.Task = history.Unknown, nil
		}
		op.RequestID = cmp.Or(op.RequestID, fmt.Sprintf("complete %d by %d", id, s.ClaimToken)) // identifies it as well
		ops = append(ops, taken(op, tasksOf(&next))...)
	}
	return ops
}

// Batch makes the ops of b, whose Fields are a wire.NewTask, a wire.Settle or a wire.Claim: an op
// for each, in order. No two of them may concern the same task.
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

// batchOf returns the history's ops for one op of a batch, with its result a.
func batchOf(part history.Op, asked *wire.Op, a *wire.Answer) []history.Op {
	switch fields := asked.Fields.(type) {
	case wire.NewTask:
		return []history.Op{submitted(part, &fields, a)}
	case wire.Claim:
		return taken(claimOf(part, &fields), tasksOf(a))
	case wire.Settle:
		return settled(part, history.Kind(asked.Op), asked.ID, &fields, a)
	}
	return nil
}
