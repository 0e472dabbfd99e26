package client

import (
	"sync"
	"time"

	"github.com/claimq/claimq/client/internal/alarm"
)

// lines are the goroutines of a shift that handle tasks, one after the other: a handler runs
// in that of its line, and what its complete claims is the next of the line. All attempts that
// are under way are known here, for what comes to them from outside.
type lines struct {
	sync.WaitGroup // of the lines, but those that were left, and of what gives claims back

	mu       sync.Mutex // guards what follows, and the place, handling and extendAt of attempts
	attempts []*attempt // under way, in no order
	hurried  bool       // handlers are to come to their ends
	closed   bool       // none is waited for any more
	clock    alarm.Alarm
}

// begin takes in an attempt whose handler is about to run. It returns false if it must not.
func (l *lines) begin(a *attempt) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	a.place, a.handling = len(l.attempts), true
	l.attempts = append(l.attempts, a)
	l.clock.Set(a.extendAt, l.ring)
	if l.hurried {
		a.cancel(ErrShutdown)
	}
	return true
}

// returned says that the handler of an attempt has returned. It returns false if it was left
// before: then the line is over.
func (l *lines) returned(a *attempt) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := a.handling
	a.handling = false
	return was
}

// isHandling reports whether the handler runs, and is waited for.
func (l *lines) isHandling(a *attempt) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return a.handling
}

// end takes out an attempt.
func (l *lines) end(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.attempts) - 1
	l.attempts[a.place] = l.attempts[last]
	l.attempts[a.place].place = a.place
	l.attempts[last] = nil
	l.attempts = l.attempts[:last]
	if last == 0 {
		l.clock.Stop()
	}
}

// ring begins the extends that are due.
func (l *lines) ring() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.Rang()
	now := time.Now()
	for _, a := range l.attempts {
		if !a.extendAt.IsZero() && !now.Before(a.extendAt) {
			a.extendAt = time.Time{}
			go a.extend() // which the end of the attempt waits for
		}
		l.clock.Set(a.extendAt, l.ring)
	}
}

// hurry ends the contexts of the handlers that run.
func (l *lines) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hurried = true
	for _, a := range l.attempts {
		if a.handling {
			a.cancel(ErrShutdown)
		}
	}
}

// leave gives up the handlers that have not returned, and returns their attempts. None begins
// any more.
func (l *lines) leave() (left []*attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, a := range l.attempts {
		if a.handling {
			a.handling = false
			left = append(left, a)
		}
	}
	return left
}
