package api

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// The headers that tell a key what is left of its rate. They are never changed.
var (
	nameRateLimit     = []byte("Ratelimit-Limit")
	nameRateRemaining = []byte("Ratelimit-Remaining")
	nameRateReset     = []byte("Ratelimit-Reset")
)

// bucket holds the requests that a key may still make: as many as it may make in
// a minute when it is full, one more after each interval.
type bucket struct {
	perMinute int64
	interval  int64 // nanoseconds
	// full is when it is full again, in nanoseconds of the server's clock: that is
	// all that there is to know. Before now: it is full.
	full atomic.Int64
}

func newBucket(perMinute int64) *bucket {
	return &bucket{perMinute: perMinute, interval: int64(time.Minute) / perMinute}
}

// quota is what a request found in its key's bucket.
type quota struct {
	limit     int64 // of a full bucket, 0 = the request was not counted
	remaining int64
	resetNS   int64 // until it is full again
	retryNS   int64 // until there is one for a request that got none
}

// take takes one request at now. ok is false if there is none.
func (b *bucket) take(now int64) (q quota, ok bool) {
	size := b.perMinute * b.interval
	for {
		full := b.full.Load()
		next := max(full, now) + b.interval
		over := next - now - size
		if over > 0 {
			return quota{limit: b.perMinute, resetNS: full - now, retryNS: over}, false
		}
		if b.full.CompareAndSwap(full, next) {
			return quota{limit: b.perMinute, remaining: -over / b.interval, resetNS: next - now}, true
		}
	}
}

// seconds rounds up: whoever waits so long has waited long enough.
func seconds(ns int64) int64 { return (ns + int64(time.Second) - 1) / int64(time.Second) }

// limit counts a request against its key's rate, unless another node did.
func (r *request) limit() *refuse.Refusal {
	if r.passed {
		return nil
	}
	return r.charge()
}

// charge counts a request against its key's rate.
func (r *request) charge() *refuse.Refusal {
	k := r.who
	if k.bucket == nil {
		return nil
	}
	var ok bool
	if r.quota, ok = k.bucket.take(int64(r.start.Sub(r.server.begun))); ok {
		return nil
	}
	k.refused.Add(1)
	return &refuse.Refusal{
		Code: wire.CodeRateLimited, Text: "The key " + k.name + " has made its " + strconv.FormatInt(k.bucket.perMinute, 10) + " requests a minute",
		Advice: "Nothing was done: repeat the request after the time in Retry-After, or have the key's rate_limit_per_minute raised",
	}
}

// chargeRefused counts a settle, or a batch of such ops, that was refused: those that
// are not are never counted. The answer stays what it is: a worker is to learn that its
// claim is over, whatever its key has left.
func (r *request) chargeRefused() {
	status := r.http.Response.StatusCode()
	refused := r.opRefused || status >= fasthttp.StatusBadRequest && status < fasthttp.StatusInternalServerError
	switch {
	case !r.settles || !refused:
	case r.passed:
		if r.opRefused {
			r.http.Response.Header.Set(headerOpRefused, "1")
		}
	case r.who != nil && r.who.bucket != nil:
		r.quota, _ = r.who.bucket.take(int64(r.start.Sub(r.server.begun)))
		r.quota.retryNS = 0
	}
}

// setQuota tells of a request that was counted what is left.
func (q *quota) set(resp *fasthttp.Response) {
	var buf [20]byte
	h := &resp.Header
	h.SetCanonical(nameRateLimit, strconv.AppendInt(buf[:0], q.limit, 10))
	h.SetCanonical(nameRateRemaining, strconv.AppendInt(buf[:0], q.remaining, 10))
	h.SetCanonical(nameRateReset, strconv.AppendInt(buf[:0], seconds(q.resetNS), 10))
	if q.retryNS > 0 {
		h.SetBytesV(fasthttp.HeaderRetryAfter, strconv.AppendInt(buf[:0], seconds(q.retryNS), 10))
	}
}
