package record

import (
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"
)

// Backoff says how long a task waits after its attempt failed or expired: min(MaxMS,
// InitialMS * factor^(attempts-1)), less a share of up to jitter. Factor and Jitter are in
// millionths, because floating point results may differ between machines. A *Backoff is
// never changed.
type Backoff struct {
	InitialMS int64 // 1 or more
	MaxMS     int64 // InitialMS or more
	Factor    int64 // 1,000,000 or more
	Jitter    int64 // 0 to 1,000,000
}

// backoff reads or writes field num, a message; nil is not written.
func (f *Fields) backoff(num protowire.Number, v **Backoff) {
	m, ok := f.Message(num, *v != nil)
	if !ok {
		return
	}
	if *v == nil {
		*v = &Backoff{}
	}
	b := *v
	f.Int(1, &b.InitialMS)
	f.Int(2, &b.MaxMS)
	f.Int(3, &b.Factor)
	f.Int(4, &b.Jitter)
	f.EndMessage(m)
}

// Million is 1 in the units of factors, jitters and rates.
const Million = 1_000_000

// backoffStepsMax bounds the multiplications for one delay, because a factor close to 1
// needs many attempts to reach the maximum and no command may take long.
const backoffStepsMax = 10_000

// Delay returns how long the task waits before its next attempt, in milliseconds. The
// jitter is a hash of task and attempt: the same on every node, but different for every
// attempt.
func (b *Backoff) Delay(taskID uint64, attempts int32) int64 {
	d := b.grown(attempts)
	high, low := bits.Mul64(uint64(d), uint64(min(max(b.Jitter, 0), Million)))
	most, _ := bits.Div64(high, low, Million)
	// The hash, as a fraction of 2^64, selects a share of [0, most].
	share, _ := bits.Mul64(most+1, jitterOf(taskID, attempts))
	return d - int64(share)
}

// grown returns min(MaxMS, InitialMS * factor^(attempts-1)), rounded down. It calculates
// with 64 bits of fraction so that small delays grow, too.
func (b *Backoff) grown(attempts int32) int64 {
	if b.InitialMS == 0 || b.InitialMS >= b.MaxMS || b.Factor <= Million {
		return min(b.InitialMS, b.MaxMS)
	}
	whole, fraction, factor := uint64(b.InitialMS), uint64(0), uint64(b.Factor)
	for range min(attempts-1, backoffStepsMax) {
		high, low := bits.Mul64(whole, factor)
		carry, rest := bits.Mul64(fraction, factor)
		low, over := bits.Add64(low, carry, 0)
		if high += over; high >= Million {
			return b.MaxMS
		}
		whole, carry = bits.Div64(high, low, Million)
		fraction, _ = bits.Div64(carry, rest, Million)
		if whole >= uint64(b.MaxMS) {
			return b.MaxMS
		}
	}
	return int64(whole)
}

// jitterOf returns the hash that decides an attempt's jitter. It affects the state, so it
// must never change.
func jitterOf(taskID uint64, attempts int32) uint64 {
	return uint64(HashStart.Number(taskID).Number(uint64(attempts)).Mixed())
}
