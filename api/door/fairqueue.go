package door

import (
	"context"
	"sync"
	"time"

	"github.com/claimq/claimq/nodes"
)

// turnRestEvery is the least length of a rest, because timers are not more precise.
const turnRestEvery = time.Millisecond

// FairQueueConfig bounds a queue.
type FairQueueConfig struct {
	AtATime int           // reads that run
	Waiting int           // reads that wait, of all keys; half of them of one key
	Wait    time.Duration // how long a read waits
	// Cost is the cost of a read in addition to its turn: reading its request and writing its answer.
	Cost time.Duration
	// Rests makes the queue rest that many times as long as its reads work; 0 is once.
	Rests int
	// Rest bounds one rest, because a read that had to wait for a core seems to have worked for long.
	Rest  time.Duration
	Bound nodes.Bound // the name of both bounds
	Text  string      // for the refusal
}

// FairQueue gives reads their turns: it bounds how many run and how many wait, and serves keys in turn. It rests for at
// least as long as its reads work, because Raft and mutations need the same cores. It is safe for concurrent use.
type FairQueue struct {
	cfg FairQueueConfig

	mu      sync.Mutex // guards what follows
	going   int        // running reads, including places that rest
	waiting int
	paid    time.Time // until when the queue would rest if it rested for all work at once
	keys    map[string]*keyQueue
	next    []*keyQueue // the keys with waiting reads, in the order of their turns
}

// keyQueue holds the waiting reads of one key, in order.
type keyQueue struct {
	key   string
	waits []*Turn
}

// Turn is the turn of one read. Its methods are for one goroutine.
type Turn struct {
	queue *FairQueue
	ready chan struct{} // closed when it may run
	going bool          // guarded by queue.mu
	since time.Time     // when it began to work
	rests time.Duration // rests that it took meanwhile
	until time.Time     // the end of the latest rest
}

// NewFairQueue returns an empty queue.
func NewFairQueue(cfg FairQueueConfig) *FairQueue {
	cfg.Rests = max(cfg.Rests, 1)
	return &FairQueue{cfg: cfg, keys: make(map[string]*keyQueue)}
}

// restAfter returns how long the queue rests after so much work.
func (q *FairQueue) restAfter(worked time.Duration) time.Duration {
	return time.Duration(q.cfg.Rests) * worked
}

// Take returns once the read with that key may run. The caller must end the turn. Errors: a *nodes.Overload if too
// many wait, or it has waited for too long; ctx's cause.
func (q *FairQueue) Take(ctx context.Context, key string) (*Turn, error) {
	t := &Turn{queue: q}
	q.mu.Lock()
	if q.going < q.cfg.AtATime && q.waiting == 0 {
		q.going++
		q.mu.Unlock()
		t.since = time.Now()
		return t, nil
	}
	if !q.waitLocked(t, key) {
		q.mu.Unlock()
		return nil, q.full()
	}
	q.mu.Unlock()
	timer := time.NewTimer(q.cfg.Wait)
	defer timer.Stop()
	select {
	case <-t.ready:
	case <-timer.C:
		if q.leave(t, key) {
			return nil, q.full()
		}
	case <-ctx.Done():
		if q.leave(t, key) {
			return nil, context.Cause(ctx)
		}
	}
	return t, nil
}

func (q *FairQueue) full() error { return &nodes.Overload{Bound: q.cfg.Bound, Text: q.cfg.Text} }

// Waiting returns the number of waiting reads.
func (q *FairQueue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// waitLocked adds t to the end of its key's queue. It returns false if there is no room.
func (q *FairQueue) waitLocked(t *Turn, key string) bool {
	s := q.keys[key]
	if q.waiting >= q.cfg.Waiting || s != nil && len(s.waits) >= max(q.cfg.Waiting/2, 1) {
		return false
	}
	if s == nil {
		s = &keyQueue{key: key}
		q.keys[key] = s
		q.next = append(q.next, s)
	}
	t.ready = make(chan struct{})
	s.waits = append(s.waits, t)
	q.waiting++
	return true
}

// leave removes t from the queue. It returns false if t has its turn.
func (q *FairQueue) leave(t *Turn, key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.going {
		return false
	}
	s := q.keys[key]
	for i, other := range s.waits {
		if other == t {
			s.waits = append(s.waits[:i], s.waits[i+1:]...)
			break
		}
	}
	q.waiting--
	if len(s.waits) == 0 {
		q.dropLocked(s)
	}
	return true
}

func (q *FairQueue) dropLocked(s *keyQueue) {
	delete(q.keys, s.key)
	for i, other := range q.next {
		if other == s {
			q.next = append(q.next[:i], q.next[i+1:]...)
			return
		}
	}
}

// pass gives the place of a read that has ended to the next one.
func (q *FairQueue) pass() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.passLocked()
}

func (q *FairQueue) passLocked() {
	if q.waiting == 0 {
		q.going--
		return
	}
	s := q.next[0]
	t := s.waits[0]
	s.waits[0] = nil
	s.waits = s.waits[1:]
	q.waiting--
	q.next = q.next[1:]
	if len(s.waits) == 0 {
		delete(q.keys, s.key)
	} else {
		q.next = append(q.next, s)
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
	<-time.After(min(t.queue.restAfter(began.Sub(since)), t.queue.cfg.Rest))
	t.until = time.Now()
	t.rests += t.until.Sub(began)
}

// End ends the turn. Its place rests for the work of the read, less its own rests, plus its Cost; then the next read
// runs. Rests that are too short for a timer add up.
func (t *Turn) End() {
	q, now := t.queue, time.Now()
	worked := now.Sub(t.since) - t.rests
	q.mu.Lock()
	defer q.mu.Unlock()
	if begun := now.Add(-worked); q.paid.Before(begun) {
		q.paid = begun
	}
	q.paid = q.paid.Add((worked + max(q.restAfter(worked)-t.rests, 0) + q.cfg.Cost) / time.Duration(q.cfg.AtATime))
	rest := q.paid.Sub(now)
	if rest < turnRestEvery {
		q.passLocked()
		return
	}
	if rest > q.cfg.Rest {
		rest, q.paid = q.cfg.Rest, now.Add(q.cfg.Rest)
	}
	time.AfterFunc(rest, q.pass)
}
