package latency

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// Buckets keep the order of times, and each time is near the middle of its bucket.
func TestOf(t *testing.T) {
	t.Parallel()
	for ms, want := range map[int64]Bucket{-1: 1, 0: 1, 1: 2, 3: 4, 4: 5, 7: 8, 8: 9, 9: 9, 10: 10, 15: 12, msMax: Buckets, msMax + 1: Buckets} {
		if got := Of(ms); got != want {
			t.Errorf("%d ms are in bucket %d, want %d", ms, got, want)
		}
	}
	if got := Bucket(0).MS(); got != 0 {
		t.Errorf("none has %d ms", got)
	}
	proof.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(0, msMax-1).Draw(t, "ms")
		b := Of(ms)
		if next := Of(ms + 1); next != b && next != b+1 {
			t.Fatalf("%d ms are in bucket %d, a millisecond more in %d", ms, b, next)
		}
		if off := b.MS() - ms; off*8 > ms || -off*8 > ms {
			t.Fatalf("%d ms are told as %d", ms, b.MS())
		}
	})
}

// Quantiles equal those of the sorted times. Times that were taken back do not count.
func TestHistogram(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		times := rapid.SliceOf(rapid.Int64Range(0, 100_000))
		var h Histogram
		counted := times.Draw(t, "times")
		for _, ms := range counted {
			h.Add(ms)
		}
		for _, ms := range times.Draw(t, "undone") {
			h.Add(ms)
			h.Remove(ms)
		}
		slices.Sort(counted)
		for _, perMille := range []uint64{500, 990, 1000} {
			want := Bucket(0)
			if n := len(counted); n > 0 {
				want = Of(counted[(uint64(n)*perMille+999)/1000-1])
			}
			if got := h.Quantile(perMille); got != want {
				t.Fatalf("the quantile %d of %v is in bucket %d, want %d", perMille, counted, got, want)
			}
		}
	})
}
