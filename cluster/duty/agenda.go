package duty

import (
	"math"
	"sync/atomic"
	"time"
)

// agenda holds the time until which a goroutine of the leader sleeps. Entries may add
// something earlier.
type agenda struct {
	planned atomic.Int64  // by T; MaxInt64 = nothing
	earlier chan struct{} // capacity 1: something is due before planned
}

func newAgenda() *agenda {
	a := &agenda{earlier: make(chan struct{}, 1)}
	a.planned.Store(math.MaxInt64)
	return a
}

// plan sets the time until which the goroutine sleeps. It is called under the state's read
// lock.
func (a *agenda) plan(t int64, ok bool) {
	if !ok {
		t = math.MaxInt64
	}
	a.planned.Store(t)
}

// note is called, under the state's lock, with what is due first after an entry.
func (a *agenda) note(t int64, ok bool) {
	if ok && t < a.planned.Load() {
		a.hurry()
	}
}

// hurry wakes the goroutine.
func (a *agenda) hurry() {
	select {
	case a.earlier <- struct{}{}:
	default:
	}
}

// untilT returns how long to sleep until t by a calendar that shows now.
func untilT(t, now int64) time.Duration {
	return time.Duration(min(max(t-now, 0), Interval.Milliseconds())) * time.Millisecond
}
