package cron

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// Latest finds the same as looking at one slot after the other.
func TestTimes_Latest(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		plan := rapid.SampledFrom([]Plan{
			{EveryMS: 1000}, {EveryMS: 7777}, {Cron: "*/5 * * * *"}, {Cron: "0 3 * * 1-5", Timezone: "Europe/Vienna"},
		}).Draw(t, "plan")
		times, err := plan.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		slot, _ := times.Next(1_780_000_000_000 + rapid.Int64Range(0, 1_000_000).Draw(t, "slot"))
		now := slot + rapid.Int64Range(0, 500_000_000).Draw(t, "late")
		limit := rapid.Int64Range(0, 300).Draw(t, "limit")
		want, passed := slot, int64(0)
		for passed < limit {
			next, ok := times.Next(want)
			if !ok || next > now {
				break
			}
			want, passed = next, passed+1
		}
		if got, n := times.Latest(slot, now, limit); got != want || n != passed {
			t.Errorf("the latest is %d and passes over %d, want %d and %d", got, n, want, passed)
		}
	})
}
