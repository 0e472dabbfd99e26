package lane

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// AloneMax bounds the calls of a lane that are under way by themselves.
	AloneMax = 8
	// outMax bounds the shared requests of a lane that are out: one, and another in parallel to an overdue one, so
	// that a node that hangs does not hold up all calls.
	outMax = 2
	// A shared request is overdue after overdueFactor times the usual time, and at least overdueMin.
	overdueFactor = 4
	overdueMin    = 50 * time.Millisecond
	// gatherMax is the length of the queue at which the next request waits for no further calls. With that many, the
	// work of nodes and callers at the same time is worth more than a larger request.
	gatherMax = 256
	// growth says how fast requests grow: after a full one, the limit rises by one call per growth calls.
	growth = 16
	// usualShare is the weight of the previous average in the usual time, against 1 for the last request.
	usualShare = 7
)

var (
	// ErrQueued is returned for a call that was still in the queue when its time was over; it was not sent.
	ErrQueued = errors.New("not sent")
	// ErrSent is returned for a call whose request was out when its time was over. The request goes on.
	ErrSent = errors.New("sent and not answered")
	// ErrClosed is returned for a call that was not sent before Close.
	ErrClosed = errors.New("not sent: the lane is closed")
)

// Send makes the shared request of a group and sets the Result of each call. ctx ends when all callers have left, at
// the latest at the last of their deadlines. tooMuch says that the request was refused because of its content or
// size.
type Send[R any] func(ctx context.Context, calls []*Call[R]) (tooMuch bool)

// Lane is the queue of calls of one kind. It is safe for concurrent use. The queue is as long as there are callers in
// Share.
type Lane[R any] struct {
	send  Send[R]
	begin func(func()) // starts a goroutine that is waited for elsewhere
	ring  func()       // expire, for the clock; made once, because each mention of a method allocates

	mu      sync.Mutex // guards the fields below, and the groups
	alone   int        // calls under way by themselves
	out     int        // shared requests under way
	overdue int        // those of them that are overdue
	closed  bool       // no further request may begin
	queue   []*Call[R]
	groups  []*group[R]   // of the shared requests that are out, at most outMax
	most    int           // maximum number of calls in a request
	usual   time.Duration // how long a shared request usually takes; 0 before the first
	clock   Alarm         // for callers that leave before their contexts end
	// watched are the Done channels of the contexts that Watch watches.
	watched []<-chan struct{}

	spare sync.Pool // of calls that Recycle got, as *Call[R]
}

// New returns a lane. begin starts a goroutine; only Share calls it.
func New[R any](send Send[R], begin func(func())) *Lane[R] {
	l := &Lane[R]{send: send, begin: begin, most: CallsMax}
	l.ring = l.expire
	return l
}

// Alone reports whether the caller should make its call by itself. If so, it must call Left afterwards.
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

// NewCall returns a call for Share, which Recycle may have got before.
func (l *Lane[R]) NewCall() *Call[R] {
	if c, ok := l.spare.Get().(*Call[R]); ok {
		return c
	}
	return &Call[R]{done: make(chan struct{}, 1)}
}

// Recycle gives the memory of a call to the next one. Share must have returned nil for it.
func (l *Lane[R]) Recycle(c *Call[R]) {
	*c = Call[R]{done: c.done}
	l.spare.Put(c)
}

// Share makes the call, which is from NewCall, together with others. It waits for its Result, for the end of ctx or
// until c.Until, which it sets to ctx's deadline if that is earlier. Errors: ErrQueued, ErrSent, ErrClosed.
func (l *Lane[R]) Share(ctx context.Context, c *Call[R]) error {
	c.alarmAt = c.Until
	if deadline, ok := ctx.Deadline(); ok && (c.Until.IsZero() || !deadline.After(c.Until)) {
		c.Until, c.alarmAt = deadline, time.Time{}
	}
	if err := l.join(ctx, c); err != nil {
		return err
	}
	if c.context != nil || ctx.Done() == nil {
		<-c.done // to choose among two channels takes twice as long, and all callers would lock the context's
	} else {
		select {
		case <-c.done:
		case <-ctx.Done():
			l.leave(c)
			<-c.done
		}
	}
	return c.err
}

// join adds the call to the queue, unless its context has ended or the lane is closed.
func (l *Lane[R]) join(ctx context.Context, c *Call[R]) error {
	done := ctx.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case ctx.Err() != nil: // under the lock, so that the end of a watched context misses no call
		return ErrQueued
	case l.closed:
		return ErrClosed
	}
	if slices.Contains(l.watched, done) {
		c.context = done
	}
	l.queue = append(l.queue, c)
	l.clock.Set(c.alarmAt, l.ring)
	l.start()
	return nil
}

// Watch watches a context that many callers will have, until the returned function is called, which must be after the
// last of their calls. Each of these callers then only waits for its call. When the context ends they leave, as any
// other.
func (l *Lane[R]) Watch(ctx context.Context) (end func()) {
	done := ctx.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched = append(l.watched, done)
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.withdraw(func(c *Call[R]) bool { return c.context == done })
	})
	return func() {
		stop()
		l.mu.Lock()
		defer l.mu.Unlock()
		at := slices.Index(l.watched, done)
		l.watched = slices.Delete(l.watched, at, at+1)
	}
}

// Close prevents further shared requests, and ends the calls in the queue.
func (l *Lane[R]) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, c := range l.queue {
		c.end(ErrClosed)
	}
	l.queue = nil
}

// leave withdraws a call whose caller no longer waits, as far as possible.
func (l *Lane[R]) leave(c *Call[R]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case c.ended: // or it is about to be, once the lock is free
	case c.group == nil:
		l.queue = slices.DeleteFunc(l.queue, func(other *Call[R]) bool { return other == c })
		c.end(ErrQueued)
	default:
		c.group.leave(c)
	}
}

// expire withdraws the calls whose time is over, and sets the clock for the others.
func (l *Lane[R]) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.clock.Rang()
	l.withdraw(func(c *Call[R]) bool {
		if c.isOver(now) {
			return true
		}
		l.clock.Set(c.alarmAt, l.ring)
		return false
	})
}

// withdraw withdraws the calls for which leave returns true, as far as possible. The caller holds the lock.
func (l *Lane[R]) withdraw(leave func(*Call[R]) bool) {
	l.queue = slices.DeleteFunc(l.queue, func(c *Call[R]) bool {
		if !leave(c) {
			return false
		}
		c.end(ErrQueued)
		return true
	})
	for _, g := range l.groups {
		for _, c := range g.calls {
			if !c.ended && leave(c) {
				g.leave(c)
			}
		}
	}
}

// start begins a shared request if there are calls for it and it may begin. The caller holds the lock.
func (l *Lane[R]) start() {
	if len(l.queue) > 0 && l.mayBegin() {
		l.out++
		l.begin(l.run)
	}
}

func (l *Lane[R]) mayBegin() bool { return !l.closed && l.out < min(1+l.overdue, outMax) }

// run sends group after group until the queue is empty.
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
		l.gather()
		if l.out > 1+l.overdue {
			break // the request that was overdue goes on
		}
	}
	l.out--
	l.mu.Unlock()
}

// gather lets the callers that a request has woken make their next calls before another request takes the queue. Without
// that it would take only those that queued meanwhile, and half of the callers would always wait for the other half. It
// gives way for as long as the queue grows, which takes next to no time. The caller holds the lock.
func (l *Lane[R]) gather() {
	for had := -1; had < len(l.queue) && len(l.queue) < gatherMax; {
		had = len(l.queue)
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
	}
}

// take makes a group of the calls at the head of the queue. It returns nil if the queue is empty or the lane is closed.
// The caller holds the lock.
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
	answered, left := l.over(g, time.Since(begun), tooMuch)
	for _, c := range answered {
		c.done <- struct{}{} // the caller may recycle it at once
	}
	for _, c := range left {
		if c.Unread != nil {
			c.Unread()
		}
	}
}

// over records the end of a shared request that took d. It returns the calls whose callers must be woken, and those
// whose callers have left.
func (l *Lane[R]) over(g *group[R], d time.Duration, tooMuch bool) (answered, left []*Call[R]) {
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

// late permits another request in parallel to an overdue one.
func (l *Lane[R]) late(g *group[R]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !g.over {
		g.overdue = true
		l.overdue++
		l.start()
	}
}

// learn adds the duration of a shared request to the average. An overdue one counts as just below overdue. The caller
// holds the lock.
func (l *Lane[R]) learn(d time.Duration) {
	if l.usual == 0 {
		l.usual = min(d, overdueMin)
		return
	}
	d = min(d, max(overdueFactor*l.usual, overdueMin))
	l.usual = (usualShare*l.usual + d) / (usualShare + 1)
}

// resize adapts the maximum size to the outcome of a request of n calls. After a refusal requests have half its size,
// and then grow again, so that a server with lower limits, or callers that are refused, cost the others little. The
// caller holds the lock.
func (l *Lane[R]) resize(n int, tooMuch bool) {
	switch {
	case tooMuch:
		l.most = max(n/2, 1)
	case n >= l.most:
		l.most = min(l.most+l.most/growth+1, CallsMax)
	}
}
