package fsm

import (
	"slices"
	"strings"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

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
		ts := m.typeOf(c.Type)
		ts.record = &record.TaskType{Name: ts.name}
		m.settings = slices.Insert(m.settings, at, ts.record)
	}
	ts := m.types[c.Type]
	ts.record.SetRate(settings.RateLimit, m.Stamp().T)
	ts.record.Settings = settings
	if settings == (record.TypeSettings{}) {
		m.settings = slices.Delete(m.settings, at, at+1)
		ts.record = nil
	}
	ts.added = ts.ready // what other limits let be claimed is news
	m.place(ts)
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
	if ts == nil || ts.record == nil {
		return &noSettings
	}
	return &ts.record.Settings
}

// noSettings is what settingsOf returns of most types. It is never changed.
var noSettings record.TypeSettings

// dropType forgets a type that has neither tasks nor settings.
func (m *Machine) dropType(ts *typeState) {
	if ts.tasks > 0 || ts.record != nil {
		return
	}
	if m.undo != nil {
		m.undo.dropped = append(m.undo.dropped, ts)
	}
	delete(m.types, ts.name)
	m.ready.Remove(&ts.Contender)
	m.fall(ts)
	m.typesChanged++
	m.recent = nil
	m.byName.Delete(ts.name)
	m.followed.Delete(ts.name)
	if ts.noted < len(m.noted) && m.noted[ts.noted].Type == ts.name {
		if m.notedGone == nil {
			m.notedGone = map[string]int{}
		}
		m.notedGone[ts.name] = ts.noted
	}
}

// typeResult is the result that shows the type. It has no rates: results are the
// same on all nodes.
func (m *Machine) typeResult(name string) Result {
	v, _ := m.Type(name, m.Stamp())
	v.SubmittedPerS, v.CompletedPerS, v.FailedPerS = 0, 0, 0
	return Result{Type: &v}
}

// findOldest returns the id of the pending task that was submitted first, 0 if
// none is pending.
func (ts *typeState) findOldest() uint64 {
	id, _ := ts.first.First(index.Oldest)
	if held, ok := ts.behind.Min(); ok && (id == 0 || held < id) {
		id = held
	}
	return id
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

// InForce returns what counts for the task.
func (m *Machine) InForce(t *record.Task) InForce {
	return InForce{
		MaxAttempts: t.MaxAttempts, LeaseMS: m.leaseOfTask(t), Backoff: m.backoffOf(t),
		RetentionMS: m.retentionAs(t, record.StatusCompleted), FailedRetentionMS: m.retentionAs(t, record.StatusFailed),
	}
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
