package api

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// submitTasks answers POST /api/tasks.
func submitTasks(r *request) {
	req, bad := codec.DecodeSubmit(r.input(), r.limits())
	if bad != nil {
		r.refuse(bad)
		return
	}
	var p nodes.Proposed
	if len(req.Tasks) > 0 {
		var ok bool
		r.trace(req.Tasks)
		r.narrowKeys(req.Tasks)
		propose := r.proposeTask
		if req.Many {
			propose = r.propose
		}
		if p, ok = propose(command.Submit{Tasks: req.Tasks}); !ok {
			return
		}
	}
	if req.Many {
		r.send(fasthttp.StatusOK, codec.AppendSubmitMany(r.buffer(), req.Items, p.Result.Submitted))
		return
	}
	done := &p.Result.Submitted[0]
	status := fasthttp.StatusOK
	if done.Created {
		status = fasthttp.StatusCreated
	}
	r.send(status, codec.AppendSubmitOne(r.buffer(), &p))
}

// getTask answers GET /api/tasks/{id}.
func getTask(r *request) {
	q, bad := parseGet(r, false)
	if bad != nil {
		r.refuse(bad)
		return
	}
	answerTask(r, q.waitMS, func(m *fsm.Machine) (*fsm.Task, *refuse.Refusal) { return m.Get(r.taskID()), nil })
}

// getTaskByKey answers GET /api/tasks/by-key/{key}.
func getTaskByKey(r *request) {
	q, bad := parseGet(r, true)
	if bad == nil && q.taskType != "" {
		bad = r.refuseFilter("task_type", q.taskType)
	}
	if bad != nil {
		r.refuse(bad)
		return
	}
	key, ok := unescape(r.rest(), false)
	if !ok || !wire.ValidKey(key, wire.KeyMax) {
		r.refuse(refuse.Param("idempotency_key", "Invalid idempotency_key: must be 1 to 256 bytes of percent-encoded UTF-8 without control characters"))
		return
	}
	answerTask(r, q.waitMS, func(m *fsm.Machine) (*fsm.Task, *refuse.Refusal) { return r.byKey(m, q.taskType, key) })
}

// answerTask answers with the task that find returns, once it has ended or waitMS has passed.
func answerTask(r *request, waitMS int64, find func(m *fsm.Machine) (*fsm.Task, *refuse.Refusal)) {
	task, view, ok := look(r, find)
	if wait := r.waitLeft(waitMS); ok && wait > 0 && !task.Status.Ended() {
		// The idempotency key may belong to another task by then.
		id := task.ID
		if ok = r.waitEnded(id, wait); ok {
			task, view, ok = look(r, func(m *fsm.Machine) (*fsm.Task, *refuse.Refusal) { return m.Get(id), nil })
		}
	}
	if !ok || !r.reserveAnswer(dataBytes(&task, true, true)+familyBytes(&task, view.Steps)) {
		return
	}
	b := append(r.buffer(), `{"success":true,"task":`...)
	b = codec.AppendTask(b, &task, view)
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// familyBytes is the approximate size of a task's steps in the answer about it.
func familyBytes(t *fsm.Task, steps []fsm.StepView) (n int) {
	if p := t.Parent(); p != nil {
		for i := range p.Plan.Steps {
			n += stepBytes + len(p.Plan.Steps[i].DependsOn)*stepNameBytes
		}
		for i := range steps {
			n += len(steps[i].Error)
		}
	}
	return n
}

// look reads the task that find returns, with all that is shown of it. ok is false if the request was already
// answered.
func look(r *request, find func(m *fsm.Machine) (*fsm.Task, *refuse.Refusal)) (task fsm.Task, view codec.View, ok bool) {
	view = codec.View{Params: true, Result: true, Log: true}
	var bad *refuse.Refusal
	ok = r.read(func(m *fsm.Machine, stamp fsm.Stamp) {
		var t *fsm.Task
		if t, bad = find(m); bad == nil {
			bad = r.refuseTask(m, t)
		}
		if bad == nil {
			task, view.Now, view.Steps, view.InForce = *t, stamp, m.Steps(t.ID), new(m.InForce(t))
			r.sight().redactTask(m, &task)
		}
	})
	if ok && bad != nil {
		r.refuse(bad)
	}
	return task, view, ok && bad == nil
}

// getQuery is the query of a call that gets one task.
type getQuery struct {
	waitMS   int64  // 0 if not given
	taskType string // of the idempotency key; "" if not given
}

// parseGet parses the query. byKey permits the parameters for an idempotency key.
func parseGet(r *request, byKey bool) (q getQuery, bad *refuse.Refusal) {
	known := params{
		"wait_ms": parsedParam(&q.waitMS, "an integer from 0 to "+strconv.Itoa(wire.WaitMSMax), func(text string) (int64, bool) { return wire.ParseInteger(text, 0, wire.WaitMSMax) }),
	}
	if byKey {
		known["task_type"] = typeParam(&q.taskType)
	}
	bad = r.readParams(known)
	return q, bad
}

// signalTask answers POST /api/tasks/{id}/signal.
func signalTask(r *request) {
	c := new(codec.Signal)
	c.Cmd.By = r.by()
	act(r, codec.OfTask(c, r.taskID()))
}

// deleteTask answers DELETE /api/tasks/{id}.
func deleteTask(r *request) {
	if _, ok := r.proposeTask(command.Delete{ID: r.taskID()}); ok {
		r.send(fasthttp.StatusOK, append(r.buffer(), `{"success":true,"deleted":1}`...))
	}
}

// claimTasks answers POST /api/tasks/claim.
func claimTasks(r *request) {
	req, bad := codec.DecodeClaim(r.input(), r.limits())
	if bad != nil {
		r.refuse(bad)
		return
	}
	r.narrowClaim(&req)
	p, gone, ok := proposeClaim(r, req.Cmd, r.waitLeft(req.WaitMS))
	if !ok {
		return
	}
	r.includeDependencies(&p, &req, p.Result.Claims, new(int))
	switch {
	case gone && len(r.delivery.holds) > 0:
		r.releaseClaims()
		r.refuseGone()
	case req.Many:
		r.send(fasthttp.StatusOK, req.AppendMany(r.bufferFor(&p.Result), &p))
	case len(p.Result.Claims) == 0:
		r.outcome.code = wire.CodeNoPendingTasks
		r.send(fasthttp.StatusNotFound, codec.AppendNoTasks(r.buffer(), &req, r.id))
	default:
		r.send(fasthttp.StatusOK, codec.AppendClaim(r.buffer(), &p, req.Dependencies))
	}
}

// includeDependencies adds to the claim what it includes of the claims that it took.
func (r *request) includeDependencies(p *nodes.Proposed, req *codec.Claim, claims []fsm.Claim, used *int) {
	if req != nil && req.Include && len(claims) > 0 {
		req.Dependencies = r.readDependencies(p, claims, used)
	}
}

// proposeClaim proposes a claim that may wait for up to wait. gone says that the client disconnected meanwhile.
func proposeClaim(r *request, cmd command.ClaimNext, wait time.Duration) (p nodes.Proposed, gone, ok bool) {
	if wait > 0 {
		if bad := r.permit(cmd); bad != nil {
			r.refuse(bad)
			return p, false, false
		}
		return r.proposeWaiting(cmd, wait)
	}
	p, ok = r.proposeTask(cmd)
	return p, false, ok
}

// claimTask answers POST /api/tasks/{id}/claim.
func claimTask(r *request) {
	cmd, include, bad := codec.DecodeClaimTask(r.taskID(), r.input(), r.limits())
	if bad != nil {
		r.refuse(bad)
		return
	}
	cmd.RequestID = r.narrowRequestID(cmd.RequestID)
	if p, ok := r.proposeTask(cmd); ok {
		req := codec.Claim{Include: include}
		r.includeDependencies(&p, &req, p.Result.Claims, new(int))
		r.send(fasthttp.StatusOK, codec.AppendClaim(r.buffer(), &p, req.Dependencies))
	}
}

// taskBody is the constraint of *B for a B that is the body of a call about one task.
type taskBody[B any] interface {
	*B
	codec.TaskBody
}

// taskCall answers a call about the task in the path, with a body of type B.
func taskCall[B any, P taskBody[B]](r *request) {
	act(r, codec.OfTask(P(new(B)), r.taskID()))
}

// act answers a call with status 200: it decodes the body, proposes the command and answers with its result. ok is
// false if it was refused.
func act(r *request, c codec.Body) (cmd command.Command, p nodes.Proposed, ok bool) {
	if bad := codec.Decode(c, r.input(), r.limits()); bad != nil {
		r.refuse(bad)
		return nil, p, false
	}
	cmd = c.Command()
	if p, ok = r.proposeTask(cmd); ok {
		r.send(fasthttp.StatusOK, c.Answer(r.buffer(), &p))
	}
	return cmd, p, ok
}

// completeTask answers POST /api/tasks/{id}/complete.
func completeTask(r *request) {
	c, bad := codec.DecodeComplete(r.taskID(), r.input(), r.limits())
	if bad != nil {
		r.refuse(bad)
		return
	}
	r.trace(c.Cmd.Submit)
	r.narrowKeys(c.Cmd.Submit)
	r.narrowClaim(c.Claim)
	p, ok := r.proposeTask(c.Command())
	if !ok {
		return
	}
	r.includeDependencies(&p, c.Claim, p.Result.Claims, new(int))
	r.send(fasthttp.StatusOK, c.Answer(r.buffer(), &p))
}

// headerTraceparent is the W3C trace context of a request that submits tasks, as fasthttp spells it.
const headerTraceparent = "Traceparent"

// traceparent returns the request's trace context, or "" if it is missing or malformed, which is no reason to refuse
// a task.
func (r *request) traceparent() string {
	v := r.header(headerTraceparent)
	if len(v) == 0 || !wire.ValidTraceparent(v) {
		return ""
	}
	return string(v)
}

// trace gives the request's trace context to the tasks that it submits, except those that have their own.
func (r *request) trace(tasks []fsm.NewTask) {
	if len(tasks) > 0 {
		setTrace(tasks, r.traceparent())
	}
}

func setTrace(tasks []fsm.NewTask, traceparent string) {
	for i := range tasks {
		traceOne(&tasks[i], traceparent)
	}
}

// traceOne sets the trace context of a task that has none, and copies the task's to its steps.
func traceOne(t *fsm.NewTask, traceparent string) {
	if t.Traceparent == "" {
		t.Traceparent = traceparent
	}
	if t.Parent == nil {
		return
	}
	for i := range t.Parent.Steps {
		t.Parent.Steps[i].Task.Traceparent = t.Traceparent
	}
}

// traceOps is trace for the tasks that the ops submit.
func (r *request) traceOps(req *codec.Batch) {
	traceparent := r.traceparent()
	for _, body := range req.Ops {
		switch c := body.(type) {
		case *codec.SubmitOne:
			traceOne(&c.NewTask, traceparent)
		case *codec.Complete:
			setTrace(c.Cmd.Submit, traceparent)
		}
	}
}
