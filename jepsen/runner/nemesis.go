package runner

import (
	"context"
	"fmt"
	"math/rand"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/faults"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/workload"
)

// nemesis injects faults and recovers from them, by the seed.
type nemesis struct {
	*run
	rng *rand.Rand
	// deck holds the faults in the order in which they come: each once before any comes
	// again.
	deck []faults.Fault
}

// torment injects faults until shortly before loading ends, and finally heals all.
func (n *nemesis) torment(ctx, loading context.Context) error {
	if len(n.faults) == 0 || !pause.For(loading, quietStart) {
		return nil
	}
	deadline, _ := loading.Deadline()
	for time.Until(deadline) > quietEnd+time.Second {
		if err := n.round(ctx, n.draw(), time.Until(deadline)-quietEnd); err != nil {
			return err
		}
		// Sometimes the next fault comes before the cluster has recovered.
		rest := n.scaled(time.Duration(2000+n.rng.Intn(5000)) * time.Millisecond)
		if n.rng.Intn(3) == 0 {
			rest = time.Duration(n.rng.Intn(1000)) * time.Millisecond
		}
		if !pause.For(loading, min(rest, max(time.Until(deadline)-quietEnd, 0))) {
			break
		}
	}
	return nil
}

// spread injects the faults one after the other, spread over the submitted tasks, and waits
// until all are submitted.
func (n *nemesis) spread(ctx context.Context, load *workload.Workload) error {
	for i, f := range n.faults {
		if err := load.WaitSubmitted(ctx, (i+1)*n.cfg.Tasks/(len(n.faults)+1)); err != nil {
			return err
		}
		if err := n.round(ctx, f, spreadMax); err != nil {
			return err
		}
	}
	return load.WaitSubmitted(ctx, n.cfg.Tasks)
}

// spreadMax bounds the length of one of many faults that are spread over the load.
const spreadMax = 2 * time.Second

// draw draws the next fault, sometimes combined with another one that is compatible.
func (n *nemesis) draw() faults.Fault {
	two := n.rng.Intn(5) == 0 && len(n.faults) > 1
	first := n.next()
	if two {
		if f := n.next(); f.Name() != first.Name() && !faults.Clash(first, f) {
			return faults.Together(first, f)
		}
	}
	return first
}

// round injects the fault for a while, for at most most, and heals it.
func (n *nemesis) round(ctx context.Context, f faults.Fault, most time.Duration) error {
	n.rec.Mark(history.Event{Kind: history.Injected, Fault: f.Name(), Text: f.Name()})
	inject, cancel := context.WithTimeout(ctx, injectTimeout)
	undo, err := f.Inject(inject, n.cluster, n.rng)
	cancel()
	if err != nil {
		return fmt.Errorf("inject %s: %w", f.Name(), err)
	}
	n.say("%s", f.Name())
	held := n.scaled(time.Duration(1500+n.rng.Intn(5500)) * time.Millisecond)
	pause.For(ctx, min(held, max(most, time.Second)))
	if err := pause.Within(context.WithoutCancel(ctx), healTimeout, undo); err != nil {
		return fmt.Errorf("heal %s: %w", f.Name(), err)
	}
	n.rec.Mark(history.Event{Kind: history.Healed, Fault: f.Name(), Text: f.Name() + " healed"})
	return ctx.Err()
}

// scaled shortens d for a short run, so that it has several faults, too.
func (n *nemesis) scaled(d time.Duration) time.Duration {
	share := min(max(n.cfg.Time.Seconds()/45, 0.35), 1)
	return max(time.Duration(share*float64(d)), time.Second)
}

// next draws the next fault.
func (n *nemesis) next() faults.Fault {
	if len(n.deck) == 0 {
		n.deck = append(n.deck, n.faults...)
		n.rng.Shuffle(len(n.deck), func(i, j int) { n.deck[i], n.deck[j] = n.deck[j], n.deck[i] })
	}
	f := n.deck[0]
	n.deck = n.deck[1:]
	return f
}
