package fsm

import (
	"cmp"
	"iter"
	"slices"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// NextOpening returns the earliest time, by T, at which a type opens that only its rate limit
// keeps closed; ok is false if there is no such type.
func (m *Machine) NextOpening() (t int64, ok bool) { return m.types.NextOpening() }

// Openings returns the types whose rate limit opens them by time t, with the number of tasks that
// can be claimed from each then. next is when the next type opens; ok is false if none does.
// Entries open the types that are due at their own time; until the next entry only this call
// reports them.
func (m *Machine) Openings(t int64) (due []ReadyTasks, next int64, ok bool) {
	return m.types.Openings(t)
}

// SettingsOf returns the settings of a type, or the zero value.
func (m *Machine) SettingsOf(name string) record.TypeSettings { return *m.types.settingsOf(name) }

// TypesWithSettings yields the types after after that have settings, by name. The settings are
// read-only.
func (m *Machine) TypesWithSettings(after string) iter.Seq2[string, *record.TypeSettings] {
	return func(yield func(string, *record.TypeSettings) bool) {
		at, known := m.types.find(after)
		if known {
			at++
		}
		for _, r := range m.types.settings[at:] {
			if !yield(r.Name, &r.Settings) {
				return
			}
		}
	}
}

// setType changes the settings of a type. If they are all cleared, the type's record is removed.
func setType(m *Machine, c command.SetType) Result {
	settings := *m.types.settingsOf(c.Type)
	if c.IfQueue && settings.Queue != c.Queue {
		return refusedType(m, c.Type)
	}
	settings.Change(c.Set, &c.Settings)
	at, known := m.types.find(c.Type)
	changed := !settings.Equal(m.types.settingsOf(c.Type))
	switch {
	case known:
	case settings == (record.TypeSettings{}):
		return typeResult(m, c.Type)
	case len(m.types.settings) >= record.TaskTypesMax:
		return Result{Code: CodeInvalidRequest}
	default:
		m.types.settings = slices.Insert(m.types.settings, at, &record.TaskType{Name: m.typeOf(c.Type).Name()})
	}
	ts, r := m.types.named(c.Type), m.types.settings[at]
	r.SetRate(settings.RateLimit, m.Stamp().T)
	m.shares.setRates(&ts.Type, r.Settings.RateLimitPerKey, settings.RateLimitPerKey, m.Stamp().T)
	r.Settings = settings
	if settings == (record.TypeSettings{}) {
		m.types.settings = slices.Delete(m.types.settings, at, at+1)
		r = nil
	}
	m.types.SetRecord(&ts.Type, r, &m.turns, m.Stamp().T)
	m.types.findMoving()
	m.dropType(ts)
	if changed {
		m.tellBy(event.TypeChanged, c.Type, c.By)
	}
	return typeResult(m, c.Type)
}

// setShare replaces the settings of a share.
func setShare(m *Machine, c command.SetShare) Result {
	known := m.types.named(c.Type)
	var was record.ShareSettings
	if known != nil {
		if _, saved := known.SavedShare(c.ShareKey); saved != nil {
			was = saved.Settings
		}
	}
	none := record.ShareSettings{}
	if c.Settings != none && was == none && m.shares.set >= record.SharesSetMax {
		return Result{Code: CodeInvalidRequest}
	}
	if c.Settings != was {
		ts, t := &m.typeOf(c.Type).Type, m.Stamp().T
		m.shares.edit(ts, c.ShareKey, func(of *record.Share) {
			before := ts.ShareRate(c.ShareKey)
			of.Settings = c.Settings
			of.SetRate(before, cmp.Or(c.Settings.RateLimit, m.types.settingsOf(c.Type).RateLimitPerKey), t)
		})
		m.types.SetWeight(ts, c.ShareKey, c.Settings.Weight, &m.turns)
		m.types.LimitShares(ts, &m.turns, t)
		m.dropType(m.types.named(c.Type))
		m.tellBy(event.ShareChanged, c.Type+" "+c.ShareKey, c.By)
	}
	v, _ := m.Share(c.Type, c.ShareKey, m.Stamp())
	return Result{Share: &v}
}

// fullBucketsMax bounds how many buckets of shares one entry forgets.
const fullBucketsMax = 1_000

// dropFullBuckets forgets buckets of shares that have filled.
func dropFullBuckets(m *Machine) {
	for range fullBucketsMax {
		ts, key, ok := m.types.FullBucket(m.Stamp().T)
		if !ok {
			return
		}
		m.shares.edit(ts, key, func(of *record.Share) { of.Spent, of.SpentT = 0, 0 })
		m.types.ArrangeFull(ts, &m.turns, m.Stamp().T)
	}
}

// typeResult returns the view of the type as a result, without rates, because results are the
// same on all nodes.
func typeResult(m *Machine, name string) Result {
	v, _ := m.Type(name, m.Stamp())
	v.SubmittedPerS, v.CompletedPerS, v.FailedPerS = 0, 0, 0
	return Result{Type: &v}
}

// refusedType is typeResult of a command that changed nothing.
func refusedType(m *Machine, name string) Result {
	refused := typeResult(m, name)
	refused.Code = CodeInvalidRequest
	return refused
}

// FirstDefaults returns the defaults of a new cluster: enough attempts with growing delays to
// outlast a failure of some minutes.
func FirstDefaults() record.Defaults {
	return record.Defaults{
		LimitSet: true, MaxAttempts: 10,
		Backoff: &record.Backoff{InitialMS: 1_000, MaxMS: 3_600_000, Factor: 2 * record.Million, Jitter: record.Million / 5},
	}
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
func setDefaults(m *Machine, c command.SetDefaults) Result {
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
	if b := m.types.settingsOf(t.Type).Backoff; b != nil {
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

// maxAttemptsOf returns the default for tasks of the type.
func (m *Machine) maxAttemptsOf(taskType string) int32 {
	if s := m.types.settingsOf(taskType); s.LimitSet {
		return s.MaxAttempts
	}
	if d := &m.header.Defaults; d.LimitSet {
		return d.MaxAttempts
	}
	return record.DefaultMaxAttempts
}

// leaseOfTask returns the lease of a claim that names none.
func (m *Machine) leaseOfTask(t *record.Task) int64 {
	return cmp.Or(t.LeaseMS, m.types.settingsOf(t.Type).LeaseMS, m.header.Defaults.LeaseMS, record.DefaultLeaseMS)
}

// How long ended tasks are kept, in milliseconds, if neither they, their type nor the
// server say. They are part of the feature level.
const (
	defaultRetentionMS = 24 * 60 * 60 * 1000
	failedRetentionMS  = 14 * defaultRetentionMS
)

// retentionOf returns how long the ended task is kept: milliseconds above 0, KeepForever or
// KeepNone.
func retentionOf(m *Machine, t *record.Task) int64 {
	return m.retentionAs(t, t.Status)
}

// retentionAs is retentionOf as if the task had that status.
func (m *Machine) retentionAs(t *record.Task, status record.Status) int64 {
	builtIn := int64(defaultRetentionMS)
	if status == record.StatusFailed {
		builtIn = failedRetentionMS
	}
	return cmp.Or(t.Opts().RetentionMS, m.types.settingsOf(t.Type).RetentionMS, m.header.Defaults.RetentionMS, builtIn)
}
