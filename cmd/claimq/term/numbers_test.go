package term

import "testing"

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 tasks", 1: "1 task", 2: "2 tasks", 999: "999 tasks", 3201: "3,201 tasks", 1_234_567: "1,234,567 tasks", -123: "-123 tasks"} {
		if got := Count(n, "task"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
