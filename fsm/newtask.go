package fsm

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// NewTask is a task as submitted. The caller has validated every field against
// the contract; Apply only resolves defaults.
type NewTask struct {
	Type        string // never empty
	Params      []byte // JSON as given; nil when Payload is set
	Payload     []byte // opaque; nil when Params is set
	Priority    int32
	MaxAttempts int32  // 0: no limit. DefaultAttempts: the default
	Key         string // idempotency key, "" = none
	LeaseMS     int64  // 0: the type's, else the default

	// Not claimable before RunAt, by T, or DelayMS after the submit; 0 = at
	// once. At most one of them is set.
	RunAt   int64
	DelayMS int64

	ExpiresAt    int64    // by T: not started by then, it fails; 0 = never
	Backoff      *Backoff // nil: the type's
	RetentionMS  int64    // 0: the type's, else the default; KeepForever; KeepNone
	Labels       []Label  // sorted by name, each name once, at most 16
	Group        string   // "" = none
	UniqueActive bool     // the key is taken only until the task ends
	KeyOfType    bool     // the key is taken among the tasks of the type alone

	// Traceparent is the W3C trace context of the submit, "" = none. It is kept
	// with the task and handed to its workers; the state does nothing with it.
	Traceparent string

	// Parent makes it a parent, with its steps; nil = it has none. Then it has no
	// RunAt, DelayMS, ExpiresAt and Group, and may have neither Params nor
	// Payload.
	Parent *NewParent
}

// DefaultAttempts in NewTask.MaxAttempts stands for the default, which Apply
// resolves to the type's, else to 3.
const DefaultAttempts = -1

// Special values of RetentionMS.
const (
	KeepForever = -1 // until it is deleted
	KeepNone    = -2 // gone as soon as it ends
)

// Label is one label of a task.
type Label struct{ Name, Value string }

// Backoff says how long a task waits after its attempt failed or expired:
// min(MaxMS, InitialMS * factor^(attempts-1)), less a share of up to jitter.
// Factor and Jitter are in millionths: floating point is not the same on every
// machine. A *Backoff is never changed.
type Backoff struct {
	InitialMS int64 // 1 or more
	MaxMS     int64 // InitialMS or more
	Factor    int64 // 1,000,000 or more
	Jitter    int64 // 0 to 1,000,000
}

// NewParent is what a task with steps is submitted with. The caller has seen
// that the names differ and that the dependencies have no cycle.
type NewParent struct {
	Steps    []NewStep // 1 to 1,000
	ByClaim  bool      // as in Plan
	Continue bool      // as in Plan
}

// NewStep is one step as submitted. Its task has no Key, RetentionMS and Parent.
type NewStep struct {
	Name      string
	DependsOn []uint16 // places in NewParent.Steps, ascending, each once; nil = none
	Task      NewTask
}

// CountTasks returns how many tasks a submit of these adds at most, steps counted.
func CountTasks(tasks []NewTask) int {
	n := len(tasks)
	for i := range tasks {
		if p := tasks[i].Parent; p != nil {
			n += len(p.Steps)
		}
	}
	return n
}

// needsOf returns the feature level that has all fields that the tasks set, 0 if
// any has.
func needsOf(tasks []NewTask) (level uint32) {
	for i := range tasks {
		level = max(level, tasks[i].needs())
	}
	return level
}

func (t *NewTask) needs() uint32 {
	switch {
	case t.Parent != nil:
		return levelSteps
	case t.Traceparent != "":
		return levelSight
	case t.RunAt != 0, t.DelayMS != 0, t.ExpiresAt != 0, t.Backoff != nil, t.RetentionMS != 0,
		len(t.Labels) > 0, t.Group != "", t.UniqueActive, t.KeyOfType:
		return levelLife
	}
	return 0
}

// appendNewTasks appends the repeated field num.
func appendNewTasks(b []byte, num protowire.Number, tasks []NewTask) []byte {
	for i := range tasks {
		var start int
		b, start = beginMessage(b, num)
		b = endLength(appendNewTask(b, &tasks[i]), start)
	}
	return b
}

func appendNewTask(b []byte, t *NewTask) []byte {
	b = putString(b, 1, t.Type)
	b = putBytes(b, 2, t.Params)
	b = putBytes(b, 3, t.Payload)
	b = putSint(b, 4, t.Priority)
	b = putSint(b, 5, t.MaxAttempts)
	b = putString(b, 6, t.Key)
	b = putInt(b, 7, t.LeaseMS)
	b = putInt(b, 8, t.RunAt)
	b = putInt(b, 9, t.DelayMS)
	b = putInt(b, 10, t.ExpiresAt)
	b = appendBackoff(b, 11, t.Backoff)
	b = putSint64(b, 12, t.RetentionMS)
	b = appendLabels(b, 13, t.Labels)
	b = putString(b, 14, t.Group)
	b = putBool(b, 15, t.UniqueActive)
	b = putString(b, 16, t.Traceparent)
	b = appendNewParent(b, 17, t.Parent)
	return putBool(b, 18, t.KeyOfType)
}

// appendBackoff appends the field num, a message; nothing if v is nil.
func appendBackoff(b []byte, num protowire.Number, v *Backoff) []byte {
	if v == nil {
		return b
	}
	mark := len(b)
	b, start := beginMessage(b, num)
	b = putInt(b, 1, v.InitialMS)
	b = putInt(b, 2, v.MaxMS)
	b = putInt(b, 3, v.Factor)
	return endOptional(putInt(b, 4, v.Jitter), mark, start)
}

// appendLabels appends the repeated field num.
func appendLabels(b []byte, num protowire.Number, labels []Label) []byte {
	for _, l := range labels {
		var start int
		b, start = beginMessage(b, num)
		b = putString(b, 1, l.Name)
		b = endLength(putString(b, 2, l.Value), start)
	}
	return b
}

// newTask reads the field, one element of repeated NewTask, and appends it.
func (r *fieldReader) newTask(tasks []NewTask) []NewTask {
	if tasks == nil {
		tasks = r.scratch.newTasks(r.run())
	}
	in := fieldReader{rest: r.raw(), scratch: r.scratch}
	tasks = append(tasks, decodeNewTask(&in))
	r.within(in.err)
	return tasks
}

func decodeNewTask(r *fieldReader) (t NewTask) {
	for r.next() {
		switch r.num {
		case 1:
			t.Type = r.name()
		case 2:
			t.Params = r.bytes()
		case 3:
			t.Payload = r.bytes()
		case 4:
			t.Priority = r.sint32()
		case 5:
			t.MaxAttempts = r.sint32()
		case 6:
			t.Key = r.string()
		case 7:
			t.LeaseMS = r.int64()
		default:
			decodeNewTaskRest(r, &t)
		}
	}
	return t
}

// decodeNewTaskRest reads the field, one of the rarer ones.
func decodeNewTaskRest(r *fieldReader, t *NewTask) {
	switch r.num {
	case 8:
		t.RunAt = r.int64()
	case 9:
		t.DelayMS = r.int64()
	case 10:
		t.ExpiresAt = r.int64()
	case 11:
		t.Backoff = r.backoff()
	case 12:
		t.RetentionMS = r.sint64()
	case 13:
		t.Labels = r.label(t.Labels)
	case 14:
		t.Group = r.string()
	case 15:
		t.UniqueActive = r.bool()
	case 16:
		t.Traceparent = r.string()
	case 17:
		if r.plain {
			r.unknown()
			return
		}
		t.Parent = r.newParent()
	case 18:
		t.KeyOfType = r.bool()
	default:
		r.unknown()
	}
}

// backoff reads the field, a message Backoff.
func (r *fieldReader) backoff() *Backoff {
	in := fieldReader{rest: r.single()}
	v := &Backoff{}
	for in.next() {
		switch in.num {
		case 1:
			v.InitialMS = in.int64()
		case 2:
			v.MaxMS = in.int64()
		case 3:
			v.Factor = in.int64()
		case 4:
			v.Jitter = in.int64()
		default:
			in.unknown()
		}
	}
	r.within(in.err)
	return v
}

// label reads the field, one element of repeated Label, and appends it.
func (r *fieldReader) label(labels []Label) []Label {
	if labels == nil {
		labels = make([]Label, 0, r.run())
	}
	in := fieldReader{rest: r.raw()}
	var l Label
	for in.next() {
		switch in.num {
		case 1:
			l.Name = in.string()
		case 2:
			l.Value = in.string()
		default:
			in.unknown()
		}
	}
	r.within(in.err)
	return append(labels, l)
}

// appendNewParent appends the field num, a message; nothing if v is nil.
func appendNewParent(b []byte, num protowire.Number, v *NewParent) []byte {
	if v == nil {
		return b
	}
	mark := len(b)
	b, outer := beginMessage(b, num)
	for i := range v.Steps {
		var start int
		b, start = beginMessage(b, 1)
		b = endLength(appendNewStep(b, &v.Steps[i]), start)
	}
	b = putBool(b, 2, v.ByClaim)
	return endOptional(putBool(b, 3, v.Continue), mark, outer)
}

func appendNewStep(b []byte, s *NewStep) []byte {
	b = putString(b, 1, s.Name)
	b = appendPlaces(b, 2, s.DependsOn)
	mark := len(b)
	b, start := beginMessage(b, 3)
	return endOptional(appendNewTask(b, &s.Task), mark, start)
}

// appendPlaces appends the field num, places in a plan.
func appendPlaces(b []byte, num protowire.Number, places []uint16) []byte {
	for _, place := range places {
		b = putIDElement(b, num, uint64(place))
	}
	return b
}

// newParent reads the field, a message NewParent. What the API refuses is
// refused here, too, as far as Apply relies on it.
func (r *fieldReader) newParent() *NewParent {
	in := fieldReader{rest: r.single()}
	v := &NewParent{}
	for in.next() {
		switch in.num {
		case 1:
			if v.Steps == nil {
				v.Steps = make([]NewStep, 0, min(in.run(), StepsMax))
			}
			in.bound(len(v.Steps), StepsMax)
			one := fieldReader{rest: in.raw()}
			v.Steps = append(v.Steps, decodeNewStep(&one))
			in.within(one.err)
		case 2:
			v.ByClaim = in.bool()
		case 3:
			v.Continue = in.bool()
		default:
			in.unknown()
		}
	}
	if in.err == nil && len(v.Steps) == 0 {
		in.fail("a parent without steps")
	}
	for place := range v.Steps {
		in.checkPlaces(v.Steps[place].DependsOn, place, len(v.Steps))
	}
	if in.err == nil && FindCycle(len(v.Steps), func(place uint16) []uint16 { return v.Steps[place].DependsOn }) != nil {
		in.fail("steps that depend on each other in a circle")
	}
	r.within(in.err)
	return v
}

func decodeNewStep(r *fieldReader) (s NewStep) {
	for r.next() {
		switch r.num {
		case 1:
			s.Name = r.string()
		case 2:
			s.DependsOn = r.place(s.DependsOn)
		case 3:
			in := fieldReader{rest: r.single(), plain: true}
			s.Task = decodeNewTask(&in)
			r.within(in.err)
		default:
			r.unknown()
		}
	}
	return s
}

// place reads the field, one of the ascending places in a plan, and appends it.
func (r *fieldReader) place(places []uint16) []uint16 {
	v := r.idElement()
	switch n := len(places); {
	case v >= StepsMax:
		r.fail("a place that no step has")
	case n > 0 && uint64(places[n-1]) >= v:
		r.fail("places that do not ascend")
	}
	return append(places, uint16(v))
}

// checkPlaces fails if the step at place, of n, depends on itself or on one that
// is not there.
func (r *fieldReader) checkPlaces(dependsOn []uint16, place, n int) {
	for _, on := range dependsOn {
		if int(on) >= n || int(on) == place {
			r.fail("a step depends on one that is not there, or on itself")
		}
	}
}

// bound fails if there are as many elements as there may be, and here is another.
func (r *fieldReader) bound(have, most int) {
	if have >= most {
		r.fail(fmt.Sprintf("more than %d", most))
	}
}
