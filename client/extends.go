package client

import (
	"context"
	"errors"
	"sync"
	"time"
)

// extends is what extends the claim of an attempt. It begins a goroutine when the first extend
// is almost due: most handlers have returned by then.
type extends struct {
	begin *time.Timer

	mu      sync.Mutex // guards what follows
	stopped bool
	cutOff  context.CancelFunc // nil: there is no goroutine
	ended   chan struct{}      // closed when the goroutine ends; nil: there is none
}

// keepAlive extends the claim until a.extends is stopped: also when the handler's context
// has ended, for the claim has to be settled.
func (a *attempt) keepAlive() {
	_, wait := a.cl.nextExtend()
	a.extends.begin = time.AfterFunc(wait-keepAliveWaitMin, a.extend) // which waits for the rest
}

// extend is the goroutine.
func (a *attempt) extend() {
	ctx, ended := a.extends.start(a.r.life)
	if ctx == nil {
		return
	}
	defer close(ended)
	err := a.r.w.c.begin()
	if err == nil {
		defer a.r.w.c.running.Done()
		err = a.cl.keepAlive(ctx, a.cancel)
	}
	if err != nil {
		a.leaseLost.Store(errors.Is(err, ErrLeaseLost))
		a.cancel(err)
	}
}

// start returns the context of the goroutine, and what it closes at its end; nil: it is not
// to begin.
func (e *extends) start(life context.Context) (ctx context.Context, ended chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return nil, nil
	}
	ctx, e.cutOff = context.WithCancel(life)
	e.ended = make(chan struct{})
	return ctx, e.ended
}

// stop lets no extend begin any more, and ends one that is under way. It may be called again.
func (e *extends) stop() {
	e.begin.Stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	if e.cutOff != nil {
		e.cutOff()
	}
}

// wait waits, after stop, for the end of an extend that was under way.
func (e *extends) wait() {
	e.mu.Lock()
	ended := e.ended
	e.mu.Unlock()
	if ended != nil {
		<-ended
	}
}
