package keyring

import (
	"sync/atomic"
	"time"
)

// bucket holds the requests that a key may still make: as many as it may make in
// a minute when it is full, one more after each interval.
type bucket struct {
	PerMinute int64
	interval  int64 // nanoseconds
	// full is when it is full again, in nanoseconds of the server's clock: that is
	// all that there is to know. Before now: it is full.
	full atomic.Int64
}

// newBucket returns a full bucket of so many requests a minute.
func newBucket(perMinute int64) *bucket {
	return &bucket{PerMinute: perMinute, interval: int64(time.Minute) / perMinute}
}

// Quota is what a request found in its key's bucket.
type Quota struct {
	Limit     int64 // of a full bucket, 0 = the request was not counted
	Remaining int64
	ResetNS   int64 // until it is full again
	RetryNS   int64 // until there is one for a request that got none
}

// Take takes one request at now. ok is false if there is none.
func (b *bucket) Take(now int64) (q Quota, ok bool) {
	size := b.PerMinute * b.interval
	for {
		full := b.full.Load()
		next := max(full, now) + b.interval
		over := next - now - size
		if over > 0 {
			return Quota{Limit: b.PerMinute, ResetNS: full - now, RetryNS: over}, false
		}
		if b.full.CompareAndSwap(full, next) {
			return Quota{Limit: b.PerMinute, Remaining: -over / b.interval, ResetNS: next - now}, true
		}
	}
}

// Seconds rounds up: whoever waits so long has waited long enough.
func Seconds(ns int64) int64 { return (ns + int64(time.Second) - 1) / int64(time.Second) }
