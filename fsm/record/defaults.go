package record

import "google.golang.org/protobuf/encoding/protowire"

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

// Code is the field num, a message TypeSettings without pause and limits.
func (d *Defaults) Code(f *Fields, num protowire.Number) {
	s := d.Settings()
	if s.Code(f, num); f.Reading {
		if *d = DefaultsOf(&s); s != d.Settings() {
			f.Fail("a pause or a limit is no default")
		}
	}
}
