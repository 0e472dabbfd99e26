package api

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/fsm"
)

// submit answers POST /api/tasks.
func (r *request) submit() {
	req, bad := decodeSubmit(r.http.Request.Body(), &r.server.cfg.Limits)
	if bad != nil {
		r.refuse(bad)
		return
	}
	var p fsm.Proposed
	if len(req.tasks) > 0 {
		var ok bool
		r.trace(req.tasks)
		r.narrowKeys(req.tasks)
		if p, ok = r.proposeTask(fsm.Submit{Tasks: req.tasks}); !ok {
			return
		}
	}
	if req.many {
		r.send(fasthttp.StatusOK, appendSubmitMany(r.body(), req.items, p.Result.Submitted))
		return
	}
	done := &p.Result.Submitted[0]
	status := fasthttp.StatusOK
	if done.Created {
		status = fasthttp.StatusCreated
	}
	r.send(status, appendSubmitOne(r.body(), &p))
}

// submitBody is a batch's op that submits a task.
type submitBody struct{ draft }

func (c *submitBody) field(d *decoder, name []byte) *refusal { return d.taskField(name, &c.draft) }

func (c *submitBody) check(d *decoder) *refusal { return d.checkTask(&c.draft) }

func (c *submitBody) command() fsm.Command { return fsm.Submit{Tasks: []fsm.NewTask{c.NewTask}} }

func (c *submitBody) answer(b []byte, p *fsm.Proposed) []byte {
	return appendSubmitOne(b, p)
}

func appendSubmitOne(b []byte, p *fsm.Proposed) []byte {
	done := &p.Result.Submitted[0]
	b = append(b, `{"success":true,"task":`...)
	if done.Gone {
		b = appendGone(b, done.Task)
	} else {
		b = appendTask(b, done.Task, taskView{now: p.Stamp, params: true, result: true, steps: stepsOf(&p.Result)})
	}
	b = appendCreated(b, done.Created, done.SameRequest)
	return append(b, '}')
}

// appendCreated appends created, and same_request where it says something.
func appendCreated(b []byte, created, same bool) []byte {
	if created {
		return append(b, `,"created":true`...)
	}
	b = append(b, `,"created":false`...)
	if !same {
		b = append(b, `,"same_request":false`...)
	}
	return b
}

// appendSubmitMany appends the answer to a submit of many: items says what is
// wrong with each, done has what became of the others, in order.
func appendSubmitMany(b []byte, items []*refusal, done []fsm.Submitted) []byte {
	b = append(b, `{"success":true,"results":[`...)
	failed := 0
	for i, bad := range items {
		if i > 0 {
			b = append(b, ',')
		}
		if bad != nil {
			failed++
			b = append(b, `{"error":`...)
			b = appendString(b, bad.text)
			b = append(b, `,"code":"`...)
			b = append(b, bad.code...)
			b = append(b, `","message":`...)
			b = appendString(b, bad.advice)
			b = append(b, `,"field":`...)
			b = appendString(b, bad.field)
			b = append(b, '}')
			continue
		}
		b = append(b, `{"id":`...)
		b = strconv.AppendUint(b, done[0].Task.ID, 10)
		b = appendCreated(b, done[0].Created, done[0].SameRequest)
		b = append(b, '}')
		done = done[1:]
	}
	b = append(b, `],"failed":`...)
	b = strconv.AppendInt(b, int64(failed), 10)
	return append(b, '}')
}

// get answers GET /api/tasks/{id} and GET /api/tasks/by-key/{key}.
func (r *request) get() {
	q, bad := r.parseGet()
	if bad == nil && q.taskType != "" {
		bad = r.refuseFilter("task_type", q.taskType)
	}
	if bad != nil {
		r.refuse(bad)
		return
	}
	find := func(m *fsm.Machine) (*fsm.Task, *refusal) { return m.Get(r.target.id), nil }
	if r.target.call == callGetByKey {
		key, ok := unescape(r.target.rest, false)
		if !ok || !validKey(key, keyMax) {
			r.refuse(refuseParam("idempotency_key", "Invalid idempotency_key: 1 to 256 bytes of percent-encoded UTF-8 without control characters are allowed"))
			return
		}
		find = func(m *fsm.Machine) (*fsm.Task, *refusal) { return r.byKey(m, q.taskType, key) }
	}
	task, view, ok := r.look(find)
	if wait := r.waitLeft(q.waitMS); ok && wait > 0 && !task.Status.Ended() {
		// The key may be another task's by then.
		id := task.ID
		if ok = r.waitEnded(id, wait); ok {
			task, view, ok = r.look(func(m *fsm.Machine) (*fsm.Task, *refusal) { return m.Get(id), nil })
		}
	}
	if !ok {
		return
	}
	b := append(r.body(), `{"success":true,"task":`...)
	b = appendTask(b, &task, view)
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// look reads the task that find finds, and all that is shown of it. ok is false if
// there is an answer already.
func (r *request) look(find func(m *fsm.Machine) (*fsm.Task, *refusal)) (task fsm.Task, view taskView, ok bool) {
	view = taskView{params: true, result: true, log: true}
	var bad *refusal
	ok = r.read(func(m *fsm.Machine, stamp fsm.Stamp) {
		var t *fsm.Task
		if t, bad = find(m); bad == nil {
			bad = r.refuseTask(m, t)
		}
		if bad == nil {
			task, view.now, view.steps = *t, stamp, m.Steps(t.ID)
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

// parseGet reads it.
func (r *request) parseGet() (q getQuery, bad *refusal) {
	for _, p := range r.query {
		switch {
		case p.name == "wait_ms":
			n, err := strconv.ParseUint(p.value, 10, 63)
			if err != nil || n > waitMSMax {
				return q, badParam(p.name, "an integer from 0 to "+strconv.Itoa(waitMSMax))
			}
			q.waitMS = int64(n)
		case p.name == "task_type" && r.target.call == callGetByKey:
			if q.taskType = p.value; !validTaskType(p.value) {
				return q, badParam(p.name, taskTypeAllowed)
			}
		default:
			return q, unknownParam(p.name)
		}
	}
	return q, nil
}

// delete answers DELETE /api/tasks/{id}.
func (r *request) delete() {
	if _, ok := r.proposeTask(fsm.Delete{ID: r.target.id}); ok {
		r.send(fasthttp.StatusOK, append(r.body(), `{"success":true,"deleted":1}`...))
	}
}
