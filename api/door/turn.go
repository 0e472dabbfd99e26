package door

import (
	"context"
	"sync"
	"time"

	"github.com/claimq/claimq/nodes"
)

// turnRestEvery is the least length of a rest, because timers are not more precise.
const turnRestEvery = time.Millisecond

// LineConfig bounds a line.
type LineConfig struct {
	AtATime int           // reads that run
	Waiting int           // reads that wait, of all keys; half of them of one key
	Wait    time.Duration // how long a read waits
	// Cost is the cost of a read in addition to its turn: reading its request and writing its answer.
	Cost time.Duration
	// Rests makes the line rest that many times as long as its reads work; 0 is once.
	Rests int
	// Rest bounds one rest, because a read that had to wait for a core seems to have worked for long.
	Rest  time.Duration
	Bound nodes.Bound // the name of both bounds
	Text  string      // for the refusal
}

// Line gives reads their turns: it bounds how many run and how many wait, and serves keys in turn. It rests for at least
// as long as its reads work, because Raft and mutations need the same cores. It is safe for concurrent use.
type Line struct {
	cfg LineConfig

	mu      sync.Mutex // guards what follows
	going   int        // running reads, including places that rest
	waiting int
	paid    time.Time // until when the line would rest if it rested for all work at once
	keys    map[string]*keyTurns
	next    []*keyTurns // the keys with waiting reads, in the order of their turns
}

// keyTurns holds the waiting reads of one key, in order.
type keyTurns struct {
	key   string
	waits []*Turn
}

// Turn is the turn of one read. Its methods are for one goroutine.
type Turn struct {
	line  *Line
	ready chan struct{} // closed when it may run
	going bool          // guarded by line.mu
	since time.Time     // when it began to work
	rests time.Duration // rests that it took meanwhile
	until time.Time     // the end of the latest rest
}

// NewLine returns an empty line.
func NewLine(cfg LineConfig) *Line {
	cfg.Rests = max(cfg.Rests, 1)
	return &Line{cfg: cfg, keys: make(map[string]*keyTurns)}
}

// restAfter returns how long the line rests after so much work.
func (l *Line) restAfter(worked time.Duration) time.Duration {
	return time.Duration(l.cfg.Rests) * worked
}

// Take returns once the read with that key may run. The caller must end the turn. Errors: a *nodes.Overload if too
// many wait, or it has waited for too long; ctx's cause.
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

// Waiting returns the number of waiting reads.
func (l *Line) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// waitLocked adds t to the end of its key's share. It returns false if there is no room.
func (l *Line) waitLocked(t *Turn, key string) bool {
	s := l.keys[key]
	if l.waiting >= l.cfg.Waiting || s != nil && len(s.waits) >= max(l.cfg.Waiting/2, 1) {
		return false
	}
	if s == nil {
		s = &keyTurns{key: key}
		l.keys[key] = s
		l.next = append(l.next, s)
	}
	t.ready = make(chan struct{})
	s.waits = append(s.waits, t)
	l.waiting++
	return true
}

// leave removes t from the line. It returns false if t has its turn.
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

func (l *Line) dropLocked(s *keyTurns) {
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

// Rest pauses for the work of the read since its last rest.
func (t *Turn) Rest() {
	began := time.Now()
	since := t.since
	if t.until.After(since) {
		since = t.until
	}
	<-time.After(min(t.line.restAfter(began.Sub(since)), t.line.cfg.Rest))
	t.until = time.Now()
	t.rests += t.until.Sub(began)
}

// End ends the turn. Its place rests for the work of the read, less its own rests, plus its Cost; then the next read
// runs. Rests that are too short for a timer add up.
func (t *Turn) End() {
	l, now := t.line, time.Now()
	worked := now.Sub(t.since) - t.rests
	l.mu.Lock()
	defer l.mu.Unlock()
	if begun := now.Add(-worked); l.paid.Before(begun) {
		l.paid = begun
	}
	l.paid = l.paid.Add((worked + max(l.restAfter(worked)-t.rests, 0) + l.cfg.Cost) / time.Duration(l.cfg.AtATime))
	rest := l.paid.Sub(now)
	if rest < turnRestEvery {
		l.passLocked()
		return
	}
	if rest > l.cfg.Rest {
		rest, l.paid = l.cfg.Rest, now.Add(l.cfg.Rest)
	}
	time.AfterFunc(rest, l.pass)
}
