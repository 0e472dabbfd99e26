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

// typeState holds what is derived of a task type while it has tasks or settings, or still has
// rates.
type typeState struct {
	claimable.Type
	tasks     int64                             // of any status
	counts    [record.StatusCancelled + 1]int64 // by Status
	held      index.Claims                      // its claims
	rates     typeRates
	latencies *Latencies // nil if not counted
	went      uint64     // its number in wentTypes, while it is there
}

// typeNamed returns the type, or nil if it has neither tasks nor settings.
func (m *derived) typeNamed(name string) *typeState {
	if ts := m.types.Named(name); ts != nil {
		return ts.Of.(*typeState)
	}
	return nil
}

// typeShown is typeNamed, but includes a type that is gone if it has rates at t.
func (m *derived) typeShown(name string, t int64) *typeState {
	if ts := m.typeNamed(name); ts != nil {
		return ts
	}
	return m.went.named(name, t)
}

// typesFrom yields the types with tasks or settings in the order of their names, starting at
// name.
func (m *derived) typesFrom(name string) iter.Seq[*typeState] {
	return func(yield func(*typeState) bool) {
		for ts := range m.types.From(name) {
			if !yield(ts.Of.(*typeState)) {
				return
			}
		}
	}
}

// shownFrom is typesFrom, but includes types that are gone and have rates at t.
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

// typeOf returns the type, and creates it if needed.
func (m *Machine) typeOf(name string) *typeState {
	ts := m.typeNamed(name)
	if ts == nil {
		// A gone type without rates is no longer visible, so its counters restart from 0.
		if ts = m.went.take(name); ts == nil || ts.rates.none(m.Stamp().T) {
			ts = &typeState{}
		}
		m.types.Begin(&ts.Type, name, ts)
		m.followType(ts)
	}
	return ts
}

// NameOfType returns the name as a string. If the type exists, it is the one that its tasks
// share.
func (m *derived) NameOfType(name []byte) string { return m.types.NameOf(name) }

// NextOpening returns the earliest time, by T, at which a type opens that only its rate limit
// keeps closed; ok is false if there is no such type.
func (m *derived) NextOpening() (t int64, ok bool) { return m.types.NextOpening() }

// Openings returns the types whose rate limit opens them by time t, with the number of tasks that
// can be claimed from each then. next is when the next type opens; ok is false if none does.
// Entries open the types that are due at their own time; until the next entry only this call
// reports them.
func (m *derived) Openings(t int64) (due []ReadyTasks, next int64, ok bool) {
	return m.types.Openings(t)
}

// setType changes the settings of a type. If they are all cleared, the type's record is removed.
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

// findRecord returns the index of the type's record, or where to insert it.
func (m *saved) findRecord(name string) (at int, known bool) {
	return slices.BinarySearchFunc(m.settings, name, func(r *record.TaskType, name string) int {
		return strings.Compare(r.Name, name)
	})
}

// settingsOf returns the settings of the type, or the zero value. They are read-only.
func (m *derived) settingsOf(name string) *record.TypeSettings {
	ts := m.typeNamed(name)
	if ts == nil || ts.Record() == nil {
		return &noSettings
	}
	return &ts.Record().Settings
}

// noSettings is returned by settingsOf for most types. It is never changed.
var noSettings record.TypeSettings

// dropType removes a type that has neither tasks nor settings. It is remembered among wentTypes
// as long as it has rates.
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

// typeResult returns the view of the type as a result, without rates, because results are the
// same on all nodes.
func (m *Machine) typeResult(name string) Result {
	v, _ := m.Type(name, m.Stamp())
	v.SubmittedPerS, v.CompletedPerS, v.FailedPerS = 0, 0, 0
	return Result{Type: &v}
}

// FirstDefaults returns the defaults of a new cluster at the feature level: enough attempts with
// growing delays to outlast a failure of some minutes. Below the level that knows defaults there
// are none.
func FirstDefaults(level uint32) record.Defaults {
	if level < record.LevelActs {
		return record.Defaults{}
	}
	return record.Defaults{
		LimitSet: true, MaxAttempts: 10,
		Backoff: &record.Backoff{InitialMS: 1_000, MaxMS: 3_600_000, Factor: 2 * record.Million, Jitter: record.Million / 5},
	}
}

// InForce has the values that apply to a task: its own, else its type's, else the server's, else
// those built into the feature level.
type InForce struct {
	MaxAttempts int32           // 0 = no limit. A task has its own from its submit on
	LeaseMS     int64           // of a claim that names none
	Backoff     *record.Backoff // nil = none
	// How long the task is kept after completing and after failing: above 0, KeepForever or
	// KeepNone.
	RetentionMS, FailedRetentionMS int64
}

// Defaults returns the server's defaults; values that are not set are zero.
func (m *Machine) Defaults() record.Defaults { return m.header.Defaults }

// DefaultsInForce returns the values for a task if neither it nor its type sets any.
func (m *Machine) DefaultsInForce() InForce {
	return m.InForce(&record.Task{MaxAttempts: m.maxAttemptsOf("")}) // a name that no type has
}

// InForce returns the values for the task. For an ended task, retention is the one fixed at its
// end, whatever the settings are now.
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

// setDefaults changes the defaults. It does not affect what a task got at its submit.
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

// backoffOf returns the task's backoff, else its type's, else the server's, else nil.
func (m *Machine) backoffOf(t *record.Task) *record.Backoff {
	if b := t.Opts().Backoff; b != nil {
		return b
	}
	if b := m.settingsOf(t.Type).Backoff; b != nil {
		return b
	}
	return m.header.Defaults.Backoff
}

// backoffDelay returns how long the task waits after its attempt, or 0.
func (m *Machine) backoffDelay(t *record.Task) int64 {
	b := m.backoffOf(t)
	if b == nil {
		return 0
	}
	return b.Delay(t.ID, t.Attempts)
}
