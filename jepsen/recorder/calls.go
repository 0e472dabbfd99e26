package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

// route is how calls of a kind are made. %d in the path is the task, %s the type. take
// fills op from what was answered, and reports whether the answer has what it must.
type route struct {
	method, path string
	take         func(op *history.Op, raw []byte) bool
}

// routes are the calls that are one op each, but for submits, claims and settles (parts.go).
var routes = map[history.Kind]route{
	history.Retry:             {http.MethodPost, "/api/tasks/%d/retry", answered(takeSeen)},
	history.Cancel:            {http.MethodPost, "/api/tasks/%d/cancel", answered(takeSeen)},
	history.Delete:            {http.MethodDelete, "/api/tasks/%d", answered(func(_ *history.Op, a *wire.Answer) bool { return a.Deleted == 1 })},
	history.Get:               {http.MethodGet, "/api/tasks/%d", answered(takeSeen)},
	history.List:              {http.MethodGet, "/api/tasks", answered(takeList)},
	history.SetType:           {http.MethodPatch, "/api/types/%s", answered(func(*history.Op, *wire.Answer) bool { return true })},
	history.Act:               {http.MethodPost, "/api/tasks/actions", as(takeActed)},
	history.ClaimFinalization: {http.MethodPost, "/api/tasks/%d/finalization/claim", as(takeFinalizationClaim)},
	history.ExtendFinalization: {http.MethodPost, "/api/tasks/%d/finalization/extend", as(func(op *history.Op, a *wire.FinalizationExtended) bool {
		op.Done = a.Extended
		return a.Success
	})},
	history.ReleaseFinalization: {http.MethodPost, "/api/tasks/%d/finalization/release", as(func(op *history.Op, a *wire.FinalizationReleased) bool {
		op.Done = a.Released
		return a.Success
	})},
	history.Finalize: {http.MethodPost, "/api/tasks/%d/finalize", as(takeFinalized)},
}

// as is a route's take of answers that are a T.
func as[T any](take func(*history.Op, *T) bool) func(*history.Op, []byte) bool {
	return func(op *history.Op, raw []byte) bool {
		var a T
		return json.Unmarshal(raw, &a) == nil && take(op, &a)
	}
}

// answered is a route's take of the answers that most calls have.
func answered(take func(*history.Op, *wire.Answer) bool) func(*history.Op, []byte) bool {
	return as(func(op *history.Op, a *wire.Answer) bool {
		op.Repeated = a.Repeated
		return a.Success && take(op, a)
	})
}

// call makes one request and records it.
func (c *Caller) call(ctx context.Context, op history.Op, query url.Values, body any) history.Op {
	route := routes[op.Kind]
	path := route.path
	switch {
	case strings.Contains(path, "%d"):
		path = fmt.Sprintf(path, op.TaskID)
	case strings.Contains(path, "%s"):
		path = fmt.Sprintf(path, url.PathEscape(op.TaskType))
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	op, _ = c.exchange(ctx, op, route.method, path, body, route.take)
	c.record(op)
	return op
}

// submitOf is the op of a submit before it is made.
func submitOf(task *wire.NewTask) history.Op {
	return history.Op{
		Kind: history.Submit, Key: task.IdempotencyKey, TaskType: task.TaskType, Priority: task.Priority, Group: task.Group, DelayMS: task.DelayMS,
		MaxAttempts: value(task.MaxAttempts), Plan: planOf(task),
	}
}

// planOf is what the history keeps of a task's steps, nil if it has none. A name
// that no step has is left out.
func planOf(task *wire.NewTask) *history.Plan {
	if len(task.Steps) == 0 {
		return nil
	}
	p := &history.Plan{ByClaim: task.Finalize == "claim", Continue: task.OnStepFailure == "continue"}
	for i := range task.Steps {
		s := history.Step{Name: task.Steps[i].Step, MaxAttempts: value(task.Steps[i].MaxAttempts)}
		for _, name := range task.Steps[i].DependsOn {
			if on := slices.IndexFunc(task.Steps, func(other wire.NewStep) bool { return other.Step == name }); on >= 0 {
				s.DependsOn = append(s.DependsOn, on)
			}
		}
		p.Steps = append(p.Steps, s)
	}
	return p
}

// claimOf is the op of a claim before it is made.
func claimOf(req *wire.Claim) history.Op {
	return history.Op{
		Kind: history.Claim, Worker: req.WorkerID, RequestID: req.ClaimRequestID, LeaseMS: req.LeaseMS,
		Types: req.TaskTypes, SortBy: req.SortBy, Limit: req.Limit, WaitMS: req.WaitMS,
	}
}

// settleOf is the op of a settling call before it is made.
func settleOf(kind history.Kind, taskID uint64, s *wire.Settle) history.Op {
	return history.Op{Kind: kind, TaskID: taskID, Token: s.ClaimToken, Worker: s.WorkerID, Result: string(s.Result), LeaseMS: s.LeaseMS, DelayMS: s.DelayMS}
}

// takeSeen takes the task as it is now.
func takeSeen(op *history.Op, a *wire.Answer) bool {
	if a.Task == nil {
		return false
	}
	op.Seen = seen(a.Task)
	return true
}

func takeList(op *history.Op, a *wire.Answer) bool {
	for i := range a.Tasks {
		if a.Tasks[i].TaskType != history.Tick {
			op.Listed = append(op.Listed, *seen(&a.Tasks[i]))
		}
	}
	op.More = a.NextCursor != ""
	return true
}

func takeActed(op *history.Op, a *wire.Acted) bool {
	op.Count, op.More = a.Done, a.More
	return a.Success && a.Done <= a.Matched
}

// claimExtended is the message to a processor that had the claim already.
const claimExtended = "Claim extended"

func takeFinalizationClaim(op *history.Op, a *wire.FinalizationClaimed) bool {
	op.Done, op.State, op.Repeated = a.Claimed, a.TaskState, a.Message == claimExtended
	op.Holder, op.Token = value(a.AlreadyClaimedBy), value(a.ClaimToken)
	return a.Success && a.Claimed == (a.ClaimToken != nil)
}

func takeFinalized(op *history.Op, a *wire.Finalized) bool {
	op.Done, op.Repeated, op.Action, op.Seen = !a.AlreadyFinalized, a.AlreadyFinalized, a.Action, seen(&a.Task)
	return a.Success && a.Task.ID == op.TaskID
}

// Retry makes the task pending again.
func (c *Caller) Retry(ctx context.Context, taskID uint64, req wire.Retry) history.Op {
	return c.call(ctx, history.Op{Kind: history.Retry, TaskID: taskID, Token: req.ClaimToken}, nil, req)
}

// Cancel cancels the task, or asks for that if it is claimed.
func (c *Caller) Cancel(ctx context.Context, taskID uint64) history.Op {
	return c.call(ctx, history.Op{Kind: history.Cancel, TaskID: taskID}, nil, nil)
}

// Delete deletes the task.
func (c *Caller) Delete(ctx context.Context, taskID uint64) history.Op {
	return c.call(ctx, history.Op{Kind: history.Delete, TaskID: taskID}, nil, nil)
}

// SetMaxClaimed bounds how many claims of the type may live at a time.
func (c *Caller) SetMaxClaimed(ctx context.Context, taskType string, most int32) history.Op {
	return c.call(ctx, history.Op{Kind: history.SetType, TaskType: taskType, MaxClaimed: most}, nil, map[string]int32{"max_claimed": most})
}

// SetPaused pauses the type, or lets claims take its tasks again.
func (c *Caller) SetPaused(ctx context.Context, taskType string, paused bool) history.Op {
	return c.call(ctx, history.Op{Kind: history.SetType, TaskType: taskType, Paused: &paused}, nil, map[string]bool{"paused": paused})
}

// Act does the action with every task of the type, and of the status if it is not "".
func (c *Caller) Act(ctx context.Context, action history.Kind, taskType, status string) history.Op {
	body := wire.Action{Action: string(action), Filter: wire.Filter{TaskType: taskType, Status: status}}
	return c.call(ctx, history.Op{Kind: history.Act, Action: string(action), TaskType: taskType, Status: status}, nil, body)
}

// ClaimFinalization claims the finalization of the parent. An op that is OK and
// Done has the claim's token.
func (c *Caller) ClaimFinalization(ctx context.Context, taskID uint64, req wire.FinalizationClaim) history.Op {
	return c.finalization(ctx, history.ClaimFinalization, taskID, req)
}

// ExtendFinalization lets the claim last longer.
func (c *Caller) ExtendFinalization(ctx context.Context, taskID uint64, req wire.FinalizationClaim) history.Op {
	return c.finalization(ctx, history.ExtendFinalization, taskID, req)
}

// ReleaseFinalization gives the claim back.
func (c *Caller) ReleaseFinalization(ctx context.Context, taskID uint64, processor string) history.Op {
	return c.finalization(ctx, history.ReleaseFinalization, taskID, wire.FinalizationClaim{ProcessorID: processor})
}

func (c *Caller) finalization(ctx context.Context, kind history.Kind, taskID uint64, req wire.FinalizationClaim) history.Op {
	timeout := time.Duration(req.TimeoutSeconds) * time.Second
	return c.call(ctx, history.Op{Kind: kind, TaskID: taskID, Worker: req.ProcessorID, LeaseMS: timeout.Milliseconds()}, nil, req)
}

// Finalize ends the parent, with the token of a claim or without one (0).
func (c *Caller) Finalize(ctx context.Context, taskID uint64, req wire.Finalize) history.Op {
	return c.call(ctx, history.Op{
		Kind: history.Finalize, TaskID: taskID, Worker: req.ProcessorID, Token: req.ClaimToken, Goal: req.Outcome, Result: string(req.Result),
	}, nil, req)
}

// Read says how a read is made.
type Read struct {
	Stale    bool   // what the node has
	MinIndex uint64 // once it has reached this
	WaitMS   int64  // for the end of the task, at most
}

// query is what the read asks for. Empty values are left out.
func (r Read) query(more map[string]string) url.Values {
	query := url.Values{}
	for name, value := range more {
		if value != "" {
			query.Set(name, value)
		}
	}
	if r.Stale {
		query.Set("consistency", "stale")
	}
	if r.WaitMS > 0 {
		query.Set("wait_ms", strconv.FormatInt(r.WaitMS, 10))
	}
	return query
}

// Read reads the task.
func (c *Caller) Read(ctx context.Context, taskID uint64, how Read) history.Op {
	op := history.Op{Kind: history.Get, TaskID: taskID, Stale: how.Stale, MinIndex: how.MinIndex, WaitMS: how.WaitMS}
	return c.call(ctx, op, how.query(nil), nil)
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
	order := "asc"
	if q.Desc {
		order = "desc"
	}
	return c.call(ctx, op, how.query(map[string]string{"limit": strconv.Itoa(q.Limit), "order": order, "status": q.Status, "task_type": q.Type}), nil)
}
