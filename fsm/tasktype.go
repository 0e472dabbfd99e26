package fsm

import (
	"iter"
	"slices"
	"strings"

	"github.com/claimq/claimq/fsm/claimable"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// typeState is what is kept of a task type while it has tasks or settings, or went and has rates.
type typeState struct {
	claimable.Type
	tasks     int64                             // of any status
	counts    [record.StatusCancelled + 1]int64 // by Status
	held      index.Claims                      // claims
	rates     typeRates
	latencies *Latencies // nil if they are not counted
	went      uint64     // its place among wentTypes, while it is there
}

// typeNamed returns what is kept of the type, nil if it has neither tasks nor settings.
func (m *derived) typeNamed(name string) *typeState {
	if ts := m.types.Named(name); ts != nil {
		return ts.Of.(*typeState)
	}
	return nil
}

// typeShown is typeNamed also of a type that went, if it has rates at t.
func (m *derived) typeShown(name string, t int64) *typeState {
	if ts := m.typeNamed(name); ts != nil {
		return ts
	}
	return m.went.named(name, t)
}

// typesFrom yields what is kept of the types that have tasks or settings, sorted by name, from
// the first one whose name is not below that one.
func (m *derived) typesFrom(name string) iter.Seq[*typeState] {
	return func(yield func(*typeState) bool) {
		for ts := range m.types.From(name) {
			if !yield(ts.Of.(*typeState)) {
				return
			}
		}
	}
}

// shownFrom is typesFrom with those that went and have rates at t.
func (m *derived) shownFrom(name string, t int64) iter.Seq[*typeState] {
	return func(yield func(*typeState) bool) {
		went := m.went.from(name, t)
		for ts := range m.typesFrom(name) {
			for len(went) > 0 && went[0].Name() < ts.Name() {
				if !yield(went[0]) {
					return
				}
				went = went[1:]
			}
			if !yield(ts) {
				return
			}
		}
		for _, ts := range went {
			if !yield(ts) {
				return
			}
		}
	}
}

// typeOf returns what is kept of the type; it begins it.
func (m *Machine) typeOf(name string) *typeState {
	ts := m.typeNamed(name)
	if ts == nil {
		// What has no rates any more was nothing to those who asked: it starts from 0.
		if ts = m.went.take(name); ts == nil || ts.rates.none(m.Stamp().T) {
			ts = &typeState{}
		}
		m.types.Begin(&ts.Type, name, ts)
		m.followType(ts)
	}
	return ts
}

// NameOfType returns the type's name, the string that all its tasks share if there
// are any.
func (m *derived) NameOfType(name []byte) string { return m.types.NameOf(name) }

// NextOpening returns the earliest time, by T, at which a type of which only
// its rate limit forbids claims may be claimed from; ok is false if there is
// none.
func (m *derived) NextOpening() (t int64, ok bool) { return m.types.NextOpening() }

// Openings returns the types of which only the rate limit forbids claims by the
// state's clock, and not any more at t, with how many of their tasks may be
// claimed then; and when the next one opens, ok false if none does. The next
// entry opens those that are due: until then nobody else is told of them.
func (m *derived) Openings(t int64) (due []ReadyTasks, next int64, ok bool) {
	return m.types.Openings(t)
}

// setType changes the settings of a type. A type whose settings are all cleared
// has no record.
func (m *Machine) setType(c command.SetType) Result {
	settings := *m.settingsOf(c.Type)
	settings.Change(c.Set, &c.Settings)
	at, known := m.findRecord(c.Type)
	changed := !settings.Equal(m.settingsOf(c.Type))
	switch {
	case known:
	case settings == (record.TypeSettings{}):
		return m.typeResult(c.Type)
	case len(m.settings) >= record.TaskTypesMax:
		return Result{Code: CodeInvalidRequest}
	default:
		m.settings = slices.Insert(m.settings, at, &record.TaskType{Name: m.typeOf(c.Type).Name()})
	}
	ts, r := m.typeNamed(c.Type), m.settings[at]
	r.SetRate(settings.RateLimit, m.Stamp().T)
	r.Settings = settings
	if settings == (record.TypeSettings{}) {
		m.settings = slices.Delete(m.settings, at, at+1)
		r = nil
	}
	m.types.Limit(&ts.Type, r, m.Stamp().T)
	m.dropType(ts)
	if changed {
		m.tellBy(event.TypeChanged, c.Type, c.By)
	}
	return m.typeResult(c.Type)
}

// findRecord returns the place of the type's record, or where it would have to
// be.
func (m *saved) findRecord(name string) (at int, known bool) {
	return slices.BinarySearchFunc(m.settings, name, func(r *record.TaskType, name string) int {
		return strings.Compare(r.Name, name)
	})
}

// settingsOf returns the settings of the type, read-only; the zero value if it
// has none.
func (m *derived) settingsOf(name string) *record.TypeSettings {
	ts := m.typeNamed(name)
	if ts == nil || ts.Record() == nil {
		return &noSettings
	}
	return &ts.Record().Settings
}

// noSettings is what settingsOf returns of most types. It is never changed.
var noSettings record.TypeSettings

// dropType takes a type that has neither tasks nor settings from the others. It is forgotten once
// it has no rates.
func (m *Machine) dropType(ts *typeState) {
	if ts.tasks > 0 || ts.Record() != nil {
		return
	}
	if m.undo != nil {
		m.undo.dropped = append(m.undo.dropped, droppedType{ts, ts.latencies})
	}
	m.types.Forget(&ts.Type)
	m.followed.Delete(ts.Name())
	if !ts.rates.none(m.Stamp().T) {
		m.went.add(ts)
	}
}

// typeResult is the result that shows the type. It has no rates: results are the
// same on all nodes.
func (m *Machine) typeResult(name string) Result {
	v, _ := m.Type(name, m.Stamp())
	v.SubmittedPerS, v.CompletedPerS, v.FailedPerS = 0, 0, 0
	return Result{Type: &v}
}

// FirstDefaults returns those of a new cluster of that feature level: attempts enough to
// outlast a fault of minutes, with waits between them that grow. Below the level that knows
// defaults there are none.
func FirstDefaults(level uint32) record.Defaults {
	if level < record.LevelActs {
		return record.Defaults{}
	}
	return record.Defaults{
		LimitSet: true, MaxAttempts: 10,
		Backoff: &record.Backoff{InitialMS: 1_000, MaxMS: 3_600_000, Factor: 2 * record.Million, Jitter: record.Million / 5},
	}
}

// InForce is what a task gets: its own value, else its type's, else the server's, else
// what the feature level has built in.
type InForce struct {
	MaxAttempts int32           // 0 = no limit. A task has its own from its submit on
	LeaseMS     int64           // of a claim that asks for none
	Backoff     *record.Backoff // nil: none
	// How long it is kept once it has ended, and once it has failed: above 0, KeepForever
	// or KeepNone.
	RetentionMS, FailedRetentionMS int64
}

// Defaults returns what the server's defaults are set to; what is not set is zero.
func (m *Machine) Defaults() record.Defaults { return m.header.Defaults }

// DefaultsInForce returns what a task gets if neither it nor its type says otherwise.
func (m *Machine) DefaultsInForce() InForce {
	return m.InForce(&record.Task{MaxAttempts: m.maxAttemptsOf("")}) // no type has that name
}

// InForce returns what counts for the task: of one that has ended, for how long it is kept
// since then, whatever settings say by now.
func (m *Machine) InForce(t *record.Task) InForce {
	f := InForce{
		MaxAttempts: t.MaxAttempts, LeaseMS: m.leaseOfTask(t), Backoff: m.backoffOf(t),
		RetentionMS: m.retentionAs(t, record.StatusCompleted), FailedRetentionMS: m.retentionAs(t, record.StatusFailed),
	}
	if t.Status.Ended() && t.Step() == nil {
		keep := int64(record.KeepForever)
		if t.RemoveAt != 0 {
			keep = t.RemoveAt - t.CompletedAt
		}
		f.RetentionMS, f.FailedRetentionMS = keep, keep
	}
	return f
}

// setDefaults changes the defaults. What a task was given at its submit stays.
func (m *Machine) setDefaults(c command.SetDefaults) Result {
	was := m.header.Defaults.Settings()
	is := was
	is.Change(c.Set, new(c.Defaults.Settings()))
	if !is.Equal(&was) {
		m.header.Defaults = record.DefaultsOf(&is)
		m.tellBy(event.DefaultsChanged, "", c.By)
	}
	return Result{Defaults: new(m.DefaultsInForce())}
}

// backoffOf returns the task's backoff, else its type's, else the server's; nil if there
// is none.
func (m *Machine) backoffOf(t *record.Task) *record.Backoff {
	if b := t.Opts().Backoff; b != nil {
		return b
	}
	if b := m.settingsOf(t.Type).Backoff; b != nil {
		return b
	}
	return m.header.Defaults.Backoff
}

// backoffDelay returns how long a task waits whose attempt is over, 0 = not at
// all.
func (m *Machine) backoffDelay(t *record.Task) int64 {
	b := m.backoffOf(t)
	if b == nil {
		return 0
	}
	return b.Delay(t.ID, t.Attempts)
}
