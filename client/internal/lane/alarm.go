package lane

import "time"

// Alarm rings at the earliest time that it is set for; the callback then sets it again for the others. One timer for
// each call would be a tenth of the client's cost per call, and nearly all calls end long before their time. The
// owner guards it with a lock, which the callback takes, too.
type Alarm struct {
	timer *time.Timer
	at    time.Time // when it rings; zero: it is not set
}

// Set makes the alarm call ring at t, in a new goroutine, unless it is already set for an earlier time. The zero time
// means never. ring must always be the same function.
func (a *Alarm) Set(t time.Time, ring func()) {
	if t.IsZero() || a.IsSet() && !t.Before(a.at) {
		return
	}
	a.at = t
	if a.timer == nil {
		a.timer = time.AfterFunc(time.Until(t), ring)
		return
	}
	a.timer.Reset(time.Until(t))
}

// IsSet reports whether the alarm will ring.
func (a *Alarm) IsSet() bool { return !a.at.IsZero() }

// Rang notes that the alarm has rung.
func (a *Alarm) Rang() { a.at = time.Time{} }

// Stop keeps the alarm from ringing until it is set again. A ring that has begun continues.
func (a *Alarm) Stop() {
	a.at = time.Time{}
	if a.timer != nil {
		a.timer.Stop()
	}
}
