package latency

// Histogram counts times by bucket, starting with bucket 1 at index 0. The zero value is
// empty.
type Histogram [Buckets]uint64

// Add counts a time.
func (h *Histogram) Add(ms int64) { h[Of(ms)-1]++ }

// Remove undoes an Add.
func (h *Histogram) Remove(ms int64) { h[Of(ms)-1]-- }

// Since returns what was counted after before. If the histogram was reset in between, it
// returns everything.
func (h *Histogram) Since(before *Histogram) Histogram {
	since := *h
	for i, n := range before {
		if since[i] < n {
			return *h
		}
		since[i] -= n
	}
	return since
}

// Quantile returns the bucket that perMille of a thousand times do not exceed, or 0 if
// nothing is counted.
func (h *Histogram) Quantile(perMille uint64) Bucket {
	all := uint64(0)
	for _, n := range h {
		all += n
	}
	left := (all*perMille + 999) / 1000
	for i, n := range h {
		if n > 0 && n >= left {
			return Bucket(i + 1)
		}
		left -= min(n, left)
	}
	return 0
}
