package certs_test

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/certs"
	"github.com/claimq/claimq/internal/certs/certstest"
)

// The end of a certificate does not end connections that it has opened, but the removal of
// its authority does.
func TestShown(t *testing.T) {
	t.Parallel()
	ours, other := certstest.NewAuthority(t, "ours"), certstest.NewAuthority(t, "other")
	both := ours.Pool()
	both.AppendCertsFromPEM(other.PEM())
	leaf := ours.Issue([]string{"n1"}).TLS(t).Leaf
	now := time.Now()
	s := certs.NewShown([]*x509.Certificate{leaf}, x509.ExtKeyUsageClientAuth, now)
	for _, step := range []struct {
		name string
		by   *x509.CertPool
		at   time.Time
		want bool
	}{
		{"at first", ours.Pool(), now, true},
		{"beside another authority", both, now, true},
		{"after its end", both, leaf.NotAfter.Add(time.Hour), true},
		{"without its authority", other.Pool(), now, false},
		{"and again", other.Pool(), now, false},
		{"with it again, after its end", ours.Pool(), leaf.NotAfter.Add(time.Hour), true},
	} {
		if got := s.VouchedBy(step.by, step.at); got != step.want {
			t.Errorf("%s: %t, want %t", step.name, got, step.want)
		}
	}
	if s := certs.NewShown([]*x509.Certificate{leaf}, x509.ExtKeyUsageCodeSigning, now); s.VouchedBy(ours.Pool(), now) {
		t.Error("it is vouched for another use")
	}
}
