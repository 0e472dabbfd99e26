// Package lines knows the attempts of a worker that are under way: which handlers run, whose
// claims are to be extended, and which are not waited for any more.
//
// A line is a goroutine that handles tasks, one after the other: a handler runs in that of its
// line, and what its complete claims is the next of the line. What comes to an attempt from
// outside finds it here.
package lines

import (
	"sync"
	"time"

	"github.com/claimq/claimq/client/internal/alarm"
)

// Attempt is the handling of one claim. Its methods are called with a lock held, and call
// nothing of Lines but its WaitGroup.
type Attempt interface {
	State() *State // always the same
	Hurry()        // has the handler come to its end
	Extend()       // begins to extend the claim
	LetGo()        // has nothing extend the claim any more
}

// State is what Lines keeps of an attempt. The zero value is of one that has not begun.
type State struct {
	place    int       // in Lines.attempts
	running  bool      // the handler runs, and is waited for
	extendAt time.Time // when Extend is due; zero: it was called
}

// Lines is all attempts of a worker. It is safe for concurrent use; the zero value is ready. Its
// WaitGroup is for who begins lines and ends them, and for what goes on beside one.
type Lines[A Attempt] struct {
	sync.WaitGroup

	mu       sync.Mutex // guards what follows, and the attempts' states
	attempts []A        // under way, in no order
	hurried  bool       // handlers are to come to their ends
	closed   bool       // none is waited for any more
	clock    alarm.Alarm
}

// Begin takes in an attempt whose handler is about to run, and calls its Extend then, if it has
// not ended before. It returns false if the handler must not run any more.
func (l *Lines[A]) Begin(a A, extendAt time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	*a.State() = State{place: len(l.attempts), running: true, extendAt: extendAt}
	l.attempts = append(l.attempts, a)
	l.clock.Set(extendAt, l.ring)
	if l.hurried {
		a.Hurry()
	}
	return true
}

// Returned says that the handler of an attempt has returned. It returns false if that was left
// before.
func (l *Lines[A]) Returned(a A) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := a.State().running
	a.State().running = false
	return was
}

// LetGo lets go of the claim of an attempt whose handler runs and is waited for. It returns false
// if that is not so; else the caller is waited for as a line is, until it calls Done.
func (l *Lines[A]) LetGo(a A) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !a.State().running {
		return false
	}
	l.Add(1)
	a.LetGo()
	return true
}

// End takes out an attempt that has begun.
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

// ring begins the extends that are due.
func (l *Lines[A]) ring() {
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
		l.clock.Set(s.extendAt, l.ring)
	}
}

// Hurry has the handlers come to their ends, and those that begin later.
func (l *Lines[A]) Hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hurried = true
	for _, a := range l.attempts {
		if a.State().running {
			a.Hurry()
		}
	}
}

// Leave gives up the handlers that have not returned, and returns their attempts, which have not
// ended. None begins any more.
func (l *Lines[A]) Leave() (left []A) {
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
