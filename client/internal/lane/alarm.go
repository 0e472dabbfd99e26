package lane

import "time"

// alarm is the one clock of all calls of a lane: a timer for each would be a tenth of what a
// call costs, and nearly all are answered long before. The lane's lock guards it.
type alarm struct {
	timer *time.Timer
	at    time.Time // when it rings; zero: it is not set
}

// set has ring called at t, unless it rings before that. The zero time is never.
func (a *alarm) set(t time.Time, ring func()) {
	if t.IsZero() || !a.at.IsZero() && !t.Before(a.at) {
		return
	}
	a.at = t
	if a.timer == nil {
		a.timer = time.AfterFunc(time.Until(t), ring)
		return
	}
	a.timer.Reset(time.Until(t))
}

// rang says that it has rung.
func (a *alarm) rang() { a.at = time.Time{} }

// stop has it not ring any more, until it is set again.
func (a *alarm) stop() {
	a.at = time.Time{}
	if a.timer != nil {
		a.timer.Stop()
	}
}
