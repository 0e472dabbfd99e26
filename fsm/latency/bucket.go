package latency

import "math/bits"

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
