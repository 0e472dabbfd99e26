package record

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// The settings of a type, as a set.
const (
	TypePaused TypeFields = 1 << iota
	TypeMaxClaimed
	TypeRateLimit
	TypeLease
	TypeMaxAttempts
	TypeBackoff
	TypeRetention
	TypeQueue
	TypeDelay
	TypeDeadLetter
	TypeMaxClaimedPerKey
	TypeFair
	TypeRateLimitPerKey
	TypeFieldsAll TypeFields = 1<<iota - 1
)

// TypeFields is a set of the fields of TypeSettings. The numbers are in the log and never change.
type TypeFields uint32

// TypeSettings are the settings of a task type. Pause and limits affect only new claims.
type TypeSettings struct {
	Paused     bool
	MaxClaimed int32 // simultaneous claims; 0 = no limit
	// MaxClaimedPerKey bounds the simultaneous claims of tasks with the same share key; 0 = no limit.
	MaxClaimedPerKey int32
	// RateLimitPerKey is RateLimit for the tasks with the same share key; 0 = no limit.
	RateLimitPerKey int64
	// Fair lets the share keys of the type's tasks take turns in claims by priority.
	Fair bool
	// RateLimit is in millionths of a claim per second; 0 = no limit.
	RateLimit int64
	// Defaults for its tasks. The server's defaults apply where these are not set.
	LeaseMS     int64    // 0: not set
	LimitSet    bool     // MaxAttempts is set
	MaxAttempts int32    // 0 = no limit
	Backoff     *Backoff // nil: not set
	RetentionMS int64    // as in NewTask
	DelayMS     int64    // 0: none
	// DeadLetter is the type that gets a copy of each task whose last attempt failed. "" = none.
	DeadLetter string
	// DeadLetterAfter is the number of attempts after which a task fails, even if its own limit
	// allows more. 0 = only its own limit applies.
	DeadLetterAfter int32
	// Queue has the settings of the type as a queue of another protocol, in a form that only
	// that protocol's code reads. It has no effect on tasks. "" = it is no queue.
	Queue string
}

// TaskTypesMax bounds how many types have settings, because a snapshot copies them while
// requests wait.
const TaskTypesMax = 10_000

// TaskType is the saved state of a task type with settings.
type TaskType struct {
	Name     string
	Settings TypeSettings
	// Bucket has the claims that the rate limit allows, in billionths of a claim, as of
	// BucketT by T. Both are 0 without a rate limit.
	Bucket  int64
	BucketT int64
	Move    *Move // the last one of its tasks, nil = none
}

// CloneTypes copies the records for a snapshot.
func CloneTypes(types []*TaskType) []*TaskType {
	all := make([]TaskType, len(types))
	copies := make([]*TaskType, len(types))
	for i, t := range types {
		all[i] = *t
		copies[i] = &all[i]
	}
	return copies
}

// Equal reports whether the settings are the same.
func (s *TypeSettings) Equal(other *TypeSettings) bool {
	a, b := *s, *other
	if a.Backoff == nil || b.Backoff == nil {
		return a == b
	}
	same := *a.Backoff == *b.Backoff
	a.Backoff, b.Backoff = nil, nil
	return same && a == b
}

// Change copies the settings in set from with.
func (s *TypeSettings) Change(set TypeFields, with *TypeSettings) {
	if set&TypePaused != 0 {
		s.Paused = with.Paused
	}
	if set&TypeMaxClaimed != 0 {
		s.MaxClaimed = with.MaxClaimed
	}
	if set&TypeRateLimit != 0 {
		s.RateLimit = with.RateLimit
	}
	if set&TypeLease != 0 {
		s.LeaseMS = with.LeaseMS
	}
	if set&TypeMaxAttempts != 0 {
		s.LimitSet, s.MaxAttempts = with.LimitSet, with.MaxAttempts
	}
	if set&TypeBackoff != 0 {
		s.Backoff = with.Backoff
	}
	if set&TypeRetention != 0 {
		s.RetentionMS = with.RetentionMS
	}
	if set&TypeDelay != 0 {
		s.DelayMS = with.DelayMS
	}
	if set&TypeDeadLetter != 0 {
		s.DeadLetter, s.DeadLetterAfter = with.DeadLetter, with.DeadLetterAfter
	}
	if set&TypeMaxClaimedPerKey != 0 {
		s.MaxClaimedPerKey = with.MaxClaimedPerKey
	}
	if set&TypeRateLimitPerKey != 0 {
		s.RateLimitPerKey = with.RateLimitPerKey
	}
	if set&TypeFair != 0 {
		s.Fair = with.Fair
	}
	if set&TypeQueue != 0 {
		s.Queue = with.Queue
	}
}

// Code reads or writes field num, a message.
func (s *TypeSettings) Code(f *Fields, num protowire.Number) {
	m, ok := f.Message(num, true)
	if !ok {
		return
	}
	f.Bool(1, &s.Paused)
	f.Int32(2, &s.MaxClaimed)
	f.Int(3, &s.RateLimit)
	f.Int(4, &s.LeaseMS)
	f.Bool(5, &s.LimitSet)
	f.Int32(6, &s.MaxAttempts)
	f.backoff(7, &s.Backoff)
	f.Sint64(8, &s.RetentionMS)
	f.Text(9, &s.Queue)
	f.Int(10, &s.DelayMS)
	f.Text(11, &s.DeadLetter)
	f.Int32(12, &s.DeadLetterAfter)
	f.Int32(13, &s.MaxClaimedPerKey)
	f.Bool(14, &s.Fair)
	f.Int(15, &s.RateLimitPerKey)
	f.EndMessage(m)
}

// Defaults apply to tasks for which neither the task nor its type sets a value. Fields are
// as in TypeSettings.
type Defaults struct {
	LeaseMS     int64
	LimitSet    bool
	MaxAttempts int32
	Backoff     *Backoff
	RetentionMS int64
}

// DefaultsOf returns the settings that also have a server default.
func DefaultsOf(s *TypeSettings) Defaults {
	return Defaults{LeaseMS: s.LeaseMS, LimitSet: s.LimitSet, MaxAttempts: s.MaxAttempts, Backoff: s.Backoff, RetentionMS: s.RetentionMS}
}

// Settings is the inverse of DefaultsOf.
func (d *Defaults) Settings() TypeSettings {
	return TypeSettings{LeaseMS: d.LeaseMS, LimitSet: d.LimitSet, MaxAttempts: d.MaxAttempts, Backoff: d.Backoff, RetentionMS: d.RetentionMS}
}

// Code reads or writes field num, a message TypeSettings without pause and limits.
func (d *Defaults) Code(f *Fields, num protowire.Number) {
	s := d.Settings()
	if s.Code(f, num); f.Reading {
		if *d = DefaultsOf(&s); s != d.Settings() {
			f.Fail("a pause or a limit is no default")
		}
	}
}
