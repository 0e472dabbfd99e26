package door_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/nodes"
)

func config() door.FairQueueConfig {
	return door.FairQueueConfig{AtATime: 1, Waiting: 4, Wait: 5 * time.Second, Rest: 50 * time.Millisecond, Bound: nodes.BoundReads, Text: "full"}
}

// take takes a turn that must be available at once.
func take(t *testing.T, q *door.FairQueue, key string) *door.Turn {
	t.Helper()
	got, err := q.Take(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestFairQueue_KeysByTurns checks that a key that asks for much makes another one wait no longer than for one of its
// reads.
func TestFairQueue_KeysByTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := door.NewFairQueue(config())
		first := take(t, q, "a")
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		for _, key := range []string{"a", "a", "b"} {
			wg.Go(func() {
				got, err := q.Take(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, key)
				mu.Unlock()
				got.End()
			})
			synctest.Wait()
		}
		first.End()
		wg.Wait()
		if want := []string{"a", "b", "a"}; !slices.Equal(order, want) {
			t.Errorf("turns %v, want %v", order, want)
		}
	})
}

// TestFairQueue_Rests checks that the queue rests as long as its read worked, less the read's own rests, and within the
// bound.
func TestFairQueue_Rests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		work  time.Duration
		rests bool
		cost  time.Duration
		times int
		want  time.Duration
	}{
		{"work", 10 * time.Millisecond, false, 0, 0, 10 * time.Millisecond},
		{"work and what it costs else", 10 * time.Millisecond, false, 5 * time.Millisecond, 0, 15 * time.Millisecond},
		{"it rested itself", 10 * time.Millisecond, true, 0, 0, 0},
		{"long work", time.Minute, false, 0, 0, 50 * time.Millisecond},
		{"work too short for a timer", 100 * time.Microsecond, false, 0, 0, 0},
		{"three times the work", 10 * time.Millisecond, false, 0, 3, 30 * time.Millisecond},
		{"it rested itself three times the work", 10 * time.Millisecond, true, 0, 3, 0},
		{"three times short work", 400 * time.Microsecond, false, 0, 3, 1200 * time.Microsecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := config()
				cfg.Cost, cfg.Rests = c.cost, c.times
				q := door.NewFairQueue(cfg)
				got := take(t, q, "a")
				<-time.After(c.work)
				if c.rests {
					got.Rest()
				}
				got.End()
				ended := time.Now()
				take(t, q, "a").End()
				if rested := time.Since(ended); rested != c.want {
					t.Errorf("it rested for %s, want %s", rested, c.want)
				}
				synctest.Wait()
			})
		})
	}
}

// TestFairQueue_ShortReadsAddUp checks that the rests of short reads add up.
func TestFairQueue_ShortReadsAddUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := door.NewFairQueue(config())
		began := time.Now()
		for range 100 {
			got := take(t, q, "a")
			<-time.After(100 * time.Microsecond)
			got.End()
		}
		if took := time.Since(began); took < 18*time.Millisecond {
			t.Errorf("10 ms of work took %s", took)
		}
		<-time.After(time.Second)
	})
}

// TestFairQueue_Full checks the bounds of waiting: per key, in total, and in time.
func TestFairQueue_Full(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := door.NewFairQueue(config())
		first := take(t, q, "a")
		var wg sync.WaitGroup
		waits := func(key string) {
			wg.Go(func() {
				began := time.Now()
				_, err := q.Take(t.Context(), key)
				if full := (*nodes.Overload)(nil); !errors.As(err, &full) || full.Bound != nodes.BoundReads || time.Since(began) != 5*time.Second {
					t.Errorf("%s: %v after %s", key, err, time.Since(began))
				}
			})
			synctest.Wait()
		}
		refused := func(key string) {
			t.Helper()
			if _, err := q.Take(t.Context(), key); !errors.Is(err, nodes.ErrOverloaded) {
				t.Errorf("%s: %v", key, err)
			}
		}
		waits("a")
		waits("a")
		refused("a")
		waits("b")
		waits("c")
		refused("d")
		wg.Wait()
		if n := q.Waiting(); n != 0 {
			t.Errorf("%d wait", n)
		}
		first.End()
		take(t, q, "d").End()
	})
}

// TestFairQueue_Gone checks that a read that gives up leaves its place to the next.
func TestFairQueue_Gone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := door.NewFairQueue(config())
		first := take(t, q, "a")
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := q.Take(ctx, "a"); !errors.Is(err, gone) {
				t.Errorf("it ended with %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() { take(t, q, "a").End() })
		synctest.Wait()
		cancel(gone)
		synctest.Wait()
		first.End()
		wg.Wait()
	})
}
