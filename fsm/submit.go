package fsm

import (
	"bytes"
	"slices"

	"github.com/claimq/claimq/fsm/record"
)

// submit adds the tasks in order, so that the first of several with the same key gets it.
func submit(m *Machine, tasks []record.NewTask) Result {
	submitted := m.answers.submitted.take(len(tasks))
	for i := range tasks {
		n := &tasks[i]
		if step, never := neverClaimable(m, n, 0); never {
			submitted[i] = Submitted{Task: new(record.Task), Refused: true, Step: step}
			continue
		}
		submitted[i] = submitOne(m, n, "")
	}
	if len(submitted) == 1 && submitted[0].Refused {
		return Result{Code: CodeInvalidTask, Submitted: submitted}
	}
	return Result{Submitted: submitted}
}

// neverClaimable reports whether the task would be added but it, or the step at that place,
// would expire before its delay is over. If its key is taken the task would not be added,
// so that a submit can be repeated at any time, except if its holder would be given that time.
// A key held by the task with the id ends, which is about to end, does not count if that frees it.
func neverClaimable(m *Machine, n *record.NewTask, ends uint64) (step int, never bool) {
	step, never = lapsesFirst(m, n)
	if !never {
		return step, false
	}
	has := m.holder(n.Type, n.Key, n.KeyOfType)
	if has != nil {
		return step, has.ID == ends && has.Opts().UniqueActive || replaces(n, has)
	}
	_, gone := m.goneHolder(n.Type, n.Key, n.KeyOfType, (*goneTasks).namedOrForget)
	return step, gone == nil
}

// lapsesFirst reports whether the task, or the step at that place, would expire before its
// delay is over; -1 is the task itself. A step's delay counts from now, too.
func lapsesFirst(m *Machine, n *record.NewTask) (step int, never bool) {
	if n.Parent == nil {
		return -1, lapses(m, n)
	}
	step = slices.IndexFunc(n.Parent.Steps, func(s record.NewStep) bool { return lapses(m, &s.Task) })
	return step, step >= 0
}

func lapses(m *Machine, n *record.NewTask) bool {
	if n.ExpiresAt == 0 {
		return false
	}
	ms := delayOf(m, n)
	return ms != 0 && n.ExpiresAt <= fromNow(m, ms)
}

// submitOne adds the task unless its key is taken. message goes with the task's event.
func submitOne(m *Machine, n *record.NewTask, message string) Submitted {
	if t := m.holder(n.Type, n.Key, n.KeyOfType); t != nil {
		if replaces(n, t) {
			return Submitted{Task: m.copyOf(replace(m, t.ID, n)), SameRequest: true, Replaced: true}
		}
		return Submitted{Task: m.copyOf(t), SameRequest: sameRequest(t, n)}
	}
	if id, g := m.goneHolder(n.Type, n.Key, n.KeyOfType, (*goneTasks).namedOrForget); g != nil {
		same := g.Same == sameHash(n.Type, n.Params, n.Payload)
		return Submitted{Task: g.Task(id), SameRequest: same, Gone: true}
	}
	return Submitted{Task: m.copyOf(addTask(m, n, message)), Created: true}
}

// addTask adds a task, or a parent with its steps, and returns it. message goes with its
// event.
func addTask(m *Machine, n *record.NewTask, message string) *record.Task {
	if n.Parent != nil {
		return addParent(m, n, message)
	}
	t := newTask(m, n)
	t.SetOptions(n.Options())
	setReady(m, t, runAtOf(m, n))
	addNew(m, t, message)
	return t
}

// replaces reports whether the submit changes the task that has its key: one of the same type
// that waits to be claimed.
func replaces(n *record.NewTask, has *record.Task) bool {
	return n.Replace && n.Type == has.Type && (has.Status == record.StatusPending || has.Status == record.StatusScheduled)
}

// replace gives the waiting task what the submitted one is about, and when it may run. It returns
// the task. A repeat with the same time changes nothing.
func replace(m *Machine, id uint64, n *record.NewTask) *record.Task {
	t, at := m.Get(id), runAtOf(m, n)
	if o := t.Opts(); sameRequest(t, n) && bytes.Equal(o.Attributes, n.Attributes) && t.RunAt == at && o.ExpiresAt == n.ExpiresAt && o.ExpiresAgain == n.ExpiresAgain {
		return t
	}
	t = m.edit(id)
	t.Params, t.Payload = n.Params, n.Payload
	o := *t.Opts()
	o.Attributes, o.ExpiresAt, o.ExpiresAgain = n.Attributes, n.ExpiresAt, n.ExpiresAgain
	t.SetOptions(o)
	setRunAt(m, t, at)
	m.edited(t)
	if t.Status == record.StatusScheduled {
		m.tellWait(t)
	}
	return t
}

// sameRequest reports whether the task was submitted with the same type and parameters as
// n. It compares bytes: equivalent JSON in another form differs.
func sameRequest(t *record.Task, n *record.NewTask) bool {
	return t.Type == n.Type && bytes.Equal(t.Params, n.Params) && bytes.Equal(t.Payload, n.Payload)
}
