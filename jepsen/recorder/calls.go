package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/history"
)

// route describes calls of a kind. %d in the path is the task, %s the type. body returns the
// body for op, nil if its path and query are enough. take fills op from the answer, and reports
// whether the answer is complete.
type route struct {
	method, path string
	body         func(op *history.Op) any
	take         func(op *history.Op, raw []byte) bool
}

// routes lists the calls that are one op each, except submits, claims and settles (parts.go).
var routes = map[history.Kind]route{
	history.Retry: {http.MethodPost, "/api/tasks/%d/retry", func(op *history.Op) any {
		return wire.Retry{ClaimToken: op.Token, AddAttempts: op.MaxAttempts}
	}, answered(takeSeen)},
	history.AddSteps: {http.MethodPost, "/api/tasks/%d/steps", stepsOf, as(func(op *history.Op, a *wire.StepsAdded) bool {
		op.Repeated, op.Added = a.Repeated, &history.Added{ParentID: a.ParentID}
		for i := range a.Steps {
			op.Added.IDs = append(op.Added.IDs, a.Steps[i].ID)
		}
		return a.Success && len(a.Steps) == len(op.Plan.Steps)
	})},
	history.Cancel:  {http.MethodPost, "/api/tasks/%d/cancel", nil, answered(takeSeen)},
	history.Delete:  {http.MethodDelete, "/api/tasks/%d", nil, answered(func(_ *history.Op, a *wire.Answer) bool { return a.Deleted == 1 })},
	history.Get:     {http.MethodGet, "/api/tasks/%d", nil, answered(takeSeen)},
	history.List:    {http.MethodGet, "/api/tasks", nil, answered(takeList)},
	history.SetType: {http.MethodPatch, "/api/types/%s", settingOf, answered(func(*history.Op, *wire.Answer) bool { return true })},
	history.SetShare: {http.MethodPut, "/api/types/%s/shares/%s", func(op *history.Op) any {
		s := wire.ShareSettings{Weight: op.Weight}
		if op.MaxClaimed > 0 {
			s.MaxClaimed = &op.MaxClaimed
		}
		return s
	}, answered(func(*history.Op, *wire.Answer) bool { return true })},
	history.Act: {http.MethodPost, "/api/tasks/actions", func(op *history.Op) any {
		return wire.Action{Action: op.Action, Filter: wire.Filter{TaskType: op.TaskType, Status: op.Status}}
	}, as(takeActed)},
	history.ClaimFinalization: {http.MethodPost, "/api/tasks/%d/finalization/claim", holdOf, as(takeFinalizationClaim)},
	history.ExtendFinalization: {http.MethodPost, "/api/tasks/%d/finalization/extend", holdOf, as(func(op *history.Op, a *wire.FinalizationExtended) bool {
		op.Done = a.Extended
		return a.Success
	})},
	history.ReleaseFinalization: {http.MethodPost, "/api/tasks/%d/finalization/release", holdOf, as(func(op *history.Op, a *wire.FinalizationReleased) bool {
		op.Done = a.Released
		return a.Success
	})},
	history.Finalize: {http.MethodPost, "/api/tasks/%d/finalize", endOf, as(takeFinalized)},
}

// settingOf returns the body of a set_type.
func settingOf(op *history.Op) any {
	switch {
	case op.Paused != nil:
		return map[string]bool{"paused": *op.Paused}
	case op.Fair:
		return map[string]bool{"fair": true}
	}
	return map[string]int32{"max_claimed": op.MaxClaimed}
}

// stepsOf returns the body of an add_steps. All of its steps have the same type and params.
func stepsOf(op *history.Op) any {
	steps := make([]wire.NewStep, len(op.Plan.Steps))
	for i, s := range op.Plan.Steps {
		limit := s.MaxAttempts
		steps[i] = wire.NewStep{Step: s.Name, NewTask: wire.NewTask{TaskType: op.TaskType, Params: json.RawMessage(op.Params), MaxAttempts: &limit, Backoff: &wire.Backoff{}}}
		for _, on := range s.DependsOn {
			steps[i].DependsOn = append(steps[i].DependsOn, op.Plan.Steps[on].Name)
		}
	}
	return struct {
		wire.Settle
		Steps []wire.NewStep `json:"steps"`
	}{wire.Settle{WorkerID: op.Worker, ClaimToken: op.Token}, steps}
}

// holdOf returns the body of a processor's call about a claim of a finalization.
func holdOf(op *history.Op) any {
	return wire.FinalizationClaim{ProcessorID: op.Worker, TimeoutSeconds: op.LeaseMS / 1000}
}

// endOf returns the body of a processor's call that ends a parent.
func endOf(op *history.Op) any {
	f := wire.Finalize{ProcessorID: op.Worker, ClaimToken: op.Token, Outcome: op.Goal, Result: json.RawMessage(op.Result)}
	if op.Goal == "failed" {
		f.Error = "it is not good enough"
	}
	return f
}

// queryOf returns the query of a read.
func queryOf(op *history.Op) string {
	query := url.Values{}
	if op.Kind == history.List {
		query = url.Values{"limit": {strconv.Itoa(op.Limit)}, "order": {"asc"}, "status": {op.Status}, "task_type": {op.TaskType}}
	}
	if op.Desc {
		query.Set("order", "desc")
	}
	if op.Stale {
		query.Set("consistency", "stale")
	}
	if op.WaitMS > 0 {
		query.Set("wait_ms", strconv.FormatInt(op.WaitMS, 10))
	}
	maps.DeleteFunc(query, func(_ string, value []string) bool { return value[0] == "" })
	return query.Encode()
}

// as adapts take to answers that are a T.
func as[T any](take func(*history.Op, *T) bool) func(*history.Op, []byte) bool {
	return func(op *history.Op, raw []byte) bool {
		var a T
		return json.Unmarshal(raw, &a) == nil && take(op, &a)
	}
}

// answered adapts take to the answers that most calls have.
func answered(take func(*history.Op, *wire.Answer) bool) func(*history.Op, []byte) bool {
	return as(func(op *history.Op, a *wire.Answer) bool {
		op.Repeated = a.Repeated
		return a.Success && take(op, a)
	})
}

// Call makes the call that op describes: one about a single task or type. It returns op with
// the answer.
func (c *Caller) Call(ctx context.Context, op history.Op) history.Op {
	route := routes[op.Kind]
	path := route.path
	switch {
	case strings.Contains(path, "%d"):
		path = fmt.Sprintf(path, op.TaskID)
	case op.Kind == history.SetShare:
		path = fmt.Sprintf(path, url.PathEscape(op.TaskType), url.PathEscape(op.ShareKey))
	case strings.Contains(path, "%s"):
		path = fmt.Sprintf(path, url.PathEscape(op.TaskType))
	}
	var body any
	if route.body != nil {
		body = route.body(&op)
	}
	op, _ = c.exchange(ctx, op, route.method, strings.TrimSuffix(path+"?"+queryOf(&op), "?"), body, route.take)
	c.record(op)
	return op
}

// submitOf returns the op of a submit, in a call whose ops share the contents of whole.
func submitOf(whole history.Op, task *wire.NewTask) history.Op {
	op := whole
	op.Kind, op.Key, op.TaskType, op.Priority, op.Group, op.ShareKey = history.Submit, task.IdempotencyKey, task.TaskType, task.Priority, task.Group, task.ShareKey
	op.Params, op.DelayMS, op.MaxAttempts, op.Plan = string(task.Params), value(task.DelayMS), value(task.MaxAttempts), planOf(task)
	return op
}

// planOf returns the recorded form of a task's steps, nil if it has none. Unknown names of
// steps are left out.
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

// claimOf returns the op of a claim.
func claimOf(whole history.Op, req *wire.Claim) history.Op {
	op := whole
	op.Kind, op.Worker, op.RequestID, op.LeaseMS = history.Claim, req.WorkerID, req.ClaimRequestID, req.LeaseMS
	op.Types, op.SortBy, op.Limit, op.WaitMS = req.TaskTypes, req.SortBy, req.Limit, req.WaitMS
	return op
}

// settleOf returns the op of a settling call.
func settleOf(whole history.Op, kind history.Kind, taskID uint64, s *wire.Settle) history.Op {
	op := whole
	op.Kind, op.TaskID, op.Token, op.Worker = kind, taskID, s.ClaimToken, s.WorkerID
	op.Result, op.LeaseMS, op.DelayMS = string(s.Result), s.LeaseMS, s.DelayMS
	return op
}

// takeSeen takes the current task.
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

// claimExtended is the message to a processor that already had the claim.
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
