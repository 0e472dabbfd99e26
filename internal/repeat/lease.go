package repeat

import "time"

// LeaseEnd returns the time until which a lease certainly lasts if the server, some time
// after sentAt, said that left remained. The clocks' rates may differ by 0.05 % each way.
func LeaseEnd(sentAt time.Time, left time.Duration) time.Time {
	return sentAt.Add(left - left/1000)
}

// ClaimEnd is LeaseEnd for a claim. If a repeated answer says that an earlier try began the
// lease, of the requested length (0: the server's default), it counts from the first try.
func ClaimEnd(firstSentAt, sentAt time.Time, left, asked time.Duration, repeated bool) time.Time {
	end := LeaseEnd(sentAt, left)
	if repeated && asked > 0 {
		if first := LeaseEnd(firstSentAt, asked); first.Before(end) {
			return first
		}
	}
	return end
}

const (
	// PollMax bounds the wait of one request of a long poll. Together with the time that
	// package client allows for an answer, a connection that died silently is given up within
	// 10 s.
	PollMax = 6 * time.Second
	// pollMin is the least wait of one request, if there is time.
	pollMin = time.Second
	// leaseDefault is the server's default length of a lease.
	leaseDefault = 30 * time.Second
)

// PollWait returns the wait for the next request of a claim that is to wait for left in all. A
// lease counts from before its request was sent, so a request waits for half of the requested
// lease (0: the server's default), and at least the other half remains when it is answered.
func PollWait(left, lease time.Duration) time.Duration {
	if lease <= 0 {
		lease = leaseDefault
	}
	return max(0, min(left, PollMax, max(lease/2, pollMin)))
}

// Scarce reports whether so little of a claim's lease certainly remains that the claim should
// be extended before work on it starts: its task has a shorter lease than PollWait assumed.
func Scarce(left, lease time.Duration) bool { return left < lease/4 }
