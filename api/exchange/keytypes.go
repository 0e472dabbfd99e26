package exchange

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// A key with task_types submits, claims, changes and sees only tasks of those types, and does not learn that others
// exist. Because a task's type never changes, what this node knows of it is enough.

// Narrowed reports whether the request's key is restricted to some task types.
func (r *Request) Narrowed() bool { return len(r.onlyTypes) > 0 }

// MaySee reports whether the request may see tasks of that type.
func (r *Request) MaySee(taskType string) bool { return r.Sight().Type(taskType) }

// refuseType refuses a task type that the key does not have.
func (r *Request) refuseType(taskType string) *refuse.Refusal {
	return r.Server.Metrics.AuthFailures.Refuse(keyring.FailType, refuse.New(wire.CodeForbidden, "This key is not for tasks of the type "+taskType,
		"Use a key whose task_types have this type"))
}

// RefuseFilter refuses a list whose filter is not restricted to the key's types.
func (r *Request) RefuseFilter(field, taskType string) *refuse.Refusal {
	switch {
	case len(r.onlyTypes) == 0:
		return nil
	case taskType == "":
		return r.Server.Metrics.AuthFailures.Refuse(keyring.FailType, refuse.New(wire.CodeForbidden, "This key is for some task types, and the request is about all",
			"Send "+field+" with one of the key's task_types").At(field))
	case !r.MaySee(taskType):
		f := r.refuseType(taskType)
		f.Field = field
		return f
	}
	return nil
}

// RefuseTask refuses a call about a task that does not exist (nil) or has a type that the key does not have; both get
// the same answer.
func (r *Request) RefuseTask(m *fsm.Machine, t *fsm.Task) *refuse.Refusal {
	switch {
	case t == nil:
		return refuse.Because(wire.CodeTaskNotFound)
	case !r.MaySee(t.Type):
		return r.Server.Metrics.AuthFailures.Refuse(keyring.FailType, refuse.Because(wire.CodeTaskNotFound))
	case !r.MaySeeSteps(m, t):
		return r.refuseParts("The task has steps")
	}
	return nil
}

// MaySeeSteps reports whether the key has the types of all steps of the task, which may have been removed.
func (r *Request) MaySeeSteps(m *fsm.Machine, t *fsm.Task) bool {
	return t.Parent() == nil || r.Sight().Steps(m, t.ID)
}

// maySeeThen reports whether the key has the types of all known tasks that the task's completion submitted and
// claimed, because a repeat of that complete shows them.
func (r *Request) maySeeThen(m *fsm.Machine, t *fsm.Task) bool {
	if t.Then == nil {
		return true
	}
	foreign := func(id uint64) bool {
		other := known(m, id)
		return other != nil && !r.MaySee(other.Type)
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
func (r *Request) refuseParts(what string) *refuse.Refusal {
	return r.Server.Metrics.AuthFailures.Refuse(keyring.FailType, refuse.New(wire.CodeForbidden, what+" of task types that this key does not have",
		"Use a key whose task_types have those of all of them"))
}

// RefuseResult returns the refusal that the state machine decided. It leaves out a conflicting task of a type that
// the key does not have.
func (r *Request) RefuseResult(cmd command.Command, res fsm.Result) *refuse.Refusal {
	f := refuse.Result(cmd, res)
	if f.Task != nil && !r.MaySee(f.Task.Type) {
		f.Task = nil
	}
	return f
}

// Narrow restricts a claim of any type to the key's types, and makes its claim_request_id distinct for these types.
func (r *Request) Narrow(c *callbody.Claim) {
	if c == nil || len(r.onlyTypes) == 0 {
		return
	}
	if len(c.Cmd.Types) == 0 {
		c.Cmd.Types = r.onlyTypes
	}
	c.Cmd.RequestID = r.NarrowRequestID(c.Cmd.RequestID)
}

// NarrowRequestID returns a claim_request_id as the state stores it: combined with the key's task types, so that keys
// for other types may use the same id. For keys for all types it is what was sent, which never contains the control
// character.
func (r *Request) NarrowRequestID(id string) string {
	if id == "" || len(r.onlyTypes) == 0 {
		return id
	}
	types := sha256.Sum256([]byte(strings.Join(r.onlyTypes, ",")))
	return base64.RawStdEncoding.EncodeToString(types[:16]) + "\x00" + id
}

// NarrowKeys makes the idempotency keys of submitted tasks unique only within the task's type, so that they cannot
// collide with tasks of other types.
func (r *Request) NarrowKeys(tasks []fsm.NewTask) {
	if len(r.onlyTypes) == 0 {
		return
	}
	for i := range tasks {
		tasks[i].KeyOfType = tasks[i].Key != ""
	}
}

// ByKey returns the task with the idempotency key: of the type, if one is given; otherwise the one that the key may
// see, or a refusal if there are several.
func (r *Request) ByKey(m *fsm.Machine, taskType, key string) (*fsm.Task, *refuse.Refusal) {
	switch {
	case taskType != "":
		return m.ByTypeKey(taskType, key), nil
	case len(r.onlyTypes) == 0:
		return m.ByKey(key), nil
	}
	var found *fsm.Task
	for _, taskType := range r.onlyTypes {
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
}

// Permit refuses a command about task types that the key does not have. A task that this node, as leader, does not
// know was removed or never existed; the command cannot reach one that is submitted later. That it never existed is
// said only if this node certainly still leads, and in the same way as for a task of another type.
func (r *Request) Permit(cmd command.Command) *refuse.Refusal {
	if len(r.onlyTypes) == 0 {
		return nil
	}
	t := touched{missing: -1}
	r.touch(&t, cmd)
	if t.foreign == "" && len(t.tasks)+len(t.names) > 0 {
		look := func(m *fsm.Machine, _ fsm.Stamp) { r.resolve(&t, m) }
		index, err := r.Server.Node.ReadStale(r.Wait(), 0, look)
		if err == nil && t.missing >= 0 {
			t.missing = -1
			index, err = r.Server.Node.ReadLinearizable(r.Wait(), 0, look)
		}
		switch {
		case err != nil:
			return refuse.Because(refuse.CodeOf(err, false))
		case t.missing >= 0:
			r.SetIndex(index)
			return refuseMissing(cmd, t.missing)
		case t.hidden && isDeleteSchedule(cmd):
			r.SetIndex(index)
			return refuse.Because(wire.CodeScheduleNotFound)
		}
	}
	switch {
	case t.unknown:
		return r.RefuseFilter("task_type", "")
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
func (r *Request) touch(t *touched, cmd command.Command) {
	about := command.AboutOf(cmd)
	t.unknown = t.unknown || !about.Known
	if about.ID != 0 {
		_, completes := cmd.(command.Complete)
		t.tasks = append(t.tasks, subject{id: about.ID, op: t.op, complete: completes})
	}
	r.touchTasks(t, about.Submits)
	if about.Claims {
		r.touchClaim(t, about.Types)
	}
	if about.Type != "" {
		r.touchType(t, about.Type, "task_type")
	}
	if about.Schedule != "" {
		t.names = append(t.names, about.Schedule)
	}
	for i, op := range about.Ops {
		t.op = i
		r.touch(t, op)
	}
}

func (r *Request) touchType(t *touched, taskType, field string) {
	if !r.MaySee(taskType) {
		t.foreign, t.field = taskType, field
	}
}

// touchTasks notes the types of new tasks and of their steps.
func (r *Request) touchTasks(t *touched, tasks []fsm.NewTask) {
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
func (r *Request) touchClaim(t *touched, types []string) {
	t.unknown = t.unknown || len(types) == 0
	for _, taskType := range types {
		r.touchType(t, taskType, "task_types")
	}
}

// resolve looks up the tasks and schedules that the command names.
func (r *Request) resolve(t *touched, m *fsm.Machine) {
	for _, s := range t.tasks {
		task := known(m, s.id)
		switch {
		case task == nil && m.Assigned(s.id):
		case task == nil, !r.MaySee(task.Type):
			if t.missing < 0 {
				t.missing = s.op
			}
		case !r.MaySeeSteps(m, task):
			t.parts = "The task has steps"
		case s.complete && !r.maySeeThen(m, task):
			t.parts = "The task's completion submitted or claimed tasks"
		}
	}
	for _, name := range t.names {
		if s := m.Schedule(name); s != nil && !r.MaySee(s.Task.Type) {
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
