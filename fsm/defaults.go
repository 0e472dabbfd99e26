package fsm

import (
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

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
