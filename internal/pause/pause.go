// Package pause waits, and can be cut short.
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

// Beat returns how long it is until the wall clock shows a multiple of d, d at most. Looks
// that wait for it wake an idle process together, not each by itself.
func Beat(d time.Duration) time.Duration { return d - time.Duration(time.Now().UnixNano())%d }
