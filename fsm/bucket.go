package fsm

import (
	"math"
	"math/bits"
)

// A rate limit is a token bucket on the calendar clock. It is counted in
// billionths of a claim: so many a millisecond are the millionths a second of
// the limit, and everything is exact.
const (
	claimUnit  = 1_000_000_000
	msInSecond = 1000

	// noLimit is what there is of something that has no limit.
	noLimit = math.MaxInt64
)

// burst returns what the bucket of a limit holds: one second's worth, and at
// least one claim.
func burst(rateLimit int64) int64 {
	if rateLimit > math.MaxInt64/msInSecond {
		return math.MaxInt64
	}
	return max(rateLimit*msInSecond, claimUnit)
}

// bucketAt returns what is in the bucket at t. Time that ran back adds nothing.
func (r *typeRecord) bucketAt(t int64) int64 {
	rate, most := r.Settings.RateLimit, burst(r.Settings.RateLimit)
	hi, grown := bits.Mul64(uint64(rate), uint64(max(t-r.BucketT, 0)))
	if hi > 0 || grown >= uint64(max(most-r.Bucket, 0)) {
		return most
	}
	return r.Bucket + int64(grown)
}

// claimableAt returns when the bucket holds a claim: t, or the first
// millisecond after t.
func (r *typeRecord) claimableAt(t int64) int64 {
	rate := r.Settings.RateLimit
	if rate <= 0 {
		return t
	}
	missing := claimUnit - r.bucketAt(t)
	if missing <= 0 {
		return t
	}
	wait := (missing-1)/rate + 1
	if t > math.MaxInt64-wait {
		return math.MaxInt64
	}
	return t + wait
}

// claimsAt returns how many whole claims the bucket holds at t.
func (r *typeRecord) claimsAt(t int64) int64 {
	if r.Settings.RateLimit <= 0 {
		return noLimit
	}
	return r.bucketAt(t) / claimUnit
}

// spend takes one claim out of the bucket, which holds it.
func (r *typeRecord) spend(t int64) {
	if r.Settings.RateLimit > 0 {
		r.Bucket, r.BucketT = r.bucketAt(t)-claimUnit, max(t, r.BucketT)
	}
}

// setRate changes the limit. A new one starts with a full bucket; one that
// replaces another keeps what was in it, as far as it holds it.
func (r *typeRecord) setRate(rateLimit, t int64) {
	was := r.Settings.RateLimit
	switch {
	case rateLimit == was:
		return
	case rateLimit <= 0:
		r.Bucket, r.BucketT = 0, 0
	case was <= 0:
		r.Bucket, r.BucketT = burst(rateLimit), t
	default:
		r.Bucket, r.BucketT = min(r.bucketAt(t), burst(rateLimit)), t
	}
	r.Settings.RateLimit = rateLimit
}
