package fsm

import (
	"bytes"
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// submit adds the tasks in order, so that the first of several with the same key gets it.
func (m *Machine) submit(c command.Submit) Result {
	submitted := m.answers.submitted.take(len(c.Tasks))
	copies := m.answers.tasks.take(len(c.Tasks))
	for i := range c.Tasks {
		n := &c.Tasks[i]
		if step, never := m.neverClaimable(n, 0); never {
			submitted[i] = Submitted{Task: &copies[i], Refused: true, Step: step}
			continue
		}
		submitted[i] = m.submitOne(n, &copies[i], "")
	}
	if len(submitted) == 1 && submitted[0].Refused {
		return Result{Code: CodeInvalidTask, Submitted: submitted}
	}
	return Result{Submitted: submitted}
}

// neverClaimable reports whether the task would be added but it, or the step at that place,
// would expire before its delay is over. If its key is taken the task would not be added,
// so that a submit can be repeated at any time. A key held by the task with the id ends,
// which is about to end, does not count if that frees it.
func (m *Machine) neverClaimable(n *record.NewTask, ends uint64) (step int, never bool) {
	step, never = m.lapsesFirst(n)
	if !never {
		return step, false
	}
	has := m.holder(n.Type, n.Key, n.KeyOfType)
	if has != nil {
		return step, has.ID == ends && has.Opts().UniqueActive
	}
	_, gone := goneHolder(n.Type, n.Key, n.KeyOfType, m.forgettingGoneByKeyName)
	return step, gone == nil
}

// lapsesFirst reports whether the task, or the step at that place, would expire before its
// delay is over; -1 is the task itself. A step's delay counts from now, too.
func (m *saved) lapsesFirst(n *record.NewTask) (step int, lapses bool) {
	if m.Level() < record.LevelActs {
		return -1, false
	}
	if n.Parent == nil {
		return -1, m.lapses(n)
	}
	step = slices.IndexFunc(n.Parent.Steps, func(s record.NewStep) bool { return m.lapses(&s.Task) })
	return step, step >= 0
}

func (m *saved) lapses(n *record.NewTask) bool {
	return n.DelayMS != 0 && n.ExpiresAt != 0 && n.ExpiresAt <= m.fromNow(n.DelayMS)
}

// submitOne adds the task unless its key is taken. It fills copied for the answer. message
// goes with the task's event.
func (m *Machine) submitOne(n *record.NewTask, copied *record.Task, message string) Submitted {
	if t := m.holder(n.Type, n.Key, n.KeyOfType); t != nil {
		*copied = *t
		return Submitted{Task: copied, SameRequest: sameRequest(t, n)}
	}
	if id, g := goneHolder(n.Type, n.Key, n.KeyOfType, m.forgettingGoneByKeyName); g != nil {
		same := g.Same == sameHash(n.Type, n.Params, n.Payload)
		return Submitted{Task: g.Task(id), SameRequest: same, Gone: true}
	}
	*copied = *m.addTask(n, message)
	return Submitted{Task: copied, Created: true}
}

// addTask adds a task, or a parent with its steps, and returns it. message goes with its
// event.
func (m *Machine) addTask(n *record.NewTask, message string) *record.Task {
	if n.Parent != nil && m.Level() >= record.LevelSteps {
		return m.addParent(n, message)
	}
	t := m.newTask(n)
	if m.Level() >= record.LevelLife {
		m.setRunAt(t, m.runAtOf(n))
		t.SetOptions(optionsOf(n))
	}
	m.add(t, message)
	return t
}

// newTask returns a pending task with the next id. The caller sets the options and when it
// may run.
func (m *Machine) newTask(n *record.NewTask) *record.Task {
	now := m.Stamp().T
	t := &record.Task{
		ID:          m.header.NextID,
		Type:        n.Type,
		Params:      n.Params,
		Payload:     n.Payload,
		Priority:    n.Priority,
		MaxAttempts: n.MaxAttempts,
		Key:         n.Key,
		LeaseMS:     n.LeaseMS,
		Status:      record.StatusPending,
		CreatedAt:   now,
		UpdatedAt:   now,
	}
	if n.MaxAttempts < 0 {
		t.MaxAttempts = m.maxAttemptsOf(n.Type)
	}
	return t
}

// add adds the new task to the state. message goes with its event.
func (m *Machine) add(t *record.Task, message string) {
	m.header.NextID++
	m.changed++
	m.tasks.Put(t.ID, t)
	m.count(m.include(t), rateSubmitted)
	m.tally.Submitted++
	m.tellOf(event.Submitted, t, message)
	if t.Status == record.StatusScheduled {
		m.tellWait(t)
	}
	m.tasks.Rest(t.ID)
}

// runAtOf returns when the task may be claimed, by T; 0 = at once.
func (m *saved) runAtOf(n *record.NewTask) int64 {
	if n.DelayMS != 0 {
		return m.fromNow(n.DelayMS)
	}
	return n.RunAt
}

// optionsOf returns the submitted options without those of parents and steps.
func optionsOf(n *record.NewTask) record.Options {
	return record.Options{
		ExpiresAt:    n.ExpiresAt,
		Backoff:      n.Backoff,
		RetentionMS:  n.RetentionMS,
		Labels:       n.Labels,
		Group:        n.Group,
		UniqueActive: n.UniqueActive,
		KeyOfType:    n.KeyOfType && n.Key != "",
		Traceparent:  n.Traceparent,
	}
}

// maxAttemptsOf returns the default for tasks of the type.
func (m *Machine) maxAttemptsOf(taskType string) int32 {
	if s := m.settingsOf(taskType); s.LimitSet {
		return s.MaxAttempts
	}
	if d := &m.header.Defaults; d.LimitSet {
		return d.MaxAttempts
	}
	return record.DefaultMaxAttempts
}

// sameRequest reports whether the task was submitted with the same type and parameters as
// n. It compares bytes: equivalent JSON in another form differs.
func sameRequest(t *record.Task, n *record.NewTask) bool {
	return t.Type == n.Type && bytes.Equal(t.Params, n.Params) && bytes.Equal(t.Payload, n.Payload)
}
