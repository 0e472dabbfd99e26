package latency

import "math/bits"

// Bucket is a span of times: 0 is none, the others are in the order of their times.
type Bucket uint8

const (
	// Buckets is how many there are beside none.
	Buckets = 120
	// Times of an octave, from a power of two to the next, are in so many of them.
	inOctave     = 1 << inOctaveBits
	inOctaveBits = 2
	// msMax is the longest time that is told from longer ones: some 25 days.
	msMax = 1<<31 - 1
)

// Of returns the bucket of a time in milliseconds, of 0 for one below.
func Of(ms int64) Bucket {
	ms = min(max(ms, 0), msMax)
	if ms < inOctave {
		return Bucket(ms + 1)
	}
	below := bits.Len64(uint64(ms)) - 1 - inOctaveBits
	return Bucket(below*inOctave + int(ms>>below) + 1)
}

// MS returns the middle of the bucket, in milliseconds, 0 of none.
func (b Bucket) MS() int64 {
	at := max(int64(b)-1, 0)
	if at < inOctave {
		return at
	}
	below := at/inOctave - 1
	return (at%inOctave+inOctave)<<below + (1<<below-1)/2
}
