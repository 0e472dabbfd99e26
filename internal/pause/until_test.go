package pause

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

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
