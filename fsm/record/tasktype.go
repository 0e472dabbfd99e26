package record

import "google.golang.org/protobuf/encoding/protowire"

// The fields. The numbers are in the log and never change.
const (
	TypePaused TypeFields = 1 << iota
	TypeMaxClaimed
	TypeRateLimit
	TypeLease
	TypeMaxAttempts
	TypeBackoff
	TypeRetention
	TypeFieldsAll TypeFields = 1<<iota - 1
)

// TypeFields is a set of the fields of TypeSettings.
type TypeFields uint32

// TypeSettings are the settings of a task type. Pause and limits affect only new claims.
type TypeSettings struct {
	Paused     bool
	MaxClaimed int32 // simultaneous claims; 0 = no limit
	// RateLimit is in millionths of a claim per second; 0 = no limit.
	RateLimit int64
	// Defaults for its tasks. The server's defaults apply where these are not set.
	LeaseMS     int64    // 0: not set
	LimitSet    bool     // MaxAttempts is set
	MaxAttempts int32    // 0 = no limit
	Backoff     *Backoff // nil: not set
	RetentionMS int64    // as in NewTask
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

// Change copies those settings of with that are in set.
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
}

// Code is the field num, a message.
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
	f.EndMessage(m)
}
