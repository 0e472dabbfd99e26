package repeat

import "time"

// LeaseEnd returns until when a lease lasts for sure of which the server, some
// time after sentAt, had so much left. The clocks' rates may differ by 0.05 %
// each way.
func LeaseEnd(sentAt time.Time, left time.Duration) time.Time {
	return sentAt.Add(left - left/1000)
}

// ClaimEnd is LeaseEnd of a claim: when a repeated answer says that an earlier
// try began the lease, of the length asked for (0: the server's own), it is
// counted from the first try.
func ClaimEnd(firstSentAt, sentAt time.Time, left, asked time.Duration, repeated bool) time.Time {
	end := LeaseEnd(sentAt, left)
	if repeated && asked > 0 {
		if first := LeaseEnd(firstSentAt, asked); first.Before(end) {
			return first
		}
	}
	return end
}
