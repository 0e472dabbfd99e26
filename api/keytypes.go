package api

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// A key with task_types submits, claims, changes and sees only tasks of those types, and does not learn that others
// exist. Because a task's type never changes, what this node knows of it is enough.

// narrowed reports whether the request's key is restricted to some task types.
func (r *request) narrowed() bool { return len(r.who.types) > 0 }

// maySee reports whether the request may see tasks of that type.
func (r *request) maySee(taskType string) bool { return r.sight().seesType(taskType) }

// maySeeSchedule reports whether the request may see the schedule: the key has the type of its task and those of all
// steps of it.
func (r *request) maySeeSchedule(v *fsm.ScheduleView) bool {
	t := touched{}
	r.touchTasks(&t, []fsm.NewTask{v.Task})
	return t.foreign == ""
}

// refuseType refuses a task type that the key does not have.
func (r *request) refuseType(taskType string) *refuse.Refusal {
	return r.core.metrics.AuthFailures.Refuse(door.FailType, refuse.New(wire.CodeForbidden, "This key is not for tasks of the type "+taskType,
		"Use a key whose task_types have this type"))
}

// refuseFilter refuses a list whose filter is not restricted to the key's types.
func (r *request) refuseFilter(field, taskType string) *refuse.Refusal {
	switch {
	case len(r.who.types) == 0:
		return nil
	case taskType == "":
		return r.core.metrics.AuthFailures.Refuse(door.FailType, refuse.New(wire.CodeForbidden, "This key is for some task types, and the request is about all",
			"Send "+field+" with one of the key's task_types").At(field))
	case !r.maySee(taskType):
		f := r.refuseType(taskType)
		f.Field = field
		return f
	}
	return nil
}

// refuseTask refuses a call about a task that does not exist (nil) or has a type that the key does not have; both get
// the same answer.
func (r *request) refuseTask(m *fsm.Machine, t *fsm.Task) *refuse.Refusal {
	switch {
	case t == nil:
		return refuse.Because(wire.CodeTaskNotFound)
	case !r.maySee(t.Type):
		return r.core.metrics.AuthFailures.Refuse(door.FailType, refuse.Because(wire.CodeTaskNotFound))
	case !r.maySeeSteps(m, t):
		return r.refuseParts("The task has steps")
	}
	return nil
}

// maySeeSteps reports whether the key has the types of all steps of the task, which may have been removed.
func (r *request) maySeeSteps(m *fsm.Machine, t *fsm.Task) bool {
	return t.Parent() == nil || r.sight().seesSteps(m, t.ID)
}

// maySeeThen reports whether the key has the types of all known tasks that the task's completion submitted and
// claimed, because a repeat of that complete shows them.
func (r *request) maySeeThen(m *fsm.Machine, t *fsm.Task) bool {
	if t.Then == nil {
		return true
	}
	foreign := func(id uint64) bool {
		other := known(m, id)
		return other != nil && !r.maySee(other.Type)
	}
	return !slices.ContainsFunc(t.Then.Submitted, func(f fsm.FollowUp) bool { return foreign(f.ID) }) &&
		!slices.ContainsFunc(t.Then.Claims, func(c fsm.ClaimRef) bool { return foreign(c.TaskID) })
}

// known returns the task, or what is remembered of it if it was removed, or nil.
func known(m *fsm.Machine, id uint64) *fsm.Task {
	if t := m.Get(id); t != nil {
		return t
	}
	return m.Removed(id)
}

// refuseParts refuses a task that the key may see but that belongs together with others which it may not.
func (r *request) refuseParts(what string) *refuse.Refusal {
	return r.core.metrics.AuthFailures.Refuse(door.FailType, refuse.New(wire.CodeForbidden, what+" of task types that this key does not have",
		"Use a key whose task_types have those of all of them"))
}

// refuseResult returns the refusal that the state machine decided. It leaves out a conflicting task of a type that
// the key does not have.
func (r *request) refuseResult(cmd command.Command, res fsm.Result) *refuse.Refusal {
	f := refuse.Result(cmd, res)
	if f.Task != nil && !r.maySee(f.Task.Type) {
		f.Task = nil
	}
	return f
}

// narrowClaim restricts a claim of any type to the key's types, and makes its claim_request_id distinct for these types.
func (r *request) narrowClaim(c *codec.Claim) {
	if c == nil || len(r.who.types) == 0 {
		return
	}
	if len(c.Cmd.Types) == 0 {
		c.Cmd.Types = r.who.types
	}
	c.Cmd.RequestID = r.narrowRequestID(c.Cmd.RequestID)
}

// narrowRequestID returns a claim_request_id as the state stores it: combined with the key's task types, so that keys
// for other types may use the same id. For keys for all types it is the id as sent, which never contains the control
// character.
func (r *request) narrowRequestID(id string) string {
	if id == "" || len(r.who.types) == 0 {
		return id
	}
	types := sha256.Sum256([]byte(strings.Join(r.who.types, ",")))
	return base64.RawStdEncoding.EncodeToString(types[:16]) + "\x00" + id
}

// narrowKeys makes the idempotency keys of submitted tasks unique only within the task's type, so that they cannot
// collide with tasks of other types.
func (r *request) narrowKeys(tasks []fsm.NewTask) {
	if len(r.who.types) == 0 {
		return
	}
	for i := range tasks {
		tasks[i].KeyOfType = tasks[i].Key != ""
	}
}

// byKey returns the task with the idempotency key: of the type, if one is given; otherwise the one that the key may
// see, or a refusal if there are several.
func (r *request) byKey(m *fsm.Machine, taskType, key string) (*fsm.Task, *refuse.Refusal) {
	switch {
	case taskType != "":
		return m.ByTypeKey(taskType, key), nil
	case len(r.who.types) == 0:
		return m.ByKey(key), nil
	}
	var found *fsm.Task
	for _, taskType := range r.who.types {
		t := m.ByTypeKey(taskType, key)
		if t != nil && found != nil {
			return nil, refuse.New(wire.CodeInvalidRequest, "Tasks of several types have this idempotency_key",
				"Send task_type with the type of the one that is meant").At("task_type")
		}
		if t != nil {
			found = t
		}
	}
	return found, nil
}

// touched collects what a command is about.
type touched struct {
	foreign string // a type that the key does not have, or ""
	field   string // the field that named it
	tasks   []subject
	op      int      // the op of a batch that is being examined
	missing int      // the first op with a task that never existed or has another type; -1: none
	parts   string   // what contains task types that the key does not have, or ""
	names   []string // of schedules
	hidden  bool     // one of these has another type
	unknown bool     // the command is not known here
}

// subject is a task that a command is about.
type subject struct {
	id       uint64
	op       int  // index in a batch
	complete bool // it is completed, and a repeat is shown what else that did
	adds     bool // steps are added to its parent, whose other steps the answer may tell of
}

// permit refuses a command about task types that the key does not have. A task that this node, as leader, does not
// know was removed or never existed; the command cannot reach one that is submitted later. That it never existed is
// said only if this node certainly still leads, and in the same way as for a task of another type.
func (r *request) permit(cmd command.Command) *refuse.Refusal {
	if len(r.who.types) == 0 {
		return nil
	}
	t := touched{missing: -1}
	r.touch(&t, cmd)
	if t.foreign == "" && len(t.tasks)+len(t.names) > 0 {
		look := func(m *fsm.Machine, _ fsm.Stamp) { r.resolve(&t, m) }
		index, err := r.node().ReadStale(r.ctx(), 0, look)
		if err == nil && t.missing >= 0 {
			t.missing = -1
			index, err = r.node().ReadLinearizable(r.ctx(), 0, look)
		}
		switch {
		case err != nil:
			return refuse.Because(refuse.CodeOf(err, false))
		case t.missing >= 0:
			r.setIndex(index)
			return refuseMissing(cmd, t.missing)
		case t.hidden && isDeleteSchedule(cmd):
			r.setIndex(index)
			return refuse.Because(wire.CodeScheduleNotFound)
		}
	}
	switch {
	case t.unknown:
		return r.refuseFilter("task_type", "")
	case t.foreign != "":
		return r.refuseType(t.foreign).At(t.field)
	case t.parts != "":
		return r.refuseParts(t.parts)
	}
	return nil
}

func isDeleteSchedule(cmd command.Command) bool {
	_, is := cmd.(command.DeleteSchedule)
	return is
}

// touch notes what a command is about.
func (r *request) touch(t *touched, cmd command.Command) {
	about := command.AboutOf(cmd)
	t.unknown = t.unknown || !about.Known
	if about.ID != 0 {
		_, completes := cmd.(command.Complete)
		_, adds := cmd.(command.AddSteps)
		t.tasks = append(t.tasks, subject{id: about.ID, op: t.op, complete: completes, adds: adds})
	}
	r.touchTasks(t, about.Submits)
	if about.Claims {
		r.touchClaim(t, about.Types)
	}
	if about.Type != "" {
		r.touchType(t, about.Type, "task_type")
	}
	if about.DeadLetter != "" {
		r.touchType(t, about.DeadLetter, "dead_letter.task_type")
	}
	if about.Schedule != "" {
		t.names = append(t.names, about.Schedule)
	}
	for i, op := range about.Ops {
		t.op = i
		r.touch(t, op)
	}
}

func (r *request) touchType(t *touched, taskType, field string) {
	if !r.maySee(taskType) {
		t.foreign, t.field = taskType, field
	}
}

// touchTasks notes the types of new tasks and of their steps.
func (r *request) touchTasks(t *touched, tasks []fsm.NewTask) {
	for i := range tasks {
		r.touchType(t, tasks[i].Type, "task_type")
		if p := tasks[i].Parent; p != nil {
			for j := range p.Steps {
				r.touchType(t, p.Steps[j].Task.Type, "task_type")
			}
		}
	}
}

// touchClaim notes the types of a claim. A claim of any type was restricted before.
func (r *request) touchClaim(t *touched, types []string) {
	t.unknown = t.unknown || len(types) == 0
	for _, taskType := range types {
		r.touchType(t, taskType, "task_types")
	}
}

// resolve looks up the tasks and schedules that the command names.
func (r *request) resolve(t *touched, m *fsm.Machine) {
	for _, s := range t.tasks {
		task := known(m, s.id)
		switch {
		case task == nil && m.Assigned(s.id):
		case task == nil, !r.maySee(task.Type):
			if t.missing < 0 {
				t.missing = s.op
			}
		case !r.maySeeSteps(m, task):
			t.parts = "The task has steps"
		case s.adds && task.Step() != nil && !r.sight().seesSteps(m, task.Step().ParentID):
			t.parts = "The task's parent has steps"
		case s.complete && !r.maySeeThen(m, task):
			t.parts = "The task's completion submitted or claimed tasks"
		}
	}
	for _, name := range t.names {
		if s := m.Schedule(name); s != nil && !r.maySeeSchedule(s) {
			t.parts = "The name is that of a schedule"
			t.hidden = true
		}
	}
}

// refuseMissing refuses a task that never existed or has another type than the key's; for a batch it names the op.
func refuseMissing(cmd command.Command, op int) *refuse.Refusal {
	f := refuse.Because(wire.CodeTaskNotFound)
	if _, ok := cmd.(command.Batch); ok {
		f.Details = `,"failed_op":` + strconv.Itoa(op)
	}
	return f
}
