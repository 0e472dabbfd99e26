package faults

import (
	"context"
	"math/rand"
	"sync"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
)

// beating turns an act on and off repeatedly until the fault is over. on and off bound the
// two times, which are drawn at random.
func beating(do act, on, off time.Duration, words string) act {
	return func(ctx context.Context, c *Cluster, nodes []*procs.Node, rng *rand.Rand) (undo, error) {
		draws := rand.New(rand.NewSource(rng.Int63()))
		ctx = context.WithoutCancel(ctx)
		going, stop := context.WithCancel(ctx)
		wait := func(most time.Duration) bool {
			return pause.For(going, most/4+time.Duration(draws.Int63n(int64(most)*3/4+1)))
		}
		beat := func() error {
			for {
				end, err := do(ctx, c, nodes, draws)
				if err != nil {
					return err
				}
				goesOn := wait(on)
				if err := end(ctx); err != nil || !goesOn || !wait(off) {
					return err
				}
			}
		}
		c.notef("%s: %s", names(nodes), words)
		var failed error
		var beats sync.WaitGroup
		beats.Go(func() { failed = beat() })
		return func(context.Context) error {
			stop()
			beats.Wait()
			c.notef("%s: %s: over", names(nodes), words)
			return failed
		}, nil
	}
}

// again picks new nodes for each beat.
func again(pick picker, do act) act {
	return func(ctx context.Context, c *Cluster, _ []*procs.Node, rng *rand.Rand) (undo, error) {
		return do(ctx, c, pick(ctx, c, rng), rng)
	}
}
