package repeat

import "time"

const (
	// PollMax is how long one request of a long poll waits at most: with what package client
	// gives an answer to come in, a connection that is dead without a word is left within 10 s.
	PollMax = 6 * time.Second
	// pollMin is how long one request waits at least, if there is time.
	pollMin = time.Second
	// leaseDefault is the server's own length of a lease.
	leaseDefault = 30 * time.Second
)

// PollWait returns how long the next request of a claim waits that is to wait
// for left in all. A lease counts from before the request that got it was sent,
// so a request waits half of the lease that is asked for (0: the server's own),
// and at least the other half is left at its answer.
func PollWait(left, lease time.Duration) time.Duration {
	if lease <= 0 {
		lease = leaseDefault
	}
	return max(0, min(left, PollMax, max(lease/2, pollMin)))
}

// Scarce reports whether so little of a claim's lease is left for sure that the
// claim is to be extended before anybody works on it: its task has a shorter
// lease than PollWait took it for.
func Scarce(left, lease time.Duration) bool { return left < lease/4 }
