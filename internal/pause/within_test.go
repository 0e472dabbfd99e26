package pause

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

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
