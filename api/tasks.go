package api

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/encode"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm"
)

// Submit answers POST /api/tasks.
func Submit(r *request) {
	req, bad := callbody.DecodeSubmit(r.http.Request.Body(), &r.server.cfg.Limits)
	if bad != nil {
		r.refuse(bad)
		return
	}
	var p fsm.Proposed
	if len(req.Tasks) > 0 {
		var ok bool
		r.trace(req.Tasks)
		r.narrowKeys(req.Tasks)
		if p, ok = r.proposeTask(fsm.Submit{Tasks: req.Tasks}); !ok {
			return
		}
	}
	if req.Many {
		r.send(fasthttp.StatusOK, callbody.AppendSubmitMany(r.body(), req.Items, p.Result.Submitted))
		return
	}
	done := &p.Result.Submitted[0]
	status := fasthttp.StatusOK
	if done.Created {
		status = fasthttp.StatusCreated
	}
	r.send(status, callbody.AppendSubmitOne(r.body(), &p))
}

// Get answers GET /api/tasks/{id}.
func Get(r *request) {
	q, bad := parseGet(r, false)
	if bad != nil {
		r.refuse(bad)
		return
	}
	answerTask(r, q.waitMS, func(m *fsm.Machine) (*fsm.Task, *refuse.Refusal) { return m.Get(r.target.id), nil })
}

// GetByKey answers GET /api/tasks/by-key/{key}.
func GetByKey(r *request) {
	q, bad := parseGet(r, true)
	if bad == nil && q.taskType != "" {
		bad = r.refuseFilter("task_type", q.taskType)
	}
	if bad != nil {
		r.refuse(bad)
		return
	}
	key, ok := unescape(r.target.rest, false)
	if !ok || !bound.ValidKey(key, bound.KeyMax) {
		r.refuse(refuse.Param("idempotency_key", "Invalid idempotency_key: must be 1 to 256 bytes of percent-encoded UTF-8 without control characters"))
		return
	}
	answerTask(r, q.waitMS, func(m *fsm.Machine) (*fsm.Task, *refuse.Refusal) { return r.byKey(m, q.taskType, key) })
}

// answerTask answers with the task that find finds, once it has ended or waitMS is over.
func answerTask(r *request, waitMS int64, find func(m *fsm.Machine) (*fsm.Task, *refuse.Refusal)) {
	task, view, ok := look(r, find)
	if wait := r.waitLeft(waitMS); ok && wait > 0 && !task.Status.Ended() {
		// The key may be another task's by then.
		id := task.ID
		if ok = r.waitEnded(id, wait); ok {
			task, view, ok = look(r, func(m *fsm.Machine) (*fsm.Task, *refuse.Refusal) { return m.Get(id), nil })
		}
	}
	if !ok {
		return
	}
	b := append(r.body(), `{"success":true,"task":`...)
	b = encode.Task(b, &task, view)
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// HeldGet returns for how long a GET of a task may be held.
func HeldGet(r *request) time.Duration {
	q, bad := parseGet(r, true)
	if bad != nil {
		return 0
	}
	return r.waitLeft(q.waitMS)
}

// look reads the task that find finds, and all that is shown of it. ok is false if
// there is an answer already.
func look(r *request, find func(m *fsm.Machine) (*fsm.Task, *refuse.Refusal)) (task fsm.Task, view encode.View, ok bool) {
	view = encode.View{Params: true, Result: true, Log: true}
	var bad *refuse.Refusal
	ok = r.read(func(m *fsm.Machine, stamp fsm.Stamp) {
		var t *fsm.Task
		if t, bad = find(m); bad == nil {
			bad = r.refuseTask(m, t)
		}
		if bad == nil {
			task, view.Now, view.Steps, view.InForce = *t, stamp, m.Steps(t.ID), new(m.InForce(t))
		}
	})
	if ok && bad != nil {
		r.refuse(bad)
	}
	return task, view, ok && bad == nil
}

// getQuery is the query of a call that gets one task.
type getQuery struct {
	waitMS   int64  // 0 if it is not given
	taskType string // of the idempotency key; "" if it is not given
}

// parseGet reads it. byKey allows what goes with an idempotency key.
func parseGet(r *request, byKey bool) (q getQuery, bad *refuse.Refusal) {
	for _, p := range r.query {
		switch {
		case p.name == "wait_ms":
			n, err := strconv.ParseUint(p.value, 10, 63)
			if err != nil || n > bound.WaitMSMax {
				return q, badParam(p.name, "an integer from 0 to "+strconv.Itoa(bound.WaitMSMax))
			}
			q.waitMS = int64(n)
		case p.name == "task_type" && byKey:
			if q.taskType = p.value; !bound.ValidTaskType(p.value) {
				return q, badParam(p.name, bound.TaskTypeAllowed)
			}
		default:
			return q, unknownParam(p.name)
		}
	}
	return q, nil
}

// Delete answers DELETE /api/tasks/{id}.
func Delete(r *request) {
	if _, ok := r.proposeTask(fsm.Delete{ID: r.target.id}); ok {
		r.send(fasthttp.StatusOK, append(r.body(), `{"success":true,"deleted":1}`...))
	}
}
