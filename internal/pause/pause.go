// Package pause waits until a time has passed or a context ends.
package pause

import (
	"context"
	"fmt"
	"time"
)

// For waits for d and reports false if ctx ended first.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Beat returns the time, at most d, until the wall clock shows a multiple of d. Goroutines
// that use it wake an idle process together, not one by one.
func Beat(d time.Duration) time.Duration { return d - time.Duration(time.Now().UnixNano())%d }

// Until calls ask until it returns no error, and waits for d in between. If ctx ends first,
// it returns the cause together with the last error.
func Until(ctx context.Context, d time.Duration, ask func() error) error {
	for {
		err := ask()
		if err == nil {
			return nil
		}
		if !For(ctx, d) {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// Within calls do with a deadline.
func Within(ctx context.Context, d time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return do(ctx)
}
