package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"

	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/peer/peertest"
)

// Valid and invalid join keys of a node.
func TestConfig_CheckJoinKeys(t *testing.T) {
	t.Parallel()
	testKey, testOtherKey := peertest.JoinKey(), []byte("another key of at least 32 characters")
	for name, tc := range map[string]struct {
		addr     string
		tls      bool
		insecure bool
		keys     peer.JoinKeys
		want     string // "" = allowed
	}{
		"one":                                 {"10.0.0.1:7401", false, false, peer.JoinKeys{testKey}, ""},
		"two":                                 {"10.0.0.1:7401", false, false, peer.JoinKeys{testKey, testOtherKey}, ""},
		"none on loopback":                    {"127.0.0.1:7401", false, false, nil, ""},
		"none beyond loopback":                {"10.0.0.1:7401", false, false, nil, "neither mutual TLS nor a join key"},
		"also none beyond loopback":           {"10.0.0.1:7401", false, false, peer.JoinKeys{testKey, nil}, "a line `none`"},
		"also none beyond loopback, TLS":      {"10.0.0.1:7401", true, false, peer.JoinKeys{testKey, nil}, ""},
		"also none beyond loopback, insecure": {"10.0.0.1:7401", false, true, peer.JoinKeys{testKey, nil}, ""},
		"a short one":                         {"127.0.0.1:7401", false, false, peer.JoinKeys{testKey, []byte("short")}, "has 5 characters"},
		"five":                                {"127.0.0.1:7401", false, false, peer.JoinKeys{testKey, testKey, testKey, testKey, testKey}, "there are 5 join keys"},
	} {
		cfg := Config{PeerAddr: tc.addr, Insecure: tc.insecure}
		if tc.tls {
			cfg.PeerCertificate = func() (tls.Certificate, *x509.CertPool) { return tls.Certificate{}, nil }
		}
		err := cfg.CheckJoinKeys(tc.keys)
		if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if err != nil && (strings.Contains(err.Error(), string(testKey)) || strings.Contains(err.Error(), `"short"`)) {
			t.Errorf("%s: the error tells the key: %v", name, err)
		}
	}
}
