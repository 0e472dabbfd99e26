package turn

import (
	"context"
	"sync"
	"time"

	"github.com/claimq/claimq/nodes"
)

// restEvery is how long a rest is at least: timers are no finer than that.
const restEvery = time.Millisecond

// Config bounds a line.
type Config struct {
	AtATime int           // how many reads go on
	Waiting int           // how many wait, of all keys; half of them of one key
	Wait    time.Duration // how long one waits
	// Cost is what a read costs beside its turn: its request is read and its answer written.
	Cost time.Duration
	// Rest bounds one rest. A read that had to wait for a core looks as if it had worked for long.
	Rest  time.Duration
	Bound nodes.Bound // the name of both bounds
	Text  string      // what waits, for the answer
}

// Line is the reads that go on and those that wait for it, the keys by turns. It is safe for
// concurrent use.
type Line struct {
	cfg Config

	mu      sync.Mutex // guards what follows
	going   int        // and those that rest in their place
	waiting int
	paid    time.Time // until when the line would rest, had it rested for all work at once
	keys    map[string]*share
	next    []*share // those with somebody that waits, in the order of their turns
}

// share is what waits of one key, the first in line first.
type share struct {
	key   string
	waits []*Turn
}

// Turn is one read's. Its methods are for one goroutine.
type Turn struct {
	line  *Line
	ready chan struct{} // closed when it goes on
	going bool          // guarded by line.mu
	since time.Time     // it works
	rests time.Duration // that it took meanwhile
	until time.Time     // of the latest of them
}

// New returns a line in which nobody waits.
func New(cfg Config) *Line { return &Line{cfg: cfg, keys: make(map[string]*share)} }

// Take returns once the read with that key may go on; the caller ends its turn. Errors: a
// *nodes.Overload when too many wait, or it has waited for too long; ctx's cause.
func (l *Line) Take(ctx context.Context, key string) (*Turn, error) {
	t := &Turn{line: l}
	l.mu.Lock()
	if l.going < l.cfg.AtATime && l.waiting == 0 {
		l.going++
		l.mu.Unlock()
		t.since = time.Now()
		return t, nil
	}
	if !l.waitLocked(t, key) {
		l.mu.Unlock()
		return nil, l.full()
	}
	l.mu.Unlock()
	timer := time.NewTimer(l.cfg.Wait)
	defer timer.Stop()
	select {
	case <-t.ready:
	case <-timer.C:
		if l.leave(t, key) {
			return nil, l.full()
		}
	case <-ctx.Done():
		if l.leave(t, key) {
			return nil, context.Cause(ctx)
		}
	}
	return t, nil
}

func (l *Line) full() error { return &nodes.Overload{Bound: l.cfg.Bound, Text: l.cfg.Text} }

// Waiting returns how many wait.
func (l *Line) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// waitLocked puts t at the end of its key's share, false if there is no place.
func (l *Line) waitLocked(t *Turn, key string) bool {
	s := l.keys[key]
	if l.waiting >= l.cfg.Waiting || s != nil && len(s.waits) >= max(l.cfg.Waiting/2, 1) {
		return false
	}
	if s == nil {
		s = &share{key: key}
		l.keys[key] = s
		l.next = append(l.next, s)
	}
	t.ready = make(chan struct{})
	s.waits = append(s.waits, t)
	l.waiting++
	return true
}

// leave takes t out of the line, false if it has its turn.
func (l *Line) leave(t *Turn, key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.going {
		return false
	}
	s := l.keys[key]
	for i, other := range s.waits {
		if other == t {
			s.waits = append(s.waits[:i], s.waits[i+1:]...)
			break
		}
	}
	l.waiting--
	if len(s.waits) == 0 {
		l.dropLocked(s)
	}
	return true
}

func (l *Line) dropLocked(s *share) {
	delete(l.keys, s.key)
	for i, other := range l.next {
		if other == s {
			l.next = append(l.next[:i], l.next[i+1:]...)
			return
		}
	}
}

// pass gives the place of a read that has ended to the next one.
func (l *Line) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passLocked()
}

func (l *Line) passLocked() {
	if l.waiting == 0 {
		l.going--
		return
	}
	s := l.next[0]
	t := s.waits[0]
	s.waits[0] = nil
	s.waits = s.waits[1:]
	l.waiting--
	l.next = l.next[1:]
	if len(s.waits) == 0 {
		delete(l.keys, s.key)
	} else {
		l.next = append(l.next, s)
	}
	t.going, t.since = true, time.Now()
	close(t.ready)
}

// Rest pauses for as long as the read has worked since it last did.
func (t *Turn) Rest() {
	began := time.Now()
	since := t.since
	if t.until.After(since) {
		since = t.until
	}
	<-time.After(min(began.Sub(since), t.line.cfg.Rest))
	t.until = time.Now()
	t.rests += t.until.Sub(began)
}

// End ends the turn. Its place rests for as long as the read worked, but for what it has
// rested itself, and for what it costs else; then the next read goes on. Rests that are too
// short for a timer add up.
func (t *Turn) End() {
	l, now := t.line, time.Now()
	worked := now.Sub(t.since) - t.rests
	l.mu.Lock()
	defer l.mu.Unlock()
	if begun := now.Add(-worked); l.paid.Before(begun) {
		l.paid = begun
	}
	l.paid = l.paid.Add((worked + max(worked-t.rests, 0) + l.cfg.Cost) / time.Duration(l.cfg.AtATime))
	rest := l.paid.Sub(now)
	if rest < restEvery {
		l.passLocked()
		return
	}
	if rest > l.cfg.Rest {
		rest, l.paid = l.cfg.Rest, now.Add(l.cfg.Rest)
	}
	time.AfterFunc(rest, l.pass)
}
