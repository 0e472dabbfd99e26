package workers

import (
	"context"
	"sync"
)

// gang is goroutines that end together: the first error ends them all.
type gang struct {
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	err    error // the first
}

func newGang(cancel context.CancelCauseFunc) *gang { return &gang{cancel: cancel} }

// Go starts fn in a goroutine.
func (g *gang) Go(fn func() error) {
	g.wg.Go(func() {
		if err := fn(); err != nil {
			g.mu.Lock()
			if g.err == nil {
				g.err = err
			}
			g.mu.Unlock()
			g.cancel(err)
		}
	})
}

// Wait waits for all and returns the first error.
func (g *gang) Wait() error {
	g.wg.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}
