package door

import (
	"crypto/sha256"
	"net/netip"
	"time"
)

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
