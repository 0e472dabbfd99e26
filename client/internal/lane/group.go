package lane

import (
	"context"
	"time"
)

// Limits of one shared request, at or below the server's.
const (
	// CallsMax bounds its calls.
	CallsMax = 1_000
	// BytesMax bounds the total weight of its calls, and CallBytesMax the item of each. Larger calls go alone,
	// because sharing would save nothing.
	BytesMax     = 7 << 20
	CallBytesMax = 256 << 10
)

// Call is a call that waits for its place in a shared request. The caller sets Item and Weight; Send sets Result.
type Call[R any] struct {
	// Item is the call's part of the request. It must not change, because the request is repeated byte for byte.
	Item []byte
	// Weight is the call's size in bytes: of its item, or of its answer if that is likely to be longer.
	Weight int
	// Until is the time at which the caller leaves, if no context has ended before; zero: never.
	Until  time.Time
	Result R
	// Unread, if not nil, is called once there is a Result that the caller did not wait for. It must return at once.
	Unread func()

	alarmAt time.Time // Until; zero: never, or the caller's context ends first and says why
	done    chan struct{}
	err     error // why there is no Result, once done is closed

	// The lane's lock guards these.
	group *group[R] // nil: in the queue, or never sent
	ended bool      // done is closed, or is about to be
}

// end ends a call without a Result. The caller holds the lock.
func (c *Call[R]) end(why error) {
	c.err, c.ended = why, true
	close(c.done)
}

// isOver reports whether the time of the call is over and no context will end it.
func (c *Call[R]) isOver(now time.Time) bool { return !c.alarmAt.IsZero() && !now.Before(c.alarmAt) }

// group holds the calls of one shared request.
type group[R any] struct {
	calls  []*Call[R]
	ctx    context.Context
	cancel context.CancelFunc

	// The lane's lock guards these.
	waiting int  // callers that have not left
	over    bool // it has been answered
	overdue bool // another request may be sent in parallel
}

// newGroup makes a group of queued calls. Its context has the latest deadline of its callers and nothing else from
// them. If a call has no deadline, the group waits as long as Send does.
func newGroup[R any](calls []*Call[R]) *group[R] {
	g := &group[R]{calls: calls, waiting: len(calls)}
	latest, bounded := time.Time{}, true
	for _, c := range calls {
		c.group = g
		bounded = bounded && !c.Until.IsZero()
		if c.Until.After(latest) {
			latest = c.Until
		}
	}
	if bounded {
		g.ctx, g.cancel = context.WithDeadline(context.Background(), latest)
	} else {
		g.ctx, g.cancel = context.WithCancel(context.Background())
	}
	return g
}

// leave ends a call whose caller no longer waits, and the request if no caller is left. The caller holds the lock.
func (g *group[R]) leave(c *Call[R]) {
	c.end(ErrSent)
	if g.waiting--; g.waiting == 0 {
		g.cancel()
	}
}

// answered returns the calls that now have a Result. It ends them except for closing done. The caller holds the lock.
func (g *group[R]) answered() []*Call[R] {
	if g.waiting == len(g.calls) {
		for _, c := range g.calls {
			c.ended = true
		}
		return g.calls
	}
	waiting := make([]*Call[R], 0, g.waiting)
	for _, c := range g.calls {
		if !c.ended {
			c.ended = true
			waiting = append(waiting, c)
		}
	}
	return waiting
}

// fit returns how many calls from the head of the queue go into one request of at most most calls; at least one, if
// there is any.
func fit[R any](queue []*Call[R], most int) int {
	bytes := 0
	for n, c := range queue {
		bytes += c.Weight
		if n == most || n > 0 && bytes > BytesMax {
			return n
		}
	}
	return len(queue)
}
