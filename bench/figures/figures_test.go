package figures

import "testing"

func TestQuantile(t *testing.T) {
	t.Parallel()
	all := []float64{4, 1, 3, 2}
	for share, want := range map[float64]float64{0: 1, 0.25: 1.75, 0.5: 2.5, 1: 4} {
		if got := Quantile(all, share); got != want {
			t.Errorf("%v: %v, want %v", share, got, want)
		}
	}
	if got := Median([]float64{9, 5, 1}); got != 5 {
		t.Errorf("median: %v", got)
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]string{0: "0", 999.4: "999", 999.5: "1,000", 12345: "12,345", 1234567: "1,234,567"} {
		if got := Thousands(f); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
}
