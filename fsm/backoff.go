package fsm

import (
	"math"
	"math/bits"
)

// million is one, in the units of factors, jitters and rates.
const million = 1_000_000

// backoffStepsMax bounds how often a delay is multiplied: a factor close to 1
// takes many attempts to reach its maximum, and no command may take long.
const backoffStepsMax = 10_000

// delay returns how long the task waits before its next attempt, in
// milliseconds. The jitter is a hash of the task and its attempt: the same on
// every node, another one for every attempt.
func (b *Backoff) delay(taskID uint64, attempts int32) int64 {
	d := b.grown(attempts)
	high, low := bits.Mul64(uint64(d), uint64(min(max(b.Jitter, 0), million)))
	most, _ := bits.Div64(high, low, million)
	// A share of [0, most], from the hash as a fraction of 2^64.
	share, _ := bits.Mul64(most+1, jitterOf(taskID, attempts))
	return d - int64(share)
}

// grown returns min(MaxMS, InitialMS * factor^(attempts-1)), rounded down. In
// between it has 64 bits of fraction, so that a small delay grows as it should.
func (b *Backoff) grown(attempts int32) int64 {
	if b.InitialMS == 0 || b.InitialMS >= b.MaxMS || b.Factor <= million {
		return min(b.InitialMS, b.MaxMS)
	}
	whole, fraction, factor := uint64(b.InitialMS), uint64(0), uint64(b.Factor)
	for range min(attempts-1, backoffStepsMax) {
		high, low := bits.Mul64(whole, factor)
		carry, rest := bits.Mul64(fraction, factor)
		low, over := bits.Add64(low, carry, 0)
		if high += over; high >= million {
			return b.MaxMS
		}
		whole, carry = bits.Div64(high, low, million)
		fraction, _ = bits.Div64(carry, rest, million)
		if whole >= uint64(b.MaxMS) {
			return b.MaxMS
		}
	}
	return int64(whole)
}

// jitterOf returns the hash from which the jitter of an attempt is drawn. It
// never changes: what it gives is in the state.
func jitterOf(taskID uint64, attempts int32) uint64 {
	return uint64(fnvOffset.uint64(taskID).uint64(uint64(attempts)).mixed())
}

// backoffOf returns the task's backoff, else its type's, else the server's; nil if there
// is none.
func (m *Machine) backoffOf(t *Task) *Backoff {
	if b := t.options().Backoff; b != nil {
		return b
	}
	if b := m.settingsOf(t.Type).Backoff; b != nil {
		return b
	}
	return m.header.Defaults.Backoff
}

// backoffDelay returns how long a task waits whose attempt is over, 0 = not at
// all.
func (m *Machine) backoffDelay(t *Task) int64 {
	b := m.backoffOf(t)
	if b == nil {
		return 0
	}
	return b.delay(t.ID, t.Attempts)
}

// fromNow returns the time by T that is ms from now. There is no later one than
// the last that an int64 holds.
func (m *saved) fromNow(ms int64) int64 {
	now := m.header.Stamp.T
	if ms > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + ms
}
