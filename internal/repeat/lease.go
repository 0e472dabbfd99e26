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
