package codec

import (
	"math"
	"strconv"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// Submit is the body of a submit.
type Submit struct {
	Many  bool
	Tasks []fsm.NewTask // the valid ones, in order
	// Items has the refusal of each task of a submit of many, nil for a valid one.
	Items []*refuse.Refusal
}

// DecodeSubmit decodes the body of POST /api/tasks: one task, or many in tasks. Of many, an invalid task gets its
// refusal in Items; a single invalid one is refused.
func DecodeSubmit(body []byte, limits *Limits) (Submit, *refuse.Refusal) {
	var req Submit
	d := NewDecoder(body, limits)
	defer d.Free()
	if isBlank(body) {
		return req, &refuse.Refusal{Code: wire.CodeInvalidRequest, Text: "The body is empty", Advice: "Send a task as a JSON object, with params or payload"}
	}
	d.code = wire.CodeInvalidTask
	task, single := newDraft(), false
	bad := d.Fields(func(name []byte) *refuse.Refusal {
		isTasks := string(name) == "tasks"
		if isTasks && d.IsNull() {
			return d.skip()
		}
		if req.Many || isTasks && single {
			return d.mixed()
		}
		if isTasks {
			return d.tasks(&req)
		}
		single = true
		return d.taskField(name, &task)
	})
	if bad != nil || req.Many {
		return req, bad
	}
	if bad := d.checkTask(&task); bad != nil {
		return req, bad
	}
	req.Tasks = []fsm.NewTask{task.NewTask}
	return req, nil
}

// draft is a task whose fields are being read.
type draft struct {
	fsm.NewTask
	delayed bool // delay_ms was given
	window  bool // unique is window
	// scheduled: it is the task of a schedule, or a step of that.
	scheduled bool
	// ofParents is the first given field that requires steps; byClaim and goesOn are the values of such fields.
	ofParents       string
	byClaim, goesOn bool
	// names returns the valid fields, if they differ from those of any task.
	names func() []string
}

func newDraft() draft {
	return draft{NewTask: fsm.NewTask{Type: "default", MaxAttempts: fsm.DefaultAttempts}}
}

func (d *Decoder) mixed() *refuse.Refusal {
	return refuse.New(wire.CodeInvalidRequest, "tasks cannot be combined with other fields",
		"Send one task's fields, or only tasks with an array of tasks").At("tasks")
}

// tasks reads the array of a submit of many.
func (d *Decoder) tasks(req *Submit) *refuse.Refusal {
	d.code = wire.CodeInvalidRequest
	defer func() { d.code = wire.CodeInvalidTask }()
	ok, bad := d.taskArray("tasks", func(t *draft, bad *refuse.Refusal) *refuse.Refusal {
		if req.Items == nil {
			n := d.estimateElements()
			req.Tasks, req.Items = make([]fsm.NewTask, 0, n), make([]*refuse.Refusal, 0, n)
		}
		if bad == nil {
			req.Tasks = append(req.Tasks, t.NewTask)
		}
		req.Items = append(req.Items, bad)
		return nil
	})
	req.Many = ok
	return bad
}

// estimateElements estimates how many elements the body has, from the length up to the end of the first one, limited to the
// allowed number.
func (d *Decoder) estimateElements() int {
	return min(len(d.body)/int(d.dec.InputOffset())+1, d.limits.Items)
}

// taskArray reads an array of 1 to 1,000 tasks. It calls each with every task and its refusal; a refusal returned by
// each ends the array.
func (d *Decoder) taskArray(field string, each func(t *draft, bad *refuse.Refusal) *refuse.Refusal) (ok bool, bad *refuse.Refusal) {
	outer := d.code
	var task draft // reused for all of them
	return d.array(field, "tasks", d.limits.Items, func() *refuse.Refusal {
		d.code = wire.CodeInvalidTask
		defer func() { d.code = outer }()
		before := d.submits
		if bad := d.countTask(); bad != nil {
			return bad
		}
		task = newDraft()
		bad := d.task(&task)
		if bad != nil && bad.Syntax {
			return bad
		}
		if bad != nil {
			d.submits = before // it is not submitted
		}
		return each(&task, bad)
	})
}

// task reads one task of an array, to its end even if a field is refused.
func (d *Decoder) task(t *draft) *refuse.Refusal {
	if bad := d.beginItem(); bad != nil {
		return bad
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

// skipRest skips the rest of the object at that depth after a field was refused. It returns a refusal only if it is
// about the syntax.
func (d *Decoder) skipRest(bad *refuse.Refusal, depth int) *refuse.Refusal {
	if bad.Syntax {
		return bad
	}
	return d.skipOut(depth)
}

// taskField reads one field of a task.
func (d *Decoder) taskField(name []byte, t *draft) (bad *refuse.Refusal) {
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
			bad = d.Invalid("payload", "at least one byte, in base64")
		}
	case "priority":
		n, _, bad = d.Integer("priority", math.MinInt32, math.MaxInt32)
		t.Priority = int32(n)
	case "max_attempts":
		if n, ok, bad = d.Integer("max_attempts", 0, math.MaxInt32); ok {
			t.MaxAttempts = int32(n)
		}
	case "lease_ms":
		t.LeaseMS, _, bad = d.Integer("lease_ms", wire.LeaseMSMin, wire.LeaseMSMax)
	default:
		bad = d.taskOption(name, t)
	}
	return bad
}

// unknownOfTask is Decoder.Unknown for a field of a task.
func (d *Decoder) unknownOfTask(name []byte, t *draft) *refuse.Refusal {
	if t.names == nil {
		return unknownOf[wire.NewTask](d, name)
	}
	return d.unknownAmong(name, t.names()...)
}

// checkTask validates what depends on several fields.
func (d *Decoder) checkTask(t *draft) *refuse.Refusal {
	if t.Parent != nil || t.ofParents != "" {
		if bad := d.checkParent(t); bad != nil {
			return bad
		}
	}
	switch {
	case t.RunAt != 0 && t.delayed:
		return d.refuse("delay_ms", "run_at and delay_ms are both given", "Send at most one of run_at and delay_ms")
	case t.RunAt != 0 && t.ExpiresAt != 0 && t.ExpiresAt <= t.RunAt:
		return d.refuse("expires_at", "expires_at is not after run_at: the task could never be claimed", "Send an expires_at after run_at, or leave it out")
	case t.ExpiresAgain && t.ExpiresAt == 0:
		return d.refuse("expires_again", "expires_again is given without expires_at", "Send the time as expires_at, or leave expires_again out")
	case t.window != (t.UniqueMS != 0):
		return d.refuse("unique_ms", "unique_ms and unique: window are not given together", "Send both, or neither")
	case t.Replace && t.Parent != nil:
		return d.refuse("unique", "unique is replace, but steps cannot be replaced", "Send unique: active, or a task without steps")
	case (t.UniqueActive || t.window) && t.Key == "":
		return d.refuse("unique", "unique is given without idempotency_key", "Send the key that is to be unique as idempotency_key, or leave unique out")
	case t.Params != nil && t.Payload != nil:
		return d.refuse("payload", "params and payload are both given", "Send exactly one of params and payload")
	case t.Params == nil && t.Payload == nil && t.Parent == nil:
		return d.refuse("params", "Missing required field: "+d.path("params"), "Send exactly one of params (any JSON) and payload (base64)")
	}
	return nil
}

// SubmitOne is the op of a batch that submits a task.
type SubmitOne struct{ draft }

func (c *SubmitOne) field(d *Decoder, name []byte) *refuse.Refusal {
	return d.taskField(name, &c.draft)
}

func (c *SubmitOne) check(d *Decoder) *refuse.Refusal { return d.checkTask(&c.draft) }

// Command implements Body.
func (c *SubmitOne) Command() command.Command { return command.Submit{Tasks: []fsm.NewTask{c.NewTask}} }

// Answer implements Body.
func (c *SubmitOne) Answer(b []byte, p *nodes.Proposed) []byte {
	return AppendSubmitOne(b, p)
}

// AppendSubmitOne appends the answer to the submit of one task.
func AppendSubmitOne(b []byte, p *nodes.Proposed) []byte {
	done := &p.Result.Submitted[0]
	b = append(b, `{"success":true,"task":`...)
	if done.Gone {
		b = AppendGone(b, done.Task)
	} else {
		b = AppendTask(b, done.Task, View{Now: p.Stamp, Params: true, Result: true, Steps: stepsOf(&p.Result)})
	}
	return append(appendCreated(b, done, false), '}')
}

// appendCreated appends created; replaced if it is true; and same_request if it is false, but not if repeated, because
// a repeated answer no longer knows with which task the submitted one was compared.
func appendCreated(b []byte, done *fsm.Submitted, repeated bool) []byte {
	switch {
	case done.Created:
		return append(b, `,"created":true`...)
	case done.Replaced:
		return append(b, `,"created":false,"replaced":true`...)
	case !done.SameRequest && !repeated:
		return append(b, `,"created":false,"same_request":false`...)
	}
	return append(b, `,"created":false`...)
}

// AppendSubmitMany appends the answer to a submit of many. items has the refusal of each or nil, done the outcome of
// the others, in order.
func AppendSubmitMany(b []byte, items []*refuse.Refusal, done []fsm.Submitted) []byte {
	failed := 0
	b = jsonout.List(b, `{"success":true,"results":`, len(items), func(b []byte, i int) []byte {
		bad := items[i]
		if bad == nil && done[0].Refused {
			bad, done = refuse.Task(&done[0], "tasks["+strconv.Itoa(i)+"]."), done[1:]
		}
		if bad != nil {
			failed++
			b = jsonout.StringField(b, `{"error":`, bad.Text)
			b = jsonout.WordField(b, `,"code":`, bad.Code)
			b = jsonout.StringField(b, `,"message":`, bad.Advice)
			b = jsonout.StringField(b, `,"field":`, bad.Field)
			return append(b, '}')
		}
		b = jsonout.UintField(b, `{"id":`, done[0].Task.ID)
		b = appendCreated(b, &done[0], false)
		done = done[1:]
		return append(b, '}')
	})
	b = jsonout.IntField(b, `,"failed":`, int64(failed))
	return append(b, '}')
}
