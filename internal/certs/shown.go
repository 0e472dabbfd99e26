package certs

import (
	"crypto/x509"
	"time"
)

// Shown is the certificate that the other side of an open connection has shown, with
// those that lead to its authority. Its methods are for one goroutine at a time.
type Shown struct {
	chain []*x509.Certificate
	use   x509.ExtKeyUsage
	at    time.Time
	by    *x509.CertPool // who vouched for it last; nil: nobody was asked yet
}

// NewShown returns what was shown at that time, for that use.
func NewShown(chain []*x509.Certificate, use x509.ExtKeyUsage, at time.Time) *Shown {
	return &Shown{chain: chain, use: use, at: at}
}

// VouchedBy reports whether authorities vouch for it: as it is now or, since its end
// ends no open connection, as it was when it was shown. Pools are told apart by their
// addresses, so the answer costs nothing while they stay.
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
