package api

import (
	"math"
	"strconv"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// submitRequest is the body of a submit.
type submitRequest struct {
	many  bool
	tasks []fsm.NewTask // the valid ones, in order
	// items says per task of a submit of many what is wrong with it, nil for
	// a valid one.
	items []*refusal
}

// decodeSubmit reads the body of POST /api/tasks: one task, or many in tasks.
// Of many, an invalid task is noted in its place; of one it is the refusal.
func decodeSubmit(body []byte, limits *Limits) (submitRequest, *refusal) {
	var req submitRequest
	d := newDecoder(body, limits)
	defer d.free()
	if isBlank(body) {
		return req, &refusal{code: wire.CodeInvalidRequest, text: "The body is empty", advice: "Send a task as a JSON object, with params or payload"}
	}
	d.code = wire.CodeInvalidTask
	task, single := newTaskFields(), false
	bad := d.fields(func(name []byte) *refusal {
		isTasks := string(name) == "tasks"
		if isTasks && d.isNull() {
			return d.skip()
		}
		if req.many || isTasks && single {
			return d.mixed()
		}
		if isTasks {
			return d.tasks(&req)
		}
		single = true
		return d.taskField(name, &task)
	})
	if bad != nil || req.many {
		return req, bad
	}
	if bad := d.checkTask(&task); bad != nil {
		return req, bad
	}
	req.tasks = []fsm.NewTask{task}
	return req, nil
}

// newTaskFields is a task before its fields are read.
func newTaskFields() fsm.NewTask {
	return fsm.NewTask{Type: "default", MaxAttempts: fsm.DefaultAttempts}
}

func (d *decoder) mixed() *refusal {
	return &refusal{
		code: wire.CodeInvalidRequest, field: "tasks",
		text: "tasks stands beside other fields", advice: "Send one task's fields, or only tasks with an array of tasks",
	}
}

// tasks reads the array of a submit of many.
func (d *decoder) tasks(req *submitRequest) *refusal {
	d.code = wire.CodeInvalidRequest
	defer func() { d.code, d.item = wire.CodeInvalidTask, -1 }()
	allowed := "an array of 1 to " + strconv.Itoa(d.limits.Items) + " tasks"
	ok, bad := d.beginArray("tasks", allowed)
	if bad != nil || !ok {
		return bad
	}
	req.many = true
	for i := 0; ; i++ {
		ended, bad := d.endArray()
		if bad != nil {
			return bad
		}
		if ended {
			break
		}
		if i == d.limits.Items {
			return d.invalid("tasks", allowed)
		}
		d.code, d.item = wire.CodeInvalidTask, i
		task := newTaskFields()
		bad = d.task(&task)
		if bad != nil && bad.syntax {
			return bad
		}
		if bad == nil {
			req.tasks = append(req.tasks, task)
		}
		req.items = append(req.items, bad)
		d.code, d.item = wire.CodeInvalidRequest, -1
	}
	if len(req.items) == 0 {
		return d.invalid("tasks", allowed)
	}
	return nil
}

// task reads one task of an array, to its end even if a field is refused.
func (d *decoder) task(t *fsm.NewTask) *refusal {
	ok, bad := d.beginItem()
	if bad != nil {
		return bad
	}
	if !ok {
		return d.invalid("", "an object")
	}
	for {
		name, more, bad := d.next()
		if bad != nil {
			return bad
		}
		if !more {
			return d.checkTask(t)
		}
		if bad := d.taskField(name, t); bad != nil {
			if syntax := d.skipRest(bad); syntax != nil {
				return syntax
			}
			return bad
		}
	}
}

// skipRest skips the rest of the object whose field was refused.
func (d *decoder) skipRest(bad *refusal) *refusal {
	if bad.syntax {
		return bad
	}
	return d.skipObject()
}

// taskField reads one field of a task.
func (d *decoder) taskField(name []byte, t *fsm.NewTask) (bad *refusal) {
	var n int64
	var ok bool
	switch string(name) {
	case "task_type":
		var taskType string
		if taskType, ok, bad = d.taskType("task_type"); ok {
			t.Type = taskType
		}
	case "params":
		t.Params, bad = d.raw("params")
	case "payload":
		if t.Payload, bad = d.base64("payload"); bad == nil && t.Payload != nil && len(t.Payload) == 0 {
			bad = d.invalid("payload", "at least one byte, in base64,")
		}
	case "priority":
		n, _, bad = d.integer("priority", math.MinInt32, math.MaxInt32)
		t.Priority = int32(n)
	case "max_attempts":
		if n, ok, bad = d.integer("max_attempts", 0, math.MaxInt32); ok {
			t.MaxAttempts = int32(n)
		}
	case "idempotency_key":
		t.Key, _, bad = d.key("idempotency_key", keyMax)
	case "lease_ms":
		t.LeaseMS, _, bad = d.integer("lease_ms", leaseMSMin, leaseMSMax)
	default:
		bad = d.unknown(name)
	}
	return bad
}

// checkTask checks what one field alone does not show.
func (d *decoder) checkTask(t *fsm.NewTask) *refusal {
	switch {
	case t.Params != nil && t.Payload != nil:
		return &refusal{code: d.code, field: d.path("payload"), text: "params and payload are both given", advice: "Send exactly one of params and payload"}
	case t.Params == nil && t.Payload == nil:
		return &refusal{code: d.code, field: d.path("params"), text: "Missing required field: params", advice: "Send exactly one of params (any JSON) and payload (base64)"}
	}
	return nil
}
