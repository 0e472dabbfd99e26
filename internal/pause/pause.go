// Package pause waits until a time has passed or a context ends.
package pause

import (
	"context"
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
