package slots

import (
	"sync"
	"time"

	"github.com/claimq/claimq/client/internal/lane"
)

// Attempt handles one claim. Its methods are called with a lock held, and must not call methods of Lines except those
// of its WaitGroup.
type Attempt interface {
	State() *State  // always the same
	Interrupt()     // tells the handler to end
	Extend()        // starts extending the claim
	StopExtending() // stops extending the claim
}

// State is the bookkeeping of Lines for an attempt. The zero value is for one that has not begun.
type State struct {
	place    int       // index in Lines.attempts
	running  bool      // the handler runs, and is waited for
	extendAt time.Time // when Extend is due; zero: it was called
}

// Lines holds all attempts of a worker. A line is a goroutine that handles tasks one after the other: it runs the
// handler, and continues with the task that the completion has claimed. Other goroutines reach the attempts of lines
// through this type. It is safe for concurrent use; the zero value is ready. Its WaitGroup counts
// lines, and goroutines that belong to one.
type Lines[A Attempt] struct {
	sync.WaitGroup

	mu          sync.Mutex // guards the fields below, and the attempts' states
	attempts    []A        // under way, in no order
	interrupted bool       // handlers are to end
	closed      bool       // handlers are no longer waited for
	clock       lane.Alarm
}

// Begin adds an attempt whose handler is about to run. It calls its Extend at extendAt, unless the attempt ends
// before. It returns false if the handler must no longer run.
func (l *Lines[A]) Begin(a A, extendAt time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	*a.State() = State{place: len(l.attempts), running: true, extendAt: extendAt}
	l.attempts = append(l.attempts, a)
	l.clock.Set(extendAt, l.extendDue)
	if l.interrupted {
		a.Interrupt()
	}
	return true
}

// Returned notes that the handler of an attempt has returned. It returns false if the attempt was left behind before.
func (l *Lines[A]) Returned(a A) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := a.State().running
	a.State().running = false
	return was
}

// StopExtending calls the StopExtending of an attempt if its handler still runs; then the caller must call Done. It
// returns false if the handler has returned or was left behind.
func (l *Lines[A]) StopExtending(a A) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !a.State().running {
		return false
	}
	l.Add(1)
	a.StopExtending()
	return true
}

// End removes an attempt that has begun.
func (l *Lines[A]) End(a A) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var none A
	last, place := len(l.attempts)-1, a.State().place
	l.attempts[place] = l.attempts[last]
	l.attempts[place].State().place = place
	l.attempts[last] = none
	l.attempts = l.attempts[:last]
	if last == 0 {
		l.clock.Stop()
	}
}

// extendDue starts the extends that are due.
func (l *Lines[A]) extendDue() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.Rang()
	now := time.Now()
	for _, a := range l.attempts {
		s := a.State()
		if !s.extendAt.IsZero() && !now.Before(s.extendAt) {
			s.extendAt = time.Time{}
			a.Extend()
		}
		l.clock.Set(s.extendAt, l.extendDue)
	}
}

// Interrupt tells the handlers to end, including those that begin later.
func (l *Lines[A]) Interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.interrupted = true
	for _, a := range l.attempts {
		if a.State().running {
			a.Interrupt()
		}
	}
}

// Abandon gives up waiting for the handlers that have not returned, and returns their attempts, which the caller ends.
// No further attempt can begin.
func (l *Lines[A]) Abandon() (left []A) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, a := range l.attempts {
		if a.State().running {
			a.State().running = false
			left = append(left, a)
		}
	}
	return left
}
