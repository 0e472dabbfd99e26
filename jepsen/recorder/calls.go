package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

// submitOf is the op of a submit before it is made.
func submitOf(task *wire.NewTask) history.Op {
	op := history.Op{Kind: history.Submit, Key: task.IdempotencyKey, TaskType: task.TaskType, Priority: task.Priority, Group: task.Group, DelayMS: task.DelayMS}
	if task.MaxAttempts != nil {
		op.MaxAttempts = *task.MaxAttempts
	}
	op.Plan = planOf(task)
	return op
}

// claimOf is the op of a claim before it is made.
func claimOf(req *wire.Claim) history.Op {
	return history.Op{
		Kind: history.Claim, Worker: req.WorkerID, RequestID: req.ClaimRequestID, LeaseMS: req.LeaseMS,
		Types: req.TaskTypes, SortBy: req.SortBy, Limit: req.Limit, WaitMS: req.WaitMS,
	}
}

// parts records one call as several ops, one per task: all alike but for what
// of fills in. It returns them. A call that named no task is one op.
func (c *Caller) parts(whole history.Op, count int, of func(i int, op *history.Op) bool) []history.Op {
	ops := make([]history.Op, max(count, 1))
	for i := range ops {
		ops[i] = whole
		if count > 0 && !of(i, &ops[i]) {
			ops[i].Outcome, ops[i].Code = history.Unknown, CodeOddAnswer
		}
	}
	c.record(ops...)
	return ops
}

// SubmitMany submits tasks in one call: one op for each.
func (c *Caller) SubmitMany(ctx context.Context, tasks []wire.NewTask) []history.Op {
	whole, answer := c.ask(ctx, history.Op{Kind: history.Submit}, http.MethodPost, "/api/tasks", wire.SubmitMany{Tasks: tasks})
	return c.parts(whole, len(tasks), func(i int, op *history.Op) bool {
		asked := submitOf(&tasks[i])
		op.Key, op.TaskType, op.Priority, op.MaxAttempts, op.Group = asked.Key, asked.TaskType, asked.Priority, asked.MaxAttempts, asked.Group
		op.Plan, op.DelayMS = asked.Plan, asked.DelayMS
		if answer == nil {
			return true
		}
		if i >= len(answer.Results) || answer.Results[i].ID == 0 {
			return false
		}
		op.TaskID, op.Created = answer.Results[i].ID, answer.Results[i].Created
		return true
	})
}

// ClaimMany claims up to req.Limit tasks in one call: one op for each, and one
// without a task if there were none.
func (c *Caller) ClaimMany(ctx context.Context, req wire.Claim) []history.Op {
	whole, answer := c.ask(ctx, claimOf(&req), http.MethodPost, "/api/tasks/claim", req)
	if answer == nil {
		return c.parts(whole, 0, nil)
	}
	return c.parts(whole, len(answer.Tasks), func(i int, op *history.Op) bool {
		t := &answer.Tasks[i]
		if t.ClaimToken == nil {
			return false
		}
		op.TaskID, op.Token, op.Seen = t.ID, *t.ClaimToken, seen(t)
		return true
	})
}

// ClaimTask claims the task by its id.
func (c *Caller) ClaimTask(ctx context.Context, taskID uint64, req wire.Claim) history.Op {
	op := claimOf(&req)
	op.Kind, op.TaskID = history.ClaimTask, taskID
	return c.call(ctx, op, http.MethodPost, fmt.Sprintf("/api/tasks/%d/claim", taskID), req, func(op *history.Op, a *wire.Answer) bool {
		if a.Task == nil || a.Task.ClaimToken == nil {
			return false
		}
		op.Token, op.Seen = *a.Task.ClaimToken, seen(a.Task)
		return true
	})
}

// Complete completes the task, submits what follows and claims, as s says: an op
// of the complete, one of each submit, and one of the claim.
func (c *Caller) Complete(ctx context.Context, taskID uint64, s wire.Settle) []history.Op {
	path := fmt.Sprintf("/api/tasks/%d/%s", taskID, history.Complete)
	whole, answer := c.ask(ctx, history.Op{Whole: len(s.Submit) > 0 || s.Claim != nil}, http.MethodPost, path, s)
	switch {
	case answer == nil:
		answer = &wire.Answer{}
	case answer.Task == nil || len(answer.Submitted) != len(s.Submit) || (answer.Claimed == nil) != (s.Claim == nil):
		whole.Outcome, whole.Code, answer = history.Unknown, CodeOddAnswer, &wire.Answer{}
	}
	ops := settled(whole, history.Complete, taskID, &s, answer)
	c.record(ops...)
	return ops
}

// Retry makes the task pending again.
func (c *Caller) Retry(ctx context.Context, taskID uint64, req wire.Retry) history.Op {
	op := history.Op{Kind: history.Retry, TaskID: taskID, Token: req.ClaimToken}
	return c.call(ctx, op, http.MethodPost, fmt.Sprintf("/api/tasks/%d/retry", taskID), req,
		func(op *history.Op, a *wire.Answer) bool {
			if a.Task == nil {
				return false
			}
			op.Seen = seen(a.Task)
			return true
		})
}

// SetMaxClaimed bounds how many claims of the type may live at a time.
func (c *Caller) SetMaxClaimed(ctx context.Context, taskType string, most int32) history.Op {
	op := history.Op{Kind: history.SetType, TaskType: taskType, MaxClaimed: most}
	body := map[string]int32{"max_claimed": most}
	return c.call(ctx, op, http.MethodPatch, "/api/types/"+url.PathEscape(taskType), body, func(*history.Op, *wire.Answer) bool { return true })
}

// SetPaused pauses the type, or lets claims take its tasks again.
func (c *Caller) SetPaused(ctx context.Context, taskType string, paused bool) history.Op {
	op := history.Op{Kind: history.SetType, TaskType: taskType, Paused: &paused}
	body := map[string]bool{"paused": paused}
	return c.call(ctx, op, http.MethodPatch, "/api/types/"+url.PathEscape(taskType), body, func(*history.Op, *wire.Answer) bool { return true })
}

// Delete deletes the task.
func (c *Caller) Delete(ctx context.Context, taskID uint64) history.Op {
	op := history.Op{Kind: history.Delete, TaskID: taskID}
	return c.call(ctx, op, http.MethodDelete, fmt.Sprintf("/api/tasks/%d", taskID), nil,
		func(_ *history.Op, a *wire.Answer) bool { return a.Deleted == 1 })
}

// Cancel cancels the task, or asks for that if it is claimed.
func (c *Caller) Cancel(ctx context.Context, taskID uint64) history.Op {
	op := history.Op{Kind: history.Cancel, TaskID: taskID}
	return c.call(ctx, op, http.MethodPost, fmt.Sprintf("/api/tasks/%d/cancel", taskID), nil,
		func(op *history.Op, a *wire.Answer) bool {
			if a.Task == nil {
				return false
			}
			op.Seen = seen(a.Task)
			return true
		})
}

// Act does the action with every task of the type, and of the status if it is not "".
func (c *Caller) Act(ctx context.Context, action history.Kind, taskType, status string) history.Op {
	body := wire.Action{Action: string(action), Filter: wire.Filter{TaskType: taskType, Status: status}}
	op, raw := c.exchange(ctx, history.Op{Kind: history.Act, Action: string(action), TaskType: taskType, Status: status}, http.MethodPost, "/api/tasks/actions", body)
	if op.Outcome == history.OK {
		var a wire.Acted
		if err := json.Unmarshal(raw, &a); err != nil || !a.Success || a.Done > a.Matched {
			op.Outcome, op.Code = history.Unknown, CodeOddAnswer
		}
		op.Count, op.More = a.Done, a.More
	}
	c.record(op)
	return op
}

// Read says how a read is made.
type Read struct {
	Stale    bool   // what the node has
	MinIndex uint64 // once it has reached this
	WaitMS   int64  // for the end of the task, at most
}

// Read reads the task.
func (c *Caller) Read(ctx context.Context, taskID uint64, how Read) history.Op {
	op := history.Op{Kind: history.Get, TaskID: taskID, Stale: how.Stale, MinIndex: how.MinIndex, WaitMS: how.WaitMS}
	query := url.Values{}
	if how.Stale {
		query.Set("consistency", "stale")
	}
	if how.WaitMS > 0 {
		query.Set("wait_ms", strconv.FormatInt(how.WaitMS, 10))
	}
	path := fmt.Sprintf("/api/tasks/%d?%s", taskID, query.Encode())
	return c.call(ctx, op, http.MethodGet, path, nil, func(op *history.Op, a *wire.Answer) bool {
		if a.Task == nil {
			return false
		}
		op.Seen = seen(a.Task)
		return true
	})
}

// ListQuery is what a list asks for. "" is any.
type ListQuery struct {
	Status, Type string
	Desc         bool
	Limit        int
}

// List reads the first page of a list.
func (c *Caller) List(ctx context.Context, q ListQuery, how Read) history.Op {
	op := history.Op{
		Kind: history.List, Status: q.Status, TaskType: q.Type, Desc: q.Desc, Limit: q.Limit,
		Stale: how.Stale, MinIndex: how.MinIndex,
	}
	query := url.Values{"limit": {strconv.Itoa(q.Limit)}, "order": {"asc"}}
	if q.Desc {
		query.Set("order", "desc")
	}
	if q.Status != "" {
		query.Set("status", q.Status)
	}
	if q.Type != "" {
		query.Set("task_type", q.Type)
	}
	if how.Stale {
		query.Set("consistency", "stale")
	}
	return c.call(ctx, op, http.MethodGet, "/api/tasks?"+query.Encode(), nil, func(op *history.Op, a *wire.Answer) bool {
		for i := range a.Tasks {
			if a.Tasks[i].TaskType != history.TickType {
				op.Listed = append(op.Listed, *seen(&a.Tasks[i]))
			}
		}
		op.More = a.NextCursor != ""
		return true
	})
}
