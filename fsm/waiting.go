package fsm

import "fmt"

// waitingTasks is how tasks are kept that wait, pending or scheduled: as the bytes
// of their records. Most tasks of a long queue wait, and nobody looks at them until
// they are claimed. A parent and its steps share their plan, so they are kept as
// they are.
type waitingTasks struct{ m *Machine }

// waitingMax bounds what a task may have of its own to be kept so, in bytes.
const waitingMax = 4 << 10

func (waitingTasks) rests(t *Task) bool { return isResting(t) }

// isResting reports whether the task is one of those that are kept as bytes. It
// goes by what is saved of the task, so that the estimate of its memory does.
func isResting(t *Task) bool {
	if t.Status != StatusPending && t.Status != StatusScheduled {
		return false
	}
	if o := t.Options; o != nil && (o.Step != nil || o.Parent != nil) {
		return false
	}
	return restingSize(t) <= waitingMax
}

// restingSize is about how many bytes the task's record has beside those of its
// numbers.
func restingSize(t *Task) int {
	n := len(t.Type) + len(t.Key) + len(t.Error) + workBytes(t)
	for i := range t.Log {
		n += attemptRecordBytes + len(t.Log[i].WorkerID) + len(t.Log[i].Error)
	}
	if o := t.Options; o != nil {
		n += optionsRecordBytes + len(o.Group) + len(o.Traceparent)
		for _, l := range o.Labels {
			n += labelRecordBytes + len(l.Name) + len(l.Value)
		}
	}
	return n
}

// What parts of a task's record take, about.
const (
	attemptRecordBytes = 24
	optionsRecordBytes = 16
	labelRecordBytes   = 6
)

func (waitingTasks) pack(b []byte, t *Task) []byte { return appendTaskRecord(b, t) }

func (w waitingTasks) unpack(b []byte, shared bool) *Task {
	t := &Task{}
	r := fieldReader{rest: b}
	for r.next() {
		switch {
		case r.num == 2:
			t.Type = w.m.nameOfType(r.single())
		case r.num == 3 && shared:
			t.Params = r.single()
		case r.num == 4 && shared:
			t.Payload = r.single()
		default:
			decodeTaskField(&r, t, nil)
		}
	}
	if r.err != nil {
		panic(fmt.Sprintf("fsm: a task cannot be read back that was packed: %v", r.err))
	}
	return t
}

// nameOfType returns the type's name, the string that all its tasks share if there
// are any.
func (m *Machine) nameOfType(name []byte) string {
	if ts := m.types[string(name)]; ts != nil {
		return ts.name
	}
	return string(name)
}
