// Package alarm is one timer for many that wait.
package alarm

import "time"

// Alarm rings at the first of the times that it is set for: who is woken sets it again for the
// rest. A timer for each would be a tenth of what a call of the client costs, and nearly all are
// over long before their time. Whoever has it guards it by a lock, which ring takes, too.
type Alarm struct {
	timer *time.Timer
	at    time.Time // when it rings; zero: it is not set
}

// Set has ring called at t, in a goroutine of its own, unless it rings before that. The zero
// time is never. ring is always the same.
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

// IsSet reports whether it will ring.
func (a *Alarm) IsSet() bool { return !a.at.IsZero() }

// Rang says that it has rung.
func (a *Alarm) Rang() { a.at = time.Time{} }

// Stop has it not ring any more until it is set again, but for a ring that has begun.
func (a *Alarm) Stop() {
	a.at = time.Time{}
	if a.timer != nil {
		a.timer.Stop()
	}
}
