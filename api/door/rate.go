package door

import (
	"sync/atomic"
	"time"
)

// bucket holds the requests that a key may still make: at most its rate per minute, refilled by one after each
// interval.
type bucket struct {
	PerMinute int64
	interval  int64 // nanoseconds
	// full is the time at which it is full again, in nanoseconds of the server's clock; this alone represents its
	// content. A time before now means that it is full.
	full atomic.Int64
}

// newBucket returns a full bucket for a rate per minute.
func newBucket(perMinute int64) *bucket {
	return &bucket{PerMinute: perMinute, interval: int64(time.Minute) / perMinute}
}

// Quota is the state of a key's bucket at a request.
type Quota struct {
	Limit     int64 // of a full bucket; 0 = the request was not counted
	Remaining int64
	ResetNS   int64 // until it is full again
	RetryNS   int64 // until there is one for a request that was refused
}

// Take takes one request at now. ok is false if no request is left.
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

// Seconds converts nanoseconds to seconds, rounded up so that the wait is long enough.
func Seconds(ns int64) int64 { return (ns + int64(time.Second) - 1) / int64(time.Second) }
