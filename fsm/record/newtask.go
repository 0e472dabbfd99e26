package record

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/wire"
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
	LeaseMS     int64  // 0: the type's, else the server's

	// Not claimable before RunAt, by T, or DelayMS after the submit; 0 = at
	// once. At most one of them is set.
	RunAt   int64
	DelayMS int64

	ExpiresAt    int64    // by T: not started by then, it fails; 0 = never
	Backoff      *Backoff // nil: the type's, else the server's
	RetentionMS  int64    // 0: the type's, else the server's; KeepForever; KeepNone
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
// resolves to the type's, else the server's.
const DefaultAttempts = -1

// Special values of RetentionMS.
const (
	KeepForever = -1 // until it is deleted
	KeepNone    = -2 // gone as soon as it ends
)

// Label is one label of a task.
type Label struct{ Name, Value string }

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

// NeedsOf returns the feature level that has all fields that the tasks set, 0 if
// any has.
func NeedsOf(tasks []NewTask) (level uint32) {
	for i := range tasks {
		level = max(level, tasks[i].needs())
	}
	return level
}

func (t *NewTask) needs() uint32 {
	switch {
	case t.Parent != nil:
		return LevelSteps
	case t.Traceparent != "":
		return LevelSight
	case t.RunAt != 0, t.DelayMS != 0, t.ExpiresAt != 0, t.Backoff != nil, t.RetentionMS != 0,
		len(t.Labels) > 0, t.Group != "", t.UniqueActive, t.KeyOfType:
		return LevelLife
	}
	return 0
}

// AppendNewTasks appends the repeated field num.
func AppendNewTasks(b []byte, num protowire.Number, tasks []NewTask) []byte {
	for i := range tasks {
		var start int
		b, start = wire.BeginMessage(b, num)
		b = wire.EndLength(appendNewTask(b, &tasks[i]), start)
	}
	return b
}

func appendNewTask(b []byte, t *NewTask) []byte {
	b = wire.PutString(b, 1, t.Type)
	b = wire.PutBytes(b, 2, t.Params)
	b = wire.PutBytes(b, 3, t.Payload)
	b = wire.PutSint(b, 4, t.Priority)
	b = wire.PutSint(b, 5, t.MaxAttempts)
	b = wire.PutString(b, 6, t.Key)
	b = wire.PutInt(b, 7, t.LeaseMS)
	b = wire.PutInt(b, 8, t.RunAt)
	b = wire.PutInt(b, 9, t.DelayMS)
	b = wire.PutInt(b, 10, t.ExpiresAt)
	b = appendBackoff(b, 11, t.Backoff)
	b = wire.PutSint64(b, 12, t.RetentionMS)
	b = AppendLabels(b, 13, t.Labels)
	b = wire.PutString(b, 14, t.Group)
	b = wire.PutBool(b, 15, t.UniqueActive)
	b = wire.PutString(b, 16, t.Traceparent)
	b = appendNewParent(b, 17, t.Parent)
	return wire.PutBool(b, 18, t.KeyOfType)
}

// AppendLabels appends the repeated field num.
func AppendLabels(b []byte, num protowire.Number, labels []Label) []byte {
	for _, l := range labels {
		var start int
		b, start = wire.BeginMessage(b, num)
		b = wire.PutString(b, 1, l.Name)
		b = wire.EndLength(wire.PutString(b, 2, l.Value), start)
	}
	return b
}

// AddTask reads the field, one element of repeated NewTask, and appends it.
func (r *Reader) AddTask(tasks []NewTask) []NewTask {
	if tasks == nil {
		tasks = r.room.take(r.Run())
	}
	in := r.room.ReaderOf(r.Raw())
	tasks = append(tasks, decodeNewTask(&in))
	r.Within(in.Err)
	return tasks
}

func decodeNewTask(r *Reader) (t NewTask) {
	for r.Next() {
		switch r.Num {
		case 1:
			t.Type = r.Name()
		case 2:
			t.Params = r.Bytes()
		case 3:
			t.Payload = r.Bytes()
		case 4:
			t.Priority = r.Sint32()
		case 5:
			t.MaxAttempts = r.Sint32()
		case 6:
			t.Key = r.Text()
		case 7:
			t.LeaseMS = r.Int64()
		default:
			decodeNewTaskRest(r, &t)
		}
	}
	return t
}

// decodeNewTaskRest reads the field, one of the rarer ones.
func decodeNewTaskRest(r *Reader, t *NewTask) {
	switch r.Num {
	case 8:
		t.RunAt = r.Int64()
	case 9:
		t.DelayMS = r.Int64()
	case 10:
		t.ExpiresAt = r.Int64()
	case 11:
		t.Backoff = r.backoff()
	case 12:
		t.RetentionMS = r.Sint64()
	case 13:
		t.Labels = r.AddLabel(t.Labels)
	case 14:
		t.Group = r.Text()
	case 15:
		t.UniqueActive = r.Bool()
	case 16:
		t.Traceparent = r.Text()
	case 17:
		if r.plain {
			r.Unknown()
			return
		}
		t.Parent = r.newParent()
	case 18:
		t.KeyOfType = r.Bool()
	default:
		r.Unknown()
	}
}

// AddLabel reads the field, one element of repeated Label, and appends it.
func (r *Reader) AddLabel(labels []Label) []Label {
	if labels == nil {
		labels = make([]Label, 0, r.Run())
	}
	in := ReaderOf(r.Raw())
	var l Label
	for in.Next() {
		switch in.Num {
		case 1:
			l.Name = in.Text()
		case 2:
			l.Value = in.Text()
		default:
			in.Unknown()
		}
	}
	r.Within(in.Err)
	return append(labels, l)
}

// appendNewParent appends the field num, a message; nothing if v is nil.
func appendNewParent(b []byte, num protowire.Number, v *NewParent) []byte {
	if v == nil {
		return b
	}
	mark := len(b)
	b, outer := wire.BeginMessage(b, num)
	for i := range v.Steps {
		var start int
		b, start = wire.BeginMessage(b, 1)
		b = wire.EndLength(appendNewStep(b, &v.Steps[i]), start)
	}
	b = wire.PutBool(b, 2, v.ByClaim)
	return wire.EndOptional(wire.PutBool(b, 3, v.Continue), mark, outer)
}

func appendNewStep(b []byte, s *NewStep) []byte {
	b = wire.PutString(b, 1, s.Name)
	b = appendPlaces(b, 2, s.DependsOn)
	mark := len(b)
	b, start := wire.BeginMessage(b, 3)
	return wire.EndOptional(appendNewTask(b, &s.Task), mark, start)
}

// appendPlaces appends the field num, places in a plan.
func appendPlaces(b []byte, num protowire.Number, places []uint16) []byte {
	for _, place := range places {
		b = wire.PutIDElement(b, num, uint64(place))
	}
	return b
}

// newParent reads the field, a message NewParent. What the API refuses is
// refused here, too, as far as Apply relies on it.
func (r *Reader) newParent() *NewParent {
	in := ReaderOf(r.Single())
	v := &NewParent{}
	for in.Next() {
		switch in.Num {
		case 1:
			if v.Steps == nil {
				v.Steps = make([]NewStep, 0, min(in.Run(), StepsMax))
			}
			in.Bound(len(v.Steps), StepsMax)
			one := ReaderOf(in.Raw())
			v.Steps = append(v.Steps, decodeNewStep(&one))
			in.Within(one.Err)
		case 2:
			v.ByClaim = in.Bool()
		case 3:
			v.Continue = in.Bool()
		default:
			in.Unknown()
		}
	}
	if in.Err == nil && len(v.Steps) == 0 {
		in.Fail("a parent without steps")
	}
	for place := range v.Steps {
		in.checkPlaces(v.Steps[place].DependsOn, place, len(v.Steps))
	}
	if in.Err == nil && FindCycle(len(v.Steps), func(place uint16) []uint16 { return v.Steps[place].DependsOn }) != nil {
		in.Fail("steps that depend on each other in a circle")
	}
	r.Within(in.Err)
	return v
}

func decodeNewStep(r *Reader) (s NewStep) {
	for r.Next() {
		switch r.Num {
		case 1:
			s.Name = r.Text()
		case 2:
			s.DependsOn = r.place(s.DependsOn)
		case 3:
			in := ReaderOf(r.Single())
			in.plain = true
			s.Task = decodeNewTask(&in)
			r.Within(in.Err)
		default:
			r.Unknown()
		}
	}
	return s
}

// place reads the field, one of the ascending places in a plan, and appends it.
func (r *Reader) place(places []uint16) []uint16 {
	v := r.IDElement()
	switch n := len(places); {
	case v >= StepsMax:
		r.Fail("a place that no step has")
	case n > 0 && uint64(places[n-1]) >= v:
		r.Fail("places that do not ascend")
	}
	return append(places, uint16(v))
}

// checkPlaces fails if the step at place, of n, depends on itself or on one that
// is not there.
func (r *Reader) checkPlaces(dependsOn []uint16, place, n int) {
	for _, on := range dependsOn {
		if int(on) >= n || int(on) == place {
			r.Fail("a step depends on one that is not there, or on itself")
		}
	}
}
