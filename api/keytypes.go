package api

import (
	"slices"

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
	names   []string // of schedules
	unknown bool     // nobody thought of the command
}

// permit refuses a command about task types that the key does not have. A task
// that this node, which leads, does not know was removed, or never was: the
// command cannot reach one that is submitted after this.
func (r *request) permit(cmd fsm.Command) *refusal {
	if len(r.onlyTypes) == 0 {
		return nil
	}
	var t touched
	r.touch(&t, cmd)
	if t.foreign == "" && len(t.ids)+len(t.names) > 0 {
		missing := false
		_, err := r.server.node.ReadStale(r.wait(), 0, func(m *fsm.Machine, _ fsm.Stamp) { missing = r.resolve(&t, m) })
		switch {
		case err != nil:
			return refuse(codeOf(err, false))
		case missing && t.foreign == "":
			return refuse(wire.CodeTaskNotFound)
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
		t.ids = append(t.ids, c.ID)
	case fsm.Complete:
		t.ids = append(t.ids, c.ID)
		r.touchTasks(t, c.Submit)
		if c.Claim != nil {
			r.touchClaim(t, c.Claim)
		}
	case fsm.Fail:
		t.ids = append(t.ids, c.ID)
	case fsm.Extend:
		t.ids = append(t.ids, c.ID)
	case fsm.Release:
		t.ids = append(t.ids, c.ID)
	case fsm.Retry:
		t.ids = append(t.ids, c.ID)
	case fsm.Cancel:
		t.ids = append(t.ids, c.ID)
	case fsm.Patch:
		t.ids = append(t.ids, c.ID)
	case fsm.Delete:
		t.ids = append(t.ids, c.ID)
	default:
		r.touchMore(t, cmd)
	}
}

func (r *request) touchMore(t *touched, cmd fsm.Command) {
	switch c := cmd.(type) {
	case fsm.ClaimFinalization:
		t.ids = append(t.ids, c.ID)
	case fsm.ExtendFinalization:
		t.ids = append(t.ids, c.ID)
	case fsm.ReleaseFinalization:
		t.ids = append(t.ids, c.ID)
	case fsm.Finalize:
		t.ids = append(t.ids, c.ID)
	case fsm.SetType:
		r.touchType(t, c.Type)
	case fsm.SetSchedule:
		t.names = append(t.names, c.Schedule.Name)
		r.touchTasks(t, []fsm.NewTask{c.Schedule.Task})
	case fsm.DeleteSchedule:
		t.names = append(t.names, c.Name)
	case fsm.Batch:
		for _, op := range c.Ops {
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

// resolve looks the types up of what is named by an id or a name. missing: there
// never was such a task.
func (r *request) resolve(t *touched, m *fsm.Machine) (missing bool) {
	for _, id := range t.ids {
		if task := m.Get(id); task != nil {
			r.touchType(t, task.Type)
		} else if !m.Assigned(id) {
			missing = true
		}
	}
	for _, name := range t.names {
		if s := m.Schedule(name); s != nil {
			r.touchType(t, s.Task.Type)
		}
	}
	return missing
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
