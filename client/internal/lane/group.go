package lane

import (
	"context"
	"time"
)

// Bounds of one shared request, at or below the server's.
const (
	// CallsMax is how many calls one has at most.
	CallsMax = 1_000
	// BytesMax bounds what its calls weigh together, and CallBytesMax the item of a call
	// that may be in one: larger ones go alone, as nothing is saved with them.
	BytesMax     = 7 << 20
	CallBytesMax = 256 << 10
)

// Call is one call that waits for its place in a shared request. Item, Weight and
// Result are its caller's, but that Result is set by Send.
type Call[R any] struct {
	// Item is what stands for the call in the request. It does not change: the request
	// is repeated byte for byte.
	Item []byte
	// Weight is how many bytes it counts for: of the request, and of the answer if that
	// is likely to be longer.
	Weight int
	// Until is when its caller leaves, if no context has ended before; zero: it does not.
	Until  time.Time
	Result R
	// Unread, if not nil, is called once there is a Result that its caller has not waited
	// for. It returns at once.
	Unread func()

	alarmAt time.Time // Until; zero: never, or its context ends by then and says why
	done    chan struct{}
	err     error // why there is no Result, once done is closed

	// The lane's lock guards these.
	group *group[R] // nil: it is in the queue, or never was in a request
	ended bool      // done is closed, or will be at once
}

// end ends a call without a Result. The caller holds the lock.
func (c *Call[R]) end(why error) {
	c.err, c.ended = why, true
	close(c.done)
}

// isOver reports whether the time of the call is over, and no context ends it.
func (c *Call[R]) isOver(now time.Time) bool { return !c.alarmAt.IsZero() && !now.Before(c.alarmAt) }

// group is the calls of one shared request.
type group[R any] struct {
	calls  []*Call[R]
	ctx    context.Context
	cancel context.CancelFunc

	// The lane's lock guards these.
	waiting int  // callers that have not left
	over    bool // it has been answered
	overdue bool // another may go beside it
}

// newGroup makes a group of calls of the queue. Its context carries nothing of any
// caller's but the latest deadline; the calls of those without one wait for as long as
// Send does.
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

// leave ends one of the calls whose caller waits no longer, and the request if none does. The
// caller holds the lock.
func (g *group[R]) leave(c *Call[R]) {
	c.end(ErrSent)
	if g.waiting--; g.waiting == 0 {
		g.cancel()
	}
}

// answered ends the calls that have a Result, but for closing done, and returns them. The
// caller holds the lock.
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

// fit returns how many calls of the queue one request takes that has no more than most: at
// least one, if there is any.
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
