package fsm

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/wire"
)

// SetDefaults changes the server's defaults: those whose bit is in Set. The zero value
// of one clears it. Result.Defaults is what they are then.
type SetDefaults struct {
	Set      TypeFields // of DefaultFields
	Defaults Defaults
	By       string // as in SetType
}

func (SetDefaults) kind() kind                           { return kindSetDefaults }
func (SetDefaults) about() About                         { return About{} }
func (c SetDefaults) applyTo(m *Machine) (Result, error) { return m.setDefaults(c), nil }

// DefaultFields are those settings of a type that the server has defaults of, too.
const DefaultFields = TypeLease | TypeMaxAttempts | TypeBackoff | TypeRetention

// Defaults are what tasks get that neither say it themselves nor have it from their type,
// as in TypeSettings.
type Defaults struct {
	LeaseMS     int64
	LimitSet    bool
	MaxAttempts int32
	Backoff     *Backoff
	RetentionMS int64
}

// FirstDefaults returns those of a new cluster of that feature level: attempts enough to
// outlast a fault of minutes, with waits between them that grow. Below the level that knows
// defaults there are none.
func FirstDefaults(level uint32) Defaults {
	if level < levelActs {
		return Defaults{}
	}
	return Defaults{
		LimitSet: true, MaxAttempts: 10,
		Backoff: &Backoff{InitialMS: 1_000, MaxMS: 3_600_000, Factor: 2 * million, Jitter: million / 5},
	}
}

// DefaultsOf returns those of the settings that the server has, too.
func DefaultsOf(s *TypeSettings) Defaults {
	return Defaults{LeaseMS: s.LeaseMS, LimitSet: s.LimitSet, MaxAttempts: s.MaxAttempts, Backoff: s.Backoff, RetentionMS: s.RetentionMS}
}

// settings is the inverse of DefaultsOf.
func (d *Defaults) settings() TypeSettings {
	return TypeSettings{LeaseMS: d.LeaseMS, LimitSet: d.LimitSet, MaxAttempts: d.MaxAttempts, Backoff: d.Backoff, RetentionMS: d.RetentionMS}
}

// InForce is what a task gets: its own value, else its type's, else the server's, else
// what the feature level has built in.
type InForce struct {
	MaxAttempts int32    // 0 = no limit. A task has its own from its submit on
	LeaseMS     int64    // of a claim that asks for none
	Backoff     *Backoff // nil: none
	// How long it is kept once it has ended, and once it has failed: above 0, KeepForever
	// or KeepNone.
	RetentionMS, FailedRetentionMS int64
}

// Defaults returns what the server's defaults are set to; what is not set is zero.
func (m *Machine) Defaults() Defaults { return m.header.Defaults }

// DefaultsInForce returns what a task gets if neither it nor its type says otherwise.
func (m *Machine) DefaultsInForce() InForce {
	return m.InForce(&Task{MaxAttempts: m.maxAttemptsOf("")}) // no type has that name
}

// InForce returns what counts for the task.
func (m *Machine) InForce(t *Task) InForce {
	return InForce{
		MaxAttempts: t.MaxAttempts, LeaseMS: m.leaseOfTask(t), Backoff: m.backoffOf(t),
		RetentionMS: m.retentionAs(t, StatusCompleted), FailedRetentionMS: m.retentionAs(t, StatusFailed),
	}
}

// setDefaults changes the defaults. What a task was given at its submit stays.
func (m *Machine) setDefaults(c SetDefaults) Result {
	was := m.header.Defaults.settings()
	is := was
	is.change(SetType{Set: c.Set, Settings: c.Defaults.settings()})
	if !is.equal(&was) {
		m.header.Defaults = DefaultsOf(&is)
		m.tellBy(event.DefaultsChanged, "", c.By)
	}
	return Result{Defaults: new(m.DefaultsInForce())}
}

func (c SetDefaults) appendBody(b []byte) []byte {
	b = wire.PutUint(b, 1, uint64(c.Set))
	b = c.Defaults.append(b, 2)
	return wire.PutString(b, 3, c.By)
}

func (SetDefaults) decode(r fieldReader) (Command, error) {
	var c SetDefaults
	for r.Next() {
		switch r.Num {
		case 1:
			c.Set = TypeFields(r.Uint32())
			if c.Set&^DefaultFields != 0 && r.Err == nil {
				r.Err = fmt.Errorf("%w: default in %b", ErrUnknownCommand, c.Set)
			}
		case 2:
			c.Defaults = r.defaults()
		case 3:
			c.By = r.Text()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

// append appends the field num, a message TypeSettings.
func (d *Defaults) append(b []byte, num protowire.Number) []byte {
	s := d.settings()
	return appendTypeSettings(b, num, &s)
}

// defaults reads the field, a message TypeSettings without pause and limits.
func (r *fieldReader) defaults() Defaults {
	in := fieldsOf(r.Single())
	s := decodeTypeSettings(&in)
	d := DefaultsOf(&s)
	if in.Err == nil && s != d.settings() {
		in.Fail("a pause or a limit is no default")
	}
	r.Within(in.Err)
	return d
}
