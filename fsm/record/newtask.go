package record

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// NewTask is a task as submitted. The caller has validated every field; Apply only resolves
// defaults.
type NewTask struct {
	Type        string // never empty
	Params      []byte // JSON as given; nil when Payload is set
	Payload     []byte // opaque; nil when Params is set
	Priority    int32
	MaxAttempts int32  // 0: no limit; DefaultAttempts: the default
	Key         string // idempotency key, "" = none
	LeaseMS     int64  // 0: the type's, else the server's

	// It may be claimed from RunAt, by T, or DelayMS after the submit, or AtOnce, even if its type
	// has a delay. At most one of the three is set; without one, the type's delay applies.
	RunAt   int64
	DelayMS int64

	ExpiresAt    int64    // by T: it fails if not started by then; 0 = never
	Backoff      *Backoff // nil: the type's, else the server's
	RetentionMS  int64    // 0: the type's, else the server's; KeepForever; KeepNone
	Labels       []Label  // sorted by name, each name once, at most 16
	Group        string   // "" = none
	UniqueMS     int64    // the key is taken for this long after the submit, whether the task is there or not; 0 = see below
	UniqueActive bool     // the key is taken only until the task ends
	KeyOfType    bool     // the key is taken among the tasks of the type alone
	SignalMS     int64    // it needs a signal before it can be claimed, and fails if none comes within this time; 0 = it needs none
	Replace      bool     // if a task of the type waits with the key, it gets the data and the times of this one
	AtOnce       bool     // see RunAt
	ExpiresAgain bool     // ExpiresAt applies after a claim, too, whenever it waits again

	// Traceparent is the W3C trace context of the submit, "" = none. It is stored and
	// passed to workers but has no effect on the state.
	Traceparent string

	ShareKey string // limits and turns apply to the tasks of its type with the same one; "" = none

	// Attributes is a JSON object that describes the payload; nil = none. It is passed to
	// workers unchanged and has no effect on the state.
	Attributes []byte

	// Parent gives the task steps; nil = none. A task with steps has no RunAt, DelayMS,
	// ExpiresAt, Group or ShareKey, and may have neither Params nor Payload.
	Parent *NewParent
}

// DefaultAttempts in NewTask.MaxAttempts selects the default: the type's, else the
// server's.
const DefaultAttempts = -1

// Special values of RetentionMS.
const (
	KeepForever = -1 // until it is deleted explicitly
	KeepNone    = -2 // removed as soon as it ends
)

// Label is one label of a task.
type Label struct{ Name, Value string }

// NewParent describes the steps of a submitted task. The caller has checked that the names
// are unique and the dependencies have no cycle.
type NewParent struct {
	Steps    []NewStep // 1 to 1,000
	ByClaim  bool      // as in Plan
	Continue bool      // as in Plan
}

// NewStep is a submitted step. Its task has no Key, RetentionMS and Parent.
type NewStep struct {
	Name      string
	DependsOn []uint16 // indexes in NewParent.Steps, ascending, unique; nil = none
	Task      NewTask
}

// AddedStep is a step that is added to a running parent. The indexes in DependsOn are of steps
// that are added together with it.
type AddedStep struct {
	NewStep
	After []string // names of other steps of the parent that it depends on, unique; nil = none
}

// CountTasks returns how many tasks submitting these adds at most, including steps.
func CountTasks(tasks []NewTask) int {
	n := 0
	for i := range tasks {
		n += tasks[i].Count()
	}
	return n
}

// Count returns 1 and the number of its steps.
func (t *NewTask) Count() int {
	if t.Parent == nil {
		return 1
	}
	return 1 + len(t.Parent.Steps)
}

// ValueBytes returns the size of the params and payloads of the task and its steps.
func (t *NewTask) ValueBytes() int {
	n := len(t.Params) + len(t.Payload)
	if t.Parent != nil {
		for i := range t.Parent.Steps {
			n += t.Parent.Steps[i].Task.ValueBytes()
		}
	}
	return n
}

// NewTasks reads or writes the repeated field num. *before is the type of the task before them in
// the command, or ""; it becomes that of the last one. A type that equals the one before it is not
// written.
func (f *Fields) NewTasks(num protowire.Number, tasks *[]NewTask, before *string) {
	if f.Num == num {
		*tasks = f.room.take(f.Run())
	}
	for e := Each(); Next(&e, f, num, tasks, math.MaxInt); {
		(*tasks)[e.At].code(f, before, true)
	}
}

// TaskRoom is reusable memory for the new tasks of one command at a time.
type TaskRoom struct {
	Tasks []NewTask // at most TaskRoomMax
	names NameCache
}

// TaskRoomMax is the number of tasks for which a TaskRoom keeps memory.
const TaskRoomMax = 1024

// From is like the function From, but reads into the room unless that is nil.
func (room *TaskRoom) From(message []byte) Fields {
	if room == nil {
		return From(message, nil)
	}
	f := fromCached(message, &room.names)
	f.room = room
	return f
}

// take returns an empty slice with room for n tasks.
func (room *TaskRoom) take(n int) []NewTask {
	if room == nil || n > TaskRoomMax {
		return make([]NewTask, 0, n)
	}
	if n > len(room.Tasks) {
		room.Tasks = make([]NewTask, n)
	}
	return room.Tasks[:0:n]
}

// field reads or writes field num, a message with this task. If it is a step, steps of its own are
// not read, so messages do not nest.
func (t *NewTask) field(f *Fields, num protowire.Number, isStep bool) {
	if m, ok := f.Message(num, true); ok {
		var none string
		t.code(f, &none, !isStep)
		f.EndMessage(m)
	}
}

func (t *NewTask) code(f *Fields, before *string, steps bool) {
	f.NameAfter(1, &t.Type, before)
	f.Bytes(2, &t.Params)
	f.Bytes(3, &t.Payload)
	f.Sint(4, &t.Priority)
	f.Sint(5, &t.MaxAttempts)
	f.Text(6, &t.Key)
	f.Int(7, &t.LeaseMS)
	f.Int(8, &t.RunAt)
	f.Int(9, &t.DelayMS)
	f.Int(10, &t.ExpiresAt)
	f.backoff(11, &t.Backoff)
	f.Sint64(12, &t.RetentionMS)
	f.Labels(13, &t.Labels)
	f.Text(14, &t.Group)
	f.Bool(15, &t.UniqueActive)
	f.Text(16, &t.Traceparent)
	if steps || !f.Reading {
		f.newParent(17, &t.Parent)
	}
	f.Bool(18, &t.KeyOfType)
	f.Bytes(19, &t.Attributes)
	f.Bool(20, &t.AtOnce)
	f.Text(21, &t.ShareKey)
	f.Bool(22, &t.Replace)
	f.Int(23, &t.SignalMS)
	f.Int(50, &t.UniqueMS)
	f.Bool(51, &t.ExpiresAgain)
}

// Options are the fields that most tasks leave at their defaults, as in NewTask.
type Options struct {
	ExpiresAt    int64
	Backoff      *Backoff
	RetentionMS  int64
	Labels       []Label
	Group        string
	UniqueMS     int64
	UniqueActive bool
	KeyOfType    bool
	ExpiresAgain bool
	Traceparent  string
	ShareKey     string
	Attributes   []byte
	SignalMS     int64
	SignalUntil  int64   // by T: it fails if no signal has come by then; 0 = it does not wait for one now, or not yet
	Signalled    bool    // its signal has come
	Signal       []byte  // JSON as given, or nil
	Progress     []byte  // of an extend, JSON as given, or nil
	Origin       *Source // nil: it was submitted
	Parent       *Parent // nil: no steps
	Step         *Step   // nil: no parent
}

// Source is the task that another one is a copy of.
type Source struct {
	Type string
	ID   uint64
}

// LacksSignal reports whether the task needs a signal that has not come.
func (t *Task) LacksSignal() bool { return t.Opts().SignalMS != 0 && !t.Opts().Signalled }

// Options returns what a task keeps of the optional fields it is submitted with, without
// those of parents and steps.
func (t *NewTask) Options() Options {
	return Options{
		ExpiresAt:    t.ExpiresAt,
		ExpiresAgain: t.ExpiresAgain,
		Backoff:      t.Backoff,
		RetentionMS:  t.RetentionMS,
		Labels:       t.Labels,
		Group:        t.Group,
		UniqueActive: t.UniqueActive,
		UniqueMS:     t.UniqueMS,
		KeyOfType:    t.KeyOfType && t.Key != "",
		Traceparent:  t.Traceparent,
		ShareKey:     t.ShareKey,
		Attributes:   t.Attributes,
		SignalMS:     t.SignalMS,
	}
}

// Copy returns what a dead letter or a moved task of type to takes from the task. The caller
// decides about its expiry and its signal.
func (t *Task) Copy(to string) NewTask {
	o := t.Opts()
	return NewTask{
		Type: to, Params: t.Params, Payload: t.Payload, Priority: t.Priority, MaxAttempts: DefaultAttempts,
		Labels: o.Labels, Group: o.Group, Traceparent: o.Traceparent, ShareKey: o.ShareKey, Attributes: o.Attributes,
	}
}

// SetOptions sets the task's options, to nil if all have their defaults.
func (t *Task) SetOptions(o Options) {
	if o.ExpiresAt == 0 && !o.ExpiresAgain && o.Backoff == nil && o.RetentionMS == 0 && len(o.Labels) == 0 && o.Group == "" && !o.UniqueActive && o.UniqueMS == 0 &&
		!o.KeyOfType && o.Traceparent == "" && o.ShareKey == "" && o.Attributes == nil && o.SignalMS == 0 && o.Progress == nil && o.Origin == nil && o.Parent == nil && o.Step == nil {
		t.Options = nil
		return
	}
	kept := o // a copy, so that o itself stays off the heap in the case above
	t.Options = &kept
}

// Opts returns the task's options, or the defaults.
func (t *Task) Opts() *Options {
	if t.Options == nil {
		return &noOptions
	}
	return t.Options
}

// noOptions is returned by Opts for most tasks. It is never changed.
var noOptions Options

// textBytes returns the size of the texts in the options.
func (o *Options) textBytes() int { return len(o.Group) + len(o.Traceparent) + len(o.ShareKey) }

// before and after read or write the options in a task's record. Their fields are before and after
// that of Then, which is not an option.
func (o *Options) before(f *Fields) {
	f.Bytes(27, &o.Progress)
	f.Int(28, &o.ExpiresAt)
	f.backoff(29, &o.Backoff)
	f.Sint64(30, &o.RetentionMS)
	f.Labels(FieldLabel, &o.Labels)
	f.interned(32, &o.Group)
	f.Bool(FieldUnique, &o.UniqueActive)
}

func (o *Options) after(f *Fields) {
	f.Text(35, &o.Traceparent)
	f.steps(o)
	f.Bool(39, &o.KeyOfType)
	f.Bytes(40, &o.Attributes)
	f.origin(41, &o.Origin)
	f.interned(FieldShare, &o.ShareKey)
	f.Int(43, &o.SignalMS)
	f.Int(44, &o.SignalUntil)
	f.Bool(45, &o.Signalled)
	f.Bytes(46, &o.Signal)
	f.Int(50, &o.UniqueMS)
	f.Bool(51, &o.ExpiresAgain)
}

// origin reads or writes field num, a message; nil is not written.
func (f *Fields) origin(num protowire.Number, v **Source) {
	m, ok := f.Message(num, *v != nil)
	if !ok {
		return
	}
	if *v == nil {
		*v = &Source{}
	}
	f.interned(1, &(*v).Type)
	f.ID(2, &(*v).ID)
	f.EndMessage(m)
}

// Labels reads or writes the repeated field num.
func (f *Fields) Labels(num protowire.Number, labels *[]Label) {
	for e := Each(); Next(&e, f, num, labels, math.MaxInt); {
		f.Text(1, &(*labels)[e.At].Name)
		f.Text(2, &(*labels)[e.At].Value)
	}
}

// newParent reads or writes field num, a message; nil is not written. It checks again what Apply
// relies on and the API has checked.
func (f *Fields) newParent(num protowire.Number, v **NewParent) {
	m, ok := f.Message(num, *v != nil)
	if !ok {
		return
	}
	if *v == nil {
		*v = &NewParent{}
	}
	p := *v
	for e := Each(); Next(&e, f, 1, &p.Steps, StepsMax); {
		s := &p.Steps[e.At]
		f.Text(1, &s.Name)
		f.places(2, &s.DependsOn)
		s.Task.field(f, 3, true)
	}
	f.Bool(2, &p.ByClaim)
	f.Bool(3, &p.Continue)
	if f.Reading && f.Err == nil {
		if len(p.Steps) == 0 {
			f.Fail("a parent without steps")
		}
		f.checkSteps(len(p.Steps), func(place uint16) []uint16 { return p.Steps[place].DependsOn })
	}
	f.EndMessage(m)
}

// AddedSteps reads or writes the repeated field num. It checks again what Apply relies on and the
// API has checked.
func (f *Fields) AddedSteps(num protowire.Number, steps *[]AddedStep) {
	for e := Each(); Next(&e, f, num, steps, StepsMax); {
		s := &(*steps)[e.At]
		f.Text(1, &s.Name)
		f.places(2, &s.DependsOn)
		s.Task.field(f, 3, true)
		f.Strings(4, &s.After)
	}
	if f.Reading && f.Err == nil {
		names := make(map[string]bool, len(*steps))
		for i := range *steps {
			names[(*steps)[i].Name] = true
		}
		if len(*steps) == 0 || len(names) < len(*steps) {
			f.Fail("no steps to add, or two of one name")
		}
		f.checkSteps(len(*steps), func(place uint16) []uint16 { return (*steps)[place].DependsOn })
	}
}

// checkSteps fails if one of the n steps depends on itself, on a missing step, or in a circle.
func (f *Fields) checkSteps(n int, dependsOn func(place uint16) []uint16) {
	for place := range uint16(n) {
		f.checkPlaces(dependsOn(place), int(place), n)
	}
	if f.Err == nil && FindCycle(n, dependsOn) != nil {
		f.Fail("steps that depend on each other in a circle")
	}
}

// places reads or writes field num, ascending places in a plan.
func (f *Fields) places(num protowire.Number, places *[]uint16) {
	if !f.Reading {
		for _, place := range *places {
			f.PutElementID(num, uint64(place))
		}
	}
	for f.Num == num {
		v := f.ElementID()
		switch n := len(*places); {
		case v >= StepsMax:
			f.Fail("a place that no step has")
		case n > 0 && uint64((*places)[n-1]) >= v:
			f.Fail("places that do not ascend")
		}
		*places = append(*places, uint16(v))
	}
}

// checkPlaces fails if one of the n steps, at place, depends on itself or on a missing
// step.
func (f *Fields) checkPlaces(dependsOn []uint16, place, n int) {
	for _, on := range dependsOn {
		if int(on) >= n || int(on) == place {
			f.Fail("a step depends on one that is not there, or on itself")
		}
	}
}
