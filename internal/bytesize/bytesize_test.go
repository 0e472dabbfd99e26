package bytesize

import "testing"

func TestText(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 KiB", 10 << 10: "10 KiB", 4 << 30: "4.0 GiB", 1000 << 20: "1.0 GiB", 5 << 50: "5120 TiB"} {
		if got := Text(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
