package pause

import (
	"context"
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
