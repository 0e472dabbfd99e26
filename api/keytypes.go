package api

import (
	"slices"
	"strconv"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// A key with task_types submits, claims, changes and sees only tasks of those
// types. A task's type never changes, so what this node knows of it is enough.

// maySee reports whether the request may see tasks of that type.
func (r *request) maySee(taskType string) bool {
	return len(r.onlyTypes) == 0 || slices.Contains(r.onlyTypes, taskType)
}

// refuseType is the refusal of a task type that the key does not have.
func (r *request) refuseType(taskType string) *refusal {
	return r.server.metrics.authFailures.refuse(failType, &refusal{
		code: wire.CodeForbidden, text: "This key is not for tasks of the type " + taskType,
		advice: "Use a key whose task_types have this type",
	})
}

// refuseFilter refuses a list whose filter does not keep to the key's types.
func (r *request) refuseFilter(field, taskType string) *refusal {
	switch {
	case len(r.onlyTypes) == 0:
		return nil
	case taskType == "":
		return r.server.metrics.authFailures.refuse(failType, &refusal{
			code: wire.CodeForbidden, field: field, text: "This key is for some task types, and the request is about all",
			advice: "Send " + field + " with one of the key's task_types",
		})
	case !r.maySee(taskType):
		f := r.refuseType(taskType)
		f.field = field
		return f
	}
	return nil
}

// narrow makes a claim of any type one of the key's types.
func (r *request) narrow(c *claimRequest) {
	if c != nil && len(r.onlyTypes) > 0 && len(c.cmd.Types) == 0 {
		c.cmd.Types = r.onlyTypes
	}
}

// touched is what a command is about.
type touched struct {
	foreign string   // a type that the key does not have, "" if there is none
	ids     []uint64 // of tasks
	ops     []int    // per id which op of a batch has it
	op      int      // the op that is looked at
	missing int      // the first op with an id that no task ever had, -1 = none
	names   []string // of schedules
	unknown bool     // nobody thought of the command
}

func (t *touched) task(id uint64) {
	t.ids, t.ops = append(t.ids, id), append(t.ops, t.op)
}

// permit refuses a command about task types that the key does not have. A task
// that this node, which leads, does not know was removed, or never was: the
// command cannot reach one that is submitted after this. That it never was is
// said only by a node that certainly still leads.
func (r *request) permit(cmd fsm.Command) *refusal {
	if len(r.onlyTypes) == 0 {
		return nil
	}
	t := touched{missing: -1}
	r.touch(&t, cmd)
	if t.foreign == "" && len(t.ids)+len(t.names) > 0 {
		look := func(m *fsm.Machine, _ fsm.Stamp) { r.resolve(&t, m) }
		index, err := r.server.node.ReadStale(r.wait(), 0, look)
		if err == nil && t.missing >= 0 && t.foreign == "" {
			t.missing = -1
			index, err = r.server.node.ReadLinearizable(r.wait(), 0, look)
		}
		switch {
		case err != nil:
			return refuse(codeOf(err, false))
		case t.missing >= 0 && t.foreign == "":
			r.setIndex(index)
			return refuseMissing(cmd, t.missing)
		}
	}
	switch {
	case t.unknown:
		return r.refuseFilter("task_type", "")
	case t.foreign != "":
		return r.refuseType(t.foreign)
	}
	return nil
}

// touch notes what a command is about.
func (r *request) touch(t *touched, cmd fsm.Command) {
	switch c := cmd.(type) {
	case fsm.Submit:
		r.touchTasks(t, c.Tasks)
	case fsm.ClaimNext:
		r.touchClaim(t, &c)
	case fsm.ClaimTask:
		t.task(c.ID)
	case fsm.Complete:
		t.task(c.ID)
		r.touchTasks(t, c.Submit)
		if c.Claim != nil {
			r.touchClaim(t, c.Claim)
		}
	case fsm.Fail:
		t.task(c.ID)
	case fsm.Extend:
		t.task(c.ID)
	case fsm.Release:
		t.task(c.ID)
	case fsm.Retry:
		t.task(c.ID)
	case fsm.Cancel:
		t.task(c.ID)
	case fsm.Patch:
		t.task(c.ID)
	case fsm.Delete:
		t.task(c.ID)
	default:
		r.touchMore(t, cmd)
	}
}

func (r *request) touchMore(t *touched, cmd fsm.Command) {
	switch c := cmd.(type) {
	case fsm.ClaimFinalization:
		t.task(c.ID)
	case fsm.ExtendFinalization:
		t.task(c.ID)
	case fsm.ReleaseFinalization:
		t.task(c.ID)
	case fsm.Finalize:
		t.task(c.ID)
	case fsm.SetType:
		r.touchType(t, c.Type)
	case fsm.SetSchedule:
		t.names = append(t.names, c.Schedule.Name)
		r.touchTasks(t, []fsm.NewTask{c.Schedule.Task})
	case fsm.DeleteSchedule:
		t.names = append(t.names, c.Name)
	case fsm.Batch:
		for i, op := range c.Ops {
			t.op = i
			r.touch(t, op)
		}
	default:
		t.unknown = true
	}
}

func (r *request) touchType(t *touched, taskType string) {
	if !r.maySee(taskType) {
		t.foreign = taskType
	}
}

// touchTasks notes the types of new tasks and of their steps.
func (r *request) touchTasks(t *touched, tasks []fsm.NewTask) {
	for i := range tasks {
		r.touchType(t, tasks[i].Type)
		if p := tasks[i].Parent; p != nil {
			for j := range p.Steps {
				r.touchType(t, p.Steps[j].Task.Type)
			}
		}
	}
}

// touchClaim notes the types of a claim. One of any type was narrowed before.
func (r *request) touchClaim(t *touched, c *fsm.ClaimNext) {
	t.unknown = t.unknown || len(c.Types) == 0
	for _, taskType := range c.Types {
		r.touchType(t, taskType)
	}
}

// resolve looks the types up of what is named by an id or a name.
func (r *request) resolve(t *touched, m *fsm.Machine) {
	for i, id := range t.ids {
		if task := m.Get(id); task != nil {
			r.touchType(t, task.Type)
		} else if !m.Assigned(id) && t.missing < 0 {
			t.missing = t.ops[i]
		}
	}
	for _, name := range t.names {
		if s := m.Schedule(name); s != nil {
			r.touchType(t, s.Task.Type)
		}
	}
}

// refuseMissing is the refusal of a task that there never was; of a batch, with
// the op that names it.
func refuseMissing(cmd fsm.Command, op int) *refusal {
	f := refuse(wire.CodeTaskNotFound)
	if _, ok := cmd.(fsm.Batch); ok {
		f.details = `,"failed_op":` + strconv.Itoa(op)
	}
	return f
}

// permitSubmitted refuses to show the task that a submit found under its
// idempotency_key. Nothing was written.
func (r *request) permitSubmitted(res *fsm.Result) *refusal {
	for i := range res.Submitted {
		if done := &res.Submitted[i]; !done.Created && !done.Gone && !r.maySee(done.Task.Type) {
			return r.refuseType(done.Task.Type)
		}
	}
	return nil
}
