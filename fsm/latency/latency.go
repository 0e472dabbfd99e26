// Package latency counts how long things took. Each bucket is at most a quarter wider than
// its lower bound, so results are accurate to about an eighth.
//
// A histogram has a fixed size in memory.
package latency

import (
	"math/bits"
)

// Bucket is a range of times. Bucket 0 means none; the others are in ascending order.
type Bucket uint8

const (
	// Buckets is the number of buckets, without 0.
	Buckets = 120
	// inOctave is the number of buckets for each octave, from one power of two to the next.
	inOctave     = 1 << inOctaveBits
	inOctaveBits = 2
	// msMax is the longest time that is distinguished, about 25 days.
	msMax = 1<<31 - 1
)

// Of returns the bucket for a time in milliseconds; negative ones count as 0.
func Of(ms int64) Bucket {
	ms = min(max(ms, 0), msMax)
	if ms < inOctave {
		return Bucket(ms + 1)
	}
	below := bits.Len64(uint64(ms)) - 1 - inOctaveBits
	return Bucket(below*inOctave + int(ms>>below) + 1)
}

// MS returns the middle of the bucket in milliseconds, 0 for bucket 0.
func (b Bucket) MS() int64 {
	at := max(int64(b)-1, 0)
	if at < inOctave {
		return at
	}
	below := at/inOctave - 1
	return (at%inOctave+inOctave)<<below + (1<<below-1)/2
}

// Histogram counts times by bucket, starting with bucket 1 at index 0. The zero value is
// empty.
type Histogram [Buckets]uint64

// Add counts a time.
func (h *Histogram) Add(ms int64) { h[Of(ms)-1]++ }

// Remove undoes an Add.
func (h *Histogram) Remove(ms int64) { h[Of(ms)-1]-- }

// Quantile returns the bucket that perMille of a thousand times do not exceed, or 0 if
// nothing is counted.
func (h *Histogram) Quantile(perMille uint64) Bucket {
	all := uint64(0)
	for _, n := range h {
		all += n
	}
	left := (all*perMille + 999) / 1000
	for i, n := range h {
		if n > 0 && n >= left {
			return Bucket(i + 1)
		}
		left -= min(n, left)
	}
	return 0
}
