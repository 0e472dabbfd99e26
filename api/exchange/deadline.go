package exchange

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// deadlines hands out contexts that end at most wait after they were asked
// for. Requests that begin within the same slice of time share one context: a
// timer and an allocation for each would cost more than decoding it.
type deadlines struct {
	base  context.Context
	wait  time.Duration
	slice time.Duration

	current atomic.Pointer[deadline]
	mu      sync.Mutex // serializes making the next one
}

type deadline struct {
	ctx   context.Context
	until time.Time // handed out to requests that begin before
}

func newDeadlines(base context.Context, wait time.Duration) *deadlines {
	return &deadlines{base: base, wait: wait, slice: min(wait/2, 500*time.Millisecond)}
}

// At returns the context of a request that began at now.
func (d *deadlines) At(now time.Time) context.Context {
	if c := d.current.Load(); c != nil && now.Before(c.until) {
		return c.ctx
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.current.Load(); c != nil && now.Before(c.until) {
		return c.ctx
	}
	ctx, cancel := context.WithDeadline(d.base, now.Add(d.wait))
	// The context outlives this call by design: its own deadline, or the end
	// of base, frees it.
	context.AfterFunc(ctx, cancel)
	d.current.Store(&deadline{ctx: ctx, until: now.Add(d.slice)})
	return ctx
}
