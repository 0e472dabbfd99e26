package door

import (
	"net"
	"testing"
)

// TestAddressOf ensures that an IPv6 host with many addresses counts once.
func TestAddressOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ a, b string }{
		{"192.0.2.1", "::ffff:192.0.2.1"},
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff::9"},
	} {
		a, b := addressOf(&net.TCPAddr{IP: net.ParseIP(test.a)}), addressOf(&net.TCPAddr{IP: net.ParseIP(test.b), Zone: "x"})
		if a != b || !a.IsValid() {
			t.Errorf("%s counts for %s, %s for %s", test.a, a, test.b, b)
		}
	}
	if a, b := addressOf(&net.TCPAddr{IP: net.ParseIP("192.0.2.1")}), addressOf(&net.TCPAddr{IP: net.ParseIP("192.0.2.2")}); a == b {
		t.Errorf("two hosts count for %s", a)
	}
}
