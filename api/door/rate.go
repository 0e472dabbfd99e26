package door

import (
	"crypto/sha256"
	"net/netip"
	"sync"
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

// recent is a cache of recently used values by hash. It keeps no more values than its
// bound, and at least the most recent half. It is safe for concurrent use.
type recent[V any] struct {
	half int

	mu         sync.Mutex // guards what follows
	young, old map[[sha256.Size]byte]V
}

func newRecent[V any](most int) *recent[V] {
	return &recent[V]{half: most / 2, young: make(map[[sha256.Size]byte]V)}
}

// get returns the value for the hash.
func (r *recent[V]) get(sum *[sha256.Size]byte) (v V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, ok = r.young[*sum]; ok {
		return v, true
	}
	if v, ok = r.old[*sum]; ok {
		r.putLocked(sum, v)
	}
	return v, ok
}

// keep returns the value for the hash, made with made if there is no value yet.
func (r *recent[V]) keep(sum *[sha256.Size]byte, made func() V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.young[*sum]
	if ok {
		return v
	}
	if v, ok = r.old[*sum]; !ok {
		v = made()
	}
	r.putLocked(sum, v)
	return v
}

// put stores v, replacing an existing value.
func (r *recent[V]) put(sum *[sha256.Size]byte, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.putLocked(sum, v)
}

func (r *recent[V]) putLocked(sum *[sha256.Size]byte, v V) {
	if _, ok := r.young[*sum]; !ok && len(r.young) >= r.half {
		r.old, r.young = r.young, make(map[[sha256.Size]byte]V, r.half)
	}
	r.young[*sum] = v
}

// count returns the number of values; some may be counted twice.
func (r *recent[V]) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.young) + len(r.old)
}

const (
	// TriesPerMinute bounds the wrong keys tried from one address, at once and in each minute after that.
	TriesPerMinute = 10
	// triesKept bounds the addresses that are remembered.
	triesKept = 4_096
	// triesPrefix is the counted part of an IPv6 address, because a client usually has all addresses behind it.
	triesPrefix = 64
)

// Tries bounds attempts to guess a key at the login. It is safe for concurrent use.
type Tries struct{ left *recent[*bucket] }

// NewTries returns Tries without any attempts.
func NewTries() *Tries { return &Tries{left: newRecent[*bucket](triesKept)} }

// Try counts a wrong key from an address, at now in nanoseconds of any clock. ok is false if no attempt was left;
// retry is the time until there is one.
func (t *Tries) Try(from netip.Addr, now int64) (retry time.Duration, ok bool) {
	if from.Is6() {
		if p, err := from.Prefix(triesPrefix); err == nil {
			from = p.Addr()
		}
	}
	sum := sha256.Sum256(from.AsSlice())
	q, ok := t.left.keep(&sum, func() *bucket { return newBucket(TriesPerMinute) }).Take(now)
	return time.Duration(q.RetryNS), ok
}
