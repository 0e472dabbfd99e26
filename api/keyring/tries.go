package keyring

import (
	"crypto/sha256"
	"net/netip"
	"time"
)

const (
	// TriesPerMinute bounds the wrong keys that are tried from one address, at once and in
	// each minute after that.
	TriesPerMinute = 10
	// triesKept bounds the addresses of which that is remembered.
	triesKept = 4_096
	// triesPrefix is how much of an IPv6 address counts: who has one has all behind it.
	triesPrefix = 64
)

// Tries bounds how often keys are guessed where people give them. It is safe for
// concurrent use.
type Tries struct{ left *recent[*bucket] }

// NewTries returns one in which nobody has tried anything.
func NewTries() *Tries { return &Tries{left: newRecent[*bucket](triesKept)} }

// Try takes one try with a wrong key from an address, at now on any clock of nanoseconds.
// ok is false if there is none left: retry is how long until there is.
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
