package certs

import (
	"crypto/x509"
	"time"
)

// Shown is the certificate chain that the other side of an open connection has shown. Its
// methods are for one goroutine at a time.
type Shown struct {
	chain []*x509.Certificate
	use   x509.ExtKeyUsage
	at    time.Time
	by    *x509.CertPool // vouched for it last; nil: not checked yet
}

// NewShown returns a Shown for a chain that was shown at that time, for that use.
func NewShown(chain []*x509.Certificate, use x509.ExtKeyUsage, at time.Time) *Shown {
	return &Shown{chain: chain, use: use, at: at}
}

// VouchedBy reports whether authorities vouch for the chain: now or, because expiry does
// not end open connections, at the time it was shown. It compares pools by their addresses,
// so the answer costs nothing while they stay the same.
func (s *Shown) VouchedBy(authorities *x509.CertPool, now time.Time) bool {
	if s.by != nil && s.by == authorities {
		return true
	}
	for _, at := range []time.Time{now, s.at} {
		if _, err := Verify(s.chain, authorities, s.use, at); err == nil {
			s.by = authorities
			return true
		}
	}
	return false
}
