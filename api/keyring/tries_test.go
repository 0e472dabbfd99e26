package keyring

import (
	"net/netip"
	"testing"
	"time"
)

// Ten wrong keys a minute from one address, and right ones do not count. Others have their
// own ten.
func TestTries(t *testing.T) {
	t.Parallel()
	tries, now := NewTries(), int64(time.Hour)
	a, b := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::ffff")
	for i := range 30 {
		back, _, ok := tries.Try(a, now)
		if !ok {
			t.Fatalf("try %d is refused", i)
		}
		if i >= TriesPerMinute {
			back()
			continue
		}
		if i == TriesPerMinute-1 {
			back() // the tenth was right: one is left
		}
	}
	if _, _, ok := tries.Try(b, now); !ok { // of the same /64
		t.Error("the tenth is refused")
	}
	if _, retry, ok := tries.Try(a, now); ok || retry <= 0 || retry > 6*time.Second {
		t.Errorf("the eleventh: %v, to be tried again in %s", ok, retry)
	}
	for _, other := range []string{"10.0.0.1", "2001:db8:0:1::1", "::1"} {
		if _, _, ok := tries.Try(netip.MustParseAddr(other), now); !ok {
			t.Errorf("%s is refused for somebody else", other)
		}
	}
	if _, _, ok := tries.Try(a, now+int64(6*time.Second)); !ok {
		t.Error("there is none after six seconds")
	}
}
