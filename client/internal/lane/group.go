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
	// Head and Item, one after the other, are the call's part of the request. They must not change, because the request
	// is repeated byte for byte.
	Head, Item []byte
	// Weight is the call's size in bytes: of its part, or of its answer if that is likely to be longer.
	Weight int
	// Until is the time at which the caller leaves, if no context has ended before; zero: never.
	Until  time.Time
	Result R
	// Unread, if not nil, is called once there is a Result that the caller did not wait for. It must return at once.
	Unread func()

	alarmAt time.Time       // Until; zero: never, or the caller's context ends first and says why
	done    chan struct{}   // has an element once the call has ended
	err     error           // why there is no Result, once done has its element
	context <-chan struct{} // the Done channel of the caller's context, if the lane watches that for it

	// The lane's lock guards these.
	group *group[R] // nil: in the queue, or never sent
	ended bool      // done has its element, or is about to
}

// end ends a call without a Result. The caller holds the lock.
func (c *Call[R]) end(why error) {
	c.err, c.ended = why, true
	c.done <- struct{}{}
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

// answered returns the calls that now have a Result, and those that have ended before. It ends the former except for
// telling their callers. The caller holds the lock.
func (g *group[R]) answered() (answered, left []*Call[R]) {
	answered = g.calls
	if g.waiting < len(g.calls) {
		answered = make([]*Call[R], 0, g.waiting)
		for _, c := range g.calls {
			if c.ended {
				left = append(left, c)
			} else {
				answered = append(answered, c)
			}
		}
	}
	for _, c := range answered {
		c.ended = true
	}
	return answered, left
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
