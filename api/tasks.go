package api

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/encode"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Submit answers POST /api/tasks.
func Submit(r *exchange.Request) {
	req, bad := callbody.DecodeSubmit(r.HTTP.Request.Body(), &r.Server.Cfg.Limits)
	if bad != nil {
		r.Refuse(bad)
		return
	}
	var p nodes.Proposed
	if len(req.Tasks) > 0 {
		var ok bool
		r.Trace(req.Tasks)
		r.NarrowKeys(req.Tasks)
		propose := r.ProposeTask
		if req.Many {
			propose = r.Propose
		}
		if p, ok = propose(command.Submit{Tasks: req.Tasks}); !ok {
			return
		}
	}
	if req.Many {
		r.Send(fasthttp.StatusOK, callbody.AppendSubmitMany(r.Body(), req.Items, p.Result.Submitted))
		return
	}
	done := &p.Result.Submitted[0]
	status := fasthttp.StatusOK
	if done.Created {
		status = fasthttp.StatusCreated
	}
	r.Send(status, callbody.AppendSubmitOne(r.Body(), &p))
}

// Get answers GET /api/tasks/{id}.
func Get(r *exchange.Request) {
	q, bad := parseGet(r, false)
	if bad != nil {
		r.Refuse(bad)
		return
	}
	answerTask(r, q.waitMS, func(m *fsm.Machine) (*fsm.Task, *refuse.Refusal) { return m.Get(r.Target.ID), nil })
}

// GetByKey answers GET /api/tasks/by-key/{key}.
func GetByKey(r *exchange.Request) {
	q, bad := parseGet(r, true)
	if bad == nil && q.taskType != "" {
		bad = r.RefuseFilter("task_type", q.taskType)
	}
	if bad != nil {
		r.Refuse(bad)
		return
	}
	key, ok := exchange.Unescape(r.Target.Rest, false)
	if !ok || !bound.ValidKey(key, bound.KeyMax) {
		r.Refuse(refuse.Param("idempotency_key", "Invalid idempotency_key: must be 1 to 256 bytes of percent-encoded UTF-8 without control characters"))
		return
	}
	answerTask(r, q.waitMS, func(m *fsm.Machine) (*fsm.Task, *refuse.Refusal) { return r.ByKey(m, q.taskType, key) })
}

// answerTask answers with the task that find returns, once it has ended or waitMS has passed.
func answerTask(r *exchange.Request, waitMS int64, find func(m *fsm.Machine) (*fsm.Task, *refuse.Refusal)) {
	task, view, ok := look(r, find)
	if wait := r.WaitLeft(waitMS); ok && wait > 0 && !task.Status.Ended() {
		// The idempotency key may belong to another task by then.
		id := task.ID
		if ok = r.WaitEnded(id, wait); ok {
			task, view, ok = look(r, func(m *fsm.Machine) (*fsm.Task, *refuse.Refusal) { return m.Get(id), nil })
		}
	}
	if !ok || !r.RoomFor(exchange.DataBytes(&task, true, true)+familyBytes(&task, view.Steps)) {
		return
	}
	b := append(r.Body(), `{"success":true,"task":`...)
	b = encode.Task(b, &task, view)
	r.Send(fasthttp.StatusOK, append(b, '}'))
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

// HeldGet returns how long a GET of a task may be held.
func HeldGet(r *exchange.Request) time.Duration {
	q, bad := parseGet(r, true)
	if bad != nil {
		return 0
	}
	return r.WaitLeft(q.waitMS)
}

// look reads the task that find returns, with all that is shown of it. ok is false if the request was already
// answered.
func look(r *exchange.Request, find func(m *fsm.Machine) (*fsm.Task, *refuse.Refusal)) (task fsm.Task, view encode.View, ok bool) {
	view = encode.View{Params: true, Result: true, Log: true}
	var bad *refuse.Refusal
	ok = r.Read(func(m *fsm.Machine, stamp fsm.Stamp) {
		var t *fsm.Task
		if t, bad = find(m); bad == nil {
			bad = r.RefuseTask(m, t)
		}
		if bad == nil {
			task, view.Now, view.Steps, view.InForce = *t, stamp, m.Steps(t.ID), new(m.InForce(t))
			r.Sight().Task(m, &task)
		}
	})
	if ok && bad != nil {
		r.Refuse(bad)
	}
	return task, view, ok && bad == nil
}

// getQuery is the query of a call that gets one task.
type getQuery struct {
	waitMS   int64  // 0 if not given
	taskType string // of the idempotency key; "" if not given
}

// parseGet parses the query. byKey permits the parameters for an idempotency key.
func parseGet(r *exchange.Request, byKey bool) (q getQuery, bad *refuse.Refusal) {
	known := exchange.Params{
		"wait_ms": parsedParam(&q.waitMS, "an integer from 0 to "+strconv.Itoa(bound.WaitMSMax), func(text string) (int64, bool) { return bound.ParseInteger(text, 0, bound.WaitMSMax) }),
	}
	if byKey {
		known["task_type"] = typeParam(&q.taskType)
	}
	bad = r.ReadParams(known)
	return q, bad
}

// Delete answers DELETE /api/tasks/{id}.
func Delete(r *exchange.Request) {
	if _, ok := r.ProposeTask(command.Delete{ID: r.Target.ID}); ok {
		r.Send(fasthttp.StatusOK, append(r.Body(), `{"success":true,"deleted":1}`...))
	}
}
