package lane

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/claimq/claimq/client/internal/alarm"
)

const (
	// AloneMax is how many calls of a lane may be under way by themselves.
	AloneMax = 8
	// outMax bounds the shared requests of a lane that are out: one, and another beside
	// one that is out for unusually long, so that a node that hangs does not hold all.
	outMax = 2
	// A shared request is out for unusually long after overdueFactor times what is usual,
	// and overdueMin.
	overdueFactor = 4
	overdueMin    = 50 * time.Millisecond
	// growth is of how many calls of the largest request the next may have one more.
	growth = 16
	// usualShare is the weight of all before in what is usual, against the last one's 1.
	usualShare = 7
)

var (
	// ErrQueued is returned for a call whose time was over while it was in the queue:
	// nothing of it was sent.
	ErrQueued = errors.New("not sent")
	// ErrSent is returned for a call whose time was over while its request was out. The
	// request goes on.
	ErrSent = errors.New("sent and not answered")
	// ErrClosed is returned for a call of which nothing was sent before Close.
	ErrClosed = errors.New("not sent: the lane is closed")
)

// Send makes the shared request of a group and sets the Result of each of its calls.
// ctx ends when all callers have left, and at the latest of their deadlines. tooMuch says
// that the request was refused for what is in it, or for how much.
type Send[R any] func(ctx context.Context, calls []*Call[R]) (tooMuch bool)

// Lane is the queue of calls of one kind. It is safe for concurrent use. The queue is
// as long as there are callers in Share.
type Lane[R any] struct {
	send  Send[R]
	begin func(func()) // begins a goroutine that somebody waits for

	mu      sync.Mutex // guards what follows, and the groups
	alone   int        // calls under way by themselves
	out     int        // shared requests under way
	overdue int        // of them, those that are out for unusually long
	closed  bool       // none begins any more
	queue   []*Call[R]
	groups  []*group[R]   // of the shared requests that are out, outMax at most
	most    int           // how many calls a request has at most
	usual   time.Duration // how long a shared request is out; 0: there was none
	clock   alarm.Alarm   // of the callers that wait, and leave before their contexts end
}

// New returns a lane. begin begins a goroutine; the lane begins them in Share alone.
func New[R any](send Send[R], begin func(func())) *Lane[R] {
	return &Lane[R]{send: send, begin: begin, most: CallsMax}
}

// Alone reports whether the caller is to make its call by itself; it then calls Left
// after it.
func (l *Lane[R]) Alone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out > 0 || l.alone >= AloneMax {
		return false
	}
	l.alone++
	return true
}

// Left ends a call that was made alone.
func (l *Lane[R]) Left() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alone--
}

// Share has the call made with others, and waits for its Result, for the end of ctx or
// until c.Until, which it sets to ctx's deadline if that is earlier. Errors: ErrQueued,
// ErrSent, ErrClosed.
func (l *Lane[R]) Share(ctx context.Context, c *Call[R]) error {
	if ctx.Err() != nil {
		return ErrQueued
	}
	c.alarmAt = c.Until
	if deadline, ok := ctx.Deadline(); ok && (c.Until.IsZero() || !deadline.After(c.Until)) {
		c.Until, c.alarmAt = deadline, time.Time{}
	}
	c.done = make(chan struct{})
	if !l.join(c) {
		return ErrClosed
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return l.leave(c)
	}
}

// join puts the call into the queue, if the lane is not closed.
func (l *Lane[R]) join(c *Call[R]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.queue = append(l.queue, c)
	l.clock.Set(c.alarmAt, l.expire)
	l.start()
	return true
}

// Close lets no shared request begin any more, and ends the calls in the queue.
func (l *Lane[R]) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, c := range l.queue {
		c.end(ErrClosed)
	}
	l.queue = nil
}

// leave takes a call back whose caller waits no longer, as far as it can be.
func (l *Lane[R]) leave(c *Call[R]) error {
	l.mu.Lock()
	switch {
	case c.ended: // or will be as soon as the lock is free
	case c.group == nil:
		l.queue = slices.DeleteFunc(l.queue, func(other *Call[R]) bool { return other == c })
		c.end(ErrQueued)
	default:
		c.group.leave(c)
	}
	l.mu.Unlock()
	<-c.done
	return c.err
}

// expire takes back the calls whose time is over, and sets the clock for the others.
func (l *Lane[R]) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.clock.Rang()
	l.queue = slices.DeleteFunc(l.queue, func(c *Call[R]) bool {
		if !c.isOver(now) {
			l.clock.Set(c.alarmAt, l.expire)
			return false
		}
		c.end(ErrQueued)
		return true
	})
	for _, g := range l.groups {
		for _, c := range g.calls {
			switch {
			case c.ended:
			case c.isOver(now):
				g.leave(c)
			default:
				l.clock.Set(c.alarmAt, l.expire)
			}
		}
	}
}

// start begins a shared request if there are calls for it, and it may be. The caller
// holds the lock.
func (l *Lane[R]) start() {
	if len(l.queue) > 0 && l.mayBegin() {
		l.out++
		l.begin(l.run)
	}
}

func (l *Lane[R]) mayBegin() bool { return !l.closed && l.out < min(1+l.overdue, outMax) }

// run sends one group after the other, until the queue is empty.
func (l *Lane[R]) run() {
	l.mu.Lock()
	for {
		g := l.take()
		if g == nil {
			break
		}
		l.mu.Unlock()
		l.carry(g)
		l.mu.Lock()
		if l.out > 1+l.overdue {
			break // the one beside which it was begun goes on
		}
	}
	l.out--
	l.mu.Unlock()
}

// take makes a group of the calls at the head of the queue; nil: there are none, or the
// lane is closed. The caller holds the lock.
func (l *Lane[R]) take() *group[R] {
	if l.closed {
		return nil
	}
	n := fit(l.queue, l.most)
	if n == 0 {
		return nil
	}
	g := newGroup(slices.Clone(l.queue[:n]))
	l.queue = slices.Delete(l.queue, 0, n)
	l.groups = append(l.groups, g)
	return g
}

// carry sends a group and ends its calls.
func (l *Lane[R]) carry(g *group[R]) {
	begun := time.Now()
	l.mu.Lock()
	usual := l.usual
	l.mu.Unlock()
	late := time.AfterFunc(max(overdueFactor*usual, overdueMin), func() { l.late(g) })
	tooMuch := l.send(g.ctx, g.calls)
	late.Stop()
	g.cancel()
	for _, c := range l.over(g, time.Since(begun), tooMuch) {
		close(c.done)
	}
	for _, c := range g.calls {
		if c.err != nil && c.Unread != nil {
			c.Unread()
		}
	}
}

// over takes note of how a shared request ended, which took d. It returns the calls whose
// callers are to be woken.
func (l *Lane[R]) over(g *group[R], d time.Duration, tooMuch bool) (answered []*Call[R]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.over = true
	l.groups = slices.DeleteFunc(l.groups, func(other *group[R]) bool { return other == g })
	if g.overdue {
		l.overdue--
	}
	l.learn(d)
	l.resize(len(g.calls), tooMuch)
	if len(l.groups) == 0 && len(l.queue) == 0 {
		l.clock.Stop()
	}
	return g.answered()
}

// late lets another request go beside one that is out for unusually long.
func (l *Lane[R]) late(g *group[R]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !g.over {
		g.overdue = true
		l.overdue++
		l.start()
	}
}

// learn takes how long a shared request was out into what is usual. One that was out
// for unusually long counts as one that just was not. The caller holds the lock.
func (l *Lane[R]) learn(d time.Duration) {
	if l.usual == 0 {
		l.usual = min(d, overdueMin)
		return
	}
	d = min(d, max(overdueFactor*l.usual, overdueMin))
	l.usual = (usualShare*l.usual + d) / (usualShare + 1)
}

// resize takes into account how a request of n calls went. One that was refused is
// followed by such of half its size, and those that are not grow again: so a server that
// takes less, or callers that are refused, cost the others little. The caller holds the
// lock.
func (l *Lane[R]) resize(n int, tooMuch bool) {
	switch {
	case tooMuch:
		l.most = max(n/2, 1)
	case n >= l.most:
		l.most = min(l.most+l.most/growth+1, CallsMax)
	}
}
