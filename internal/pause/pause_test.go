package pause

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		if whole := For(ctx, 2*time.Second); !whole || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v", whole, time.Since(began))
		}
		if whole := For(ctx, 2*time.Second); whole || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %v, the context ends after 3s", whole, time.Since(began))
		}
	})
}

// Goroutines that wait for the beat continue at the same moment, no matter when they began.
func TestBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now() // midnight
		for _, c := range []struct{ wait, every, at time.Duration }{
			{0, time.Second, time.Second},
			{time.Millisecond, time.Second, 2 * time.Second},
			{800 * time.Millisecond, 250 * time.Millisecond, 3 * time.Second},
			{999 * time.Millisecond, 500 * time.Millisecond, 4 * time.Second},
		} {
			<-time.After(c.wait)
			<-time.After(Beat(c.every))
			if at := time.Since(began); at != c.at {
				t.Errorf("went on after %v, want %v", at, c.at)
			}
		}
	})
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errNotYet, errEnough := errors.New("not yet"), errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, errEnough)
		defer cancel()
		began, asked := time.Now(), 0
		third := func() error {
			if asked++; asked < 3 {
				return errNotYet
			}
			return nil
		}
		if err := Until(ctx, time.Second, third); err != nil || asked != 3 || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %d questions and %v, want none after 3 and 2s", err, asked, time.Since(began))
		}
		err := Until(ctx, time.Second, func() error { return errNotYet })
		if !errors.Is(err, errNotYet) || !errors.Is(err, errEnough) || time.Since(began) != 10*time.Second {
			t.Errorf("%v after %v, want both errors after 10s", err, time.Since(began))
		}
	})
}

func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := Within(t.Context(), 10*time.Second, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 10*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}
