package keyring

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Concurrent requests get no more than sequential ones.
func TestBucket_Concurrent(t *testing.T) {
	t.Parallel()
	b := newBucket(500)
	var got atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 200 {
				if _, ok := b.Take(1); ok {
					got.Add(1)
				}
			}
		})
	}
	wait.Wait()
	if got.Load() != 500 {
		t.Errorf("%d of 500", got.Load())
	}
}
