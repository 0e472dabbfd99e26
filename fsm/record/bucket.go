package record

import (
	"math"
	"math/bits"
)

// A rate limit is a token bucket on the calendar clock. It counts in billionths of a claim:
// a limit of n millionths a second adds n of them each millisecond, so everything is exact.
const (
	ClaimUnit  = 1_000_000_000
	MSInSecond = 1000

	// NoLimit stands for unlimited.
	NoLimit = math.MaxInt64
)

// burst returns the capacity of the bucket: the limit of one second, and at least one
// claim.
func burst(rateLimit int64) int64 {
	if rateLimit > math.MaxInt64/MSInSecond {
		return math.MaxInt64
	}
	return max(rateLimit*MSInSecond, ClaimUnit)
}

// BucketAt returns the contents of the bucket at t. Time that goes back adds nothing.
func (r *TaskType) BucketAt(t int64) int64 {
	rate, most := r.Settings.RateLimit, burst(r.Settings.RateLimit)
	hi, grown := bits.Mul64(uint64(rate), uint64(max(t-r.BucketT, 0)))
	if hi > 0 || grown >= uint64(max(most-r.Bucket, 0)) {
		return most
	}
	return r.Bucket + int64(grown)
}

// ClaimableAt returns when the bucket holds a whole claim: t or later.
func (r *TaskType) ClaimableAt(t int64) int64 {
	rate := r.Settings.RateLimit
	if rate <= 0 {
		return t
	}
	return after(t, ClaimUnit-r.BucketAt(t), rate)
}

// after returns when the missing part of a bucket's contents will have come, from t on.
func after(t, missing, rateLimit int64) int64 {
	if missing <= 0 {
		return t
	}
	wait := (missing-1)/rateLimit + 1
	if t > math.MaxInt64-wait {
		return math.MaxInt64
	}
	return t + wait
}

// ClaimsAt returns how many whole claims the bucket holds at t.
func (r *TaskType) ClaimsAt(t int64) int64 {
	if r.Settings.RateLimit <= 0 {
		return NoLimit
	}
	return r.BucketAt(t) / ClaimUnit
}

// Spend takes one claim out of the bucket, which must hold one.
func (r *TaskType) Spend(t int64) {
	if r.Settings.RateLimit > 0 {
		r.Bucket, r.BucketT = r.BucketAt(t)-ClaimUnit, max(t, r.BucketT)
	}
}

// SetRate changes the limit. A first limit starts with a full bucket; a changed limit keeps
// the contents, up to the new capacity.
func (r *TaskType) SetRate(rateLimit, t int64) {
	was := r.Settings.RateLimit
	switch {
	case rateLimit == was:
		return
	case rateLimit <= 0:
		r.Bucket, r.BucketT = 0, 0
	case was <= 0:
		r.Bucket, r.BucketT = burst(rateLimit), t
	default:
		r.Bucket, r.BucketT = min(r.BucketAt(t), burst(rateLimit)), t
	}
	r.Settings.RateLimit = rateLimit
}
