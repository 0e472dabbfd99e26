package exchange

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// deadlines hands out contexts that end at most wait later. Requests that begin in the same slice of time share a
// context, because a timer and an allocation for each request would cost more than decoding it.
type deadlines struct {
	base  context.Context
	wait  time.Duration
	slice time.Duration

	current atomic.Pointer[deadline]
	mu      sync.Mutex // serializes making the next one
}

type deadline struct {
	ctx   context.Context
	until time.Time // for requests that begin before
}

func newDeadlines(base context.Context, wait time.Duration) *deadlines {
	return &deadlines{base: base, wait: wait, slice: min(wait/2, 500*time.Millisecond)}
}

// At returns the context for a request that began at now.
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
	// The context is meant to outlive this call; it is freed by its own deadline or the end of base.
	context.AfterFunc(ctx, cancel)
	d.current.Store(&deadline{ctx: ctx, until: now.Add(d.slice)})
	return ctx
}
