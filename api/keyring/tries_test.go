package keyring

import (
	"net/netip"
	"testing"
	"time"
)

// One address, or one IPv6 /64, has ten wrong keys a minute. Others have their own.
func TestTries(t *testing.T) {
	t.Parallel()
	tries, now := NewTries(), int64(time.Hour)
	a, b := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::ffff")
	for i := range TriesPerMinute {
		from := a
		if i%2 == 1 {
			from = b
		}
		if _, ok := tries.Try(from, now); !ok {
			t.Fatalf("try %d is refused", i)
		}
	}
	if retry, ok := tries.Try(a, now); ok || retry <= 0 || retry > 6*time.Second {
		t.Errorf("the eleventh: %v, to be tried again in %s", ok, retry)
	}
	for _, other := range []string{"10.0.0.1", "2001:db8:0:1::1", "::1"} {
		if _, ok := tries.Try(netip.MustParseAddr(other), now); !ok {
			t.Errorf("%s is refused for somebody else", other)
		}
	}
	if _, ok := tries.Try(a, now+int64(6*time.Second)); !ok {
		t.Error("there is none after six seconds")
	}
}
