package api

import (
	"math"

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
	task, single := newDraft(), false
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
	req.tasks = []fsm.NewTask{task.NewTask}
	return req, nil
}

// draft is a task whose fields are being read.
type draft struct {
	fsm.NewTask
	delayed bool // delay_ms was given
	// ofParents is the first field given of those that only a task with steps
	// has beside them; byClaim and goesOn are what they say.
	ofParents       string
	byClaim, goesOn bool
}

func newDraft() draft {
	return draft{NewTask: fsm.NewTask{Type: "default", MaxAttempts: fsm.DefaultAttempts}}
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
	defer func() { d.code = wire.CodeInvalidTask }()
	ok, bad := d.taskArray("tasks", func(t *draft, bad *refusal) *refusal {
		if req.items == nil {
			n := d.likeThis()
			req.tasks, req.items = make([]fsm.NewTask, 0, n), make([]*refusal, 0, n)
		}
		if bad == nil {
			req.tasks = append(req.tasks, t.NewTask)
		}
		req.items = append(req.items, bad)
		return nil
	})
	req.many = ok
	return bad
}

// likeThis returns how many things the body has if all are as long as its beginning
// up to here, which is the first of them: at most as many as are allowed.
func (d *decoder) likeThis() int {
	return min(len(d.body)/int(d.dec.InputOffset())+1, d.limits.Items)
}

// taskArray reads an array of 1 to 1,000 tasks. It calls each with every one
// and with what is wrong with it; what each returns ends the array.
func (d *decoder) taskArray(field string, each func(t *draft, bad *refusal) *refusal) (ok bool, bad *refusal) {
	outer := d.code
	var task draft // one for all of them
	return d.array(field, "tasks", d.limits.Items, func() *refusal {
		d.code = wire.CodeInvalidTask
		defer func() { d.code = outer }()
		before := d.submits
		if bad := d.countTask(); bad != nil {
			return bad
		}
		task = newDraft()
		bad := d.task(&task)
		if bad != nil && bad.syntax {
			return bad
		}
		if bad != nil {
			d.submits = before // it is not submitted
		}
		return each(&task, bad)
	})
}

// task reads one task of an array, to its end even if a field is refused.
func (d *decoder) task(t *draft) *refusal {
	ok, bad := d.beginItem()
	if bad != nil {
		return bad
	}
	if !ok {
		return d.invalid("", "an object")
	}
	depth := d.dec.StackDepth()
	for {
		name, more, bad := d.next()
		if bad != nil {
			return bad
		}
		if !more {
			return d.checkTask(t)
		}
		if bad := d.taskField(name, t); bad != nil {
			if syntax := d.skipRest(bad, depth); syntax != nil {
				return syntax
			}
			return bad
		}
	}
}

// skipRest skips the rest of the object at that depth, a field of which was
// refused. It returns what of that, or of the refusal, is about the syntax.
func (d *decoder) skipRest(bad *refusal, depth int) *refusal {
	if bad.syntax {
		return bad
	}
	return d.skipOut(depth)
}

// taskField reads one field of a task.
func (d *decoder) taskField(name []byte, t *draft) (bad *refusal) {
	var n int64
	var ok bool
	switch string(name) {
	case "task_type":
		var taskType string
		if taskType, ok, bad = d.taskType("task_type"); ok {
			t.Type = taskType
		}
	case "params":
		t.Params, bad = d.raw("params", d.limits.ValueBytes)
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
		bad = d.taskOption(name, t)
	}
	return bad
}

// taskOption reads one of the rarer fields of a task.
func (d *decoder) taskOption(name []byte, t *draft) (bad *refusal) {
	switch string(name) {
	case "run_at":
		t.RunAt, _, bad = d.instant("run_at")
	case "delay_ms":
		t.DelayMS, t.delayed, bad = d.integer("delay_ms", 0, delayMSMax)
	case "expires_at":
		t.ExpiresAt, _, bad = d.instant("expires_at")
	case "backoff":
		t.Backoff, bad = d.backoff()
	case "retention_ms":
		t.RetentionMS, _, bad = d.retention()
	case "labels":
		t.Labels, bad = d.labels()
	case "group":
		t.Group, _, bad = d.key("group", groupMax)
	case "unique":
		t.UniqueActive, bad = d.unique()
	case "steps", "finalize", "on_step_failure":
		bad = d.parentField(name, t)
	default:
		bad = d.unknown(name)
	}
	return bad
}

// unique reads unique: whether a key is taken only until its task ends.
func (d *decoder) unique() (active bool, bad *refusal) {
	const allowed = `"exists" or "active"`
	s, ok, bad := d.text("unique", allowed)
	if !ok || bad != nil {
		return false, bad
	}
	active = string(s) == "active"
	if !active && string(s) != "exists" {
		return false, d.invalid("unique", allowed)
	}
	return active, nil
}

// checkTask checks what one field alone does not show.
func (d *decoder) checkTask(t *draft) *refusal {
	if t.Parent != nil || t.ofParents != "" {
		if bad := d.checkParent(t); bad != nil {
			return bad
		}
	}
	switch {
	case t.RunAt != 0 && t.delayed:
		return &refusal{code: d.code, field: d.path("delay_ms"), text: "run_at and delay_ms are both given", advice: "Send at most one of run_at and delay_ms"}
	case t.Params != nil && t.Payload != nil:
		return &refusal{code: d.code, field: d.path("payload"), text: "params and payload are both given", advice: "Send exactly one of params and payload"}
	case t.Params == nil && t.Payload == nil && t.Parent == nil:
		return &refusal{code: d.code, field: d.path("params"), text: "Missing required field: " + d.path("params"), advice: "Send exactly one of params (any JSON) and payload (base64)"}
	}
	return nil
}
