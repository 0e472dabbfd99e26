package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"time"
)

// Span is a duration that is chosen at random: [Min, Max).
type Span struct{ Min, Max time.Duration }

func (s Span) draw(rng *rand.Rand) time.Duration {
	if s.Max <= s.Min {
		return s.Min
	}
	return s.Min + time.Duration(rng.Int63n(int64(s.Max-s.Min)))
}

// Schedule injects one fault after the other, chosen by its seed: the same
// seed gives the same faults for the same times, whatever became of the ones
// before.
type Schedule struct {
	Faults []Fault // at least one
	Seed   int64
	Gap    Span // without a fault, before each
	Hold   Span // how long each lasts
}

// Step is one fault of a schedule.
type Step struct {
	Number int // from 0
	Fault  Fault
	Gap    time.Duration
	Hold   time.Duration
	Seed   int64 // of what the fault chooses
}

// Step returns the step of that number. The first few go through all faults
// once, in random order.
func (s Schedule) Step(number int) Step {
	round := rand.New(rand.NewSource(s.Seed + int64(number/len(s.Faults))))
	order := round.Perm(len(s.Faults))
	rng := rand.New(rand.NewSource(s.Seed ^ int64(number+1)<<20))
	return Step{
		Number: number, Fault: s.Faults[order[number%len(order)]],
		Gap: s.Gap.draw(rng), Hold: s.Hold.draw(rng), Seed: rng.Int63(),
	}
}

// recoverTimeout bounds the end of a fault.
const recoverTimeout = 60 * time.Second

// Run does step after step until ctx ends, which is no error. It has recovered
// from all when it returns. A fault that another one is in the way of is left
// out.
func (s Schedule) Run(ctx context.Context, c *Cluster) error {
	for number := 0; ; number++ {
		err := s.Step(number).run(ctx, c)
		if errors.Is(err, ErrBusy) {
			continue
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// run is one step. A step that is cut short by ctx is no error.
func (s Step) run(ctx context.Context, c *Cluster) error {
	if !wait(ctx, s.Gap) {
		return nil
	}
	recover, err := s.Fault.Inject(ctx, c, rand.New(rand.NewSource(s.Seed)))
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("fault %d: inject %s: %w", s.Number, s.Fault.Name(), err)
	}
	wait(ctx, s.Hold)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recoverTimeout)
	defer cancel()
	if err := recover(ctx); err != nil {
		return fmt.Errorf("fault %d: recover from %s: %w", s.Number, s.Fault.Name(), err)
	}
	return nil
}

// wait waits for that long, and is false if ctx ended before.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
