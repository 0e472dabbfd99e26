package certs_test

import (
	"bytes"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/certs"
	"github.com/claimq/claimq/internal/certs/certstest"
)

// mutual returns the files of a port that uses its certificate in both directions.
func mutual(p certstest.Paths) certs.Files {
	return certs.Files{Cert: p.Cert, Key: p.Key, Authorities: p.CA, Mutual: true}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	a := certstest.NewAuthority(t, "a")
	ends := time.Now().Add(20 * time.Minute).UTC().Truncate(time.Second)
	p := certstest.Write(t, t.TempDir(), a.Issue([]string{"n1"}, func(c *x509.Certificate) { c.NotAfter = ends }), a)
	s, err := certs.Open(mutual(p))
	if err != nil {
		t.Fatal(err)
	}
	set := s.Current()
	if !set.ExpiresAt.Equal(ends) || set.Certificate.Leaf == nil || set.Authorities == nil || set.CheckTime(time.Now()) != nil {
		t.Errorf("got %+v", set)
	}
	if err := set.CheckTime(ends.Add(time.Second)); err == nil || !strings.Contains(err.Error(), `certificate of "n1" expired at `+ends.Format(time.RFC3339)) {
		t.Errorf("after its end: %v", err)
	}
	if err := set.CheckTime(time.Now().Add(-24 * time.Hour)); err == nil || !strings.Contains(err.Error(), "not valid before") {
		t.Errorf("before its begin: %v", err)
	}
	// The authority's end matters if it is used for the check, and only then.
	late := certstest.Write(t, t.TempDir(), a.Issue([]string{"n1"}, func(c *x509.Certificate) { c.NotAfter = ends.Add(24 * time.Hour) }), a)
	if s, err = certs.Open(mutual(late)); err != nil || s.Current().ExpiresAt.After(ends.Add(time.Hour)) {
		t.Errorf("a certificate that outlives its authority: %v", err)
	}
	if s, err = certs.Open(certs.Files{Cert: late.Cert, Key: late.Key}); err != nil || !s.Current().ExpiresAt.Equal(ends.Add(24*time.Hour)) {
		t.Errorf("without an authority: %v", err)
	}
}

func TestOpen_refused(t *testing.T) {
	t.Parallel()
	a, b := certstest.NewAuthority(t, "a"), certstest.NewAuthority(t, "b")
	good, other := a.Issue([]string{"n1"}), a.Issue([]string{"n1"})
	locked := bytes.ReplaceAll(good.KeyPEM, []byte("PRIVATE KEY"), []byte("ENCRYPTED PRIVATE KEY"))
	serverOnly := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	clientOnly := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }
	type files struct{ cert, key, ca []byte }
	for name, c := range map[string]struct {
		files files
		want  string
	}{
		"swapped":                  {files{good.KeyPEM, good.CertPEM, a.PEM()}, "node.crt has a private key and no certificate: are the files of certificate and key swapped?"},
		"no certificate":           {files{[]byte("nothing"), good.KeyPEM, a.PEM()}, "node.crt has no certificate in PEM form"},
		"no key":                   {files{good.CertPEM, nil, a.PEM()}, "node.key has no private key in PEM form"},
		"a certificate as the key": {files{good.CertPEM, good.CertPEM, a.PEM()}, "node.key has a certificate and no private key"},
		"another's key":            {files{good.CertPEM, other.KeyPEM, a.PEM()}, "private key does not match public key"},
		"a key with a passphrase":  {files{good.CertPEM, locked, a.PEM()}, "has a passphrase"},
		"half a certificate":       {files{good.CertPEM[:len(good.CertPEM)/2], good.KeyPEM, a.PEM()}, "node.crt has no certificate in PEM form"},
		"no authority":             {files{good.CertPEM, good.KeyPEM, []byte("\n")}, "ca.crt has no certificate of an authority"},
		"a key as an authority":    {files{good.CertPEM, good.KeyPEM, good.KeyPEM}, "ca.crt has a PRIVATE KEY among the certificates"},
		"another authority":        {files{good.CertPEM, good.KeyPEM, b.PEM()}, "not one that"},
		"too large":                {files{good.CertPEM, good.KeyPEM, make([]byte, 2<<20)}, "is larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := certstest.Write(t, t.TempDir(), certstest.Certificate{CertPEM: c.files.cert, KeyPEM: c.files.key}, a)
			certstest.Put(t, p.CA, c.files.ca)
			_, err := certs.Open(mutual(p))
			if !errors.Is(err, certs.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	for side, change := range map[string]func(*x509.Certificate){"clientAuth": serverOnly, "serverAuth": clientOnly} {
		p := certstest.Write(t, t.TempDir(), a.Issue([]string{"n1"}, change), a)
		if _, err := certs.Open(mutual(p)); err == nil || !strings.Contains(err.Error(), "is not made for "+side) {
			t.Errorf("without %s: %v", side, err)
		}
		if _, err := certs.Open(certs.Files{Cert: p.Cert, Key: p.Key, Authorities: p.CA}); err != nil {
			t.Errorf("without %s, not mutual: %v", side, err)
		}
	}
	missing := filepath.Join(t.TempDir(), "none")
	if _, err := certs.Open(certs.Files{Cert: missing, Key: missing}); !errors.Is(err, os.ErrNotExist) || !errors.Is(err, certs.ErrInvalid) {
		t.Errorf("missing: %v", err)
	}
}

// Only valid files are used, and each mistake is reported once.
func TestStore_Reload(t *testing.T) {
	t.Parallel()
	a := certstest.NewAuthority(t, "a")
	dir, now := t.TempDir(), time.Now()
	p := certstest.Write(t, dir, a.Issue([]string{"first"}), a)
	s, err := certs.Open(mutual(p))
	if err != nil {
		t.Fatal(err)
	}
	inUse := func() string { return s.Current().Certificate.Leaf.DNSNames[0] }
	look := func(step, use string, changes bool, says string) {
		t.Helper()
		changed, err := s.Reload(now)
		if changed != changes || (says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), says) || inUse() != use {
			t.Errorf("%s: changed %v, %v, %s is in use", step, changed, err, inUse())
		}
	}
	look("nothing has changed", "first", false, "")
	second := a.Issue([]string{"second"})
	certstest.Put(t, p.Cert, second.CertPEM)
	look("only the certificate is there", "first", false, "does not match")
	look("and still", "first", false, "")
	certstest.Put(t, p.Key, second.KeyPEM)
	look("the key is there too", "second", true, "")
	certstest.Write(t, dir, a.Issue([]string{"third"}, certstest.Expired), a)
	look("one that has expired", "second", false, `"third" expired`)
	look("and still", "second", false, "")
	if err := os.Remove(p.Key); err != nil {
		t.Fatal(err)
	}
	look("the key is gone", "second", false, "no such file")
	look("and still", "second", false, "")
	certstest.Write(t, dir, second, a)
	look("as it was", "second", true, "")
	b := certstest.NewAuthority(t, "b")
	certstest.Put(t, p.CA, append(bytes.Clone(a.PEM()), b.PEM()...))
	look("one more authority", "second", true, "")
}

// A node whose certificate has expired starts, and uses any next one.
func TestStore_Reload_expired(t *testing.T) {
	t.Parallel()
	a := certstest.NewAuthority(t, "a")
	dir, now := t.TempDir(), time.Now()
	p := certstest.Write(t, dir, a.Issue([]string{"old"}, certstest.Expired), a)
	s, err := certs.Open(mutual(p))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Current().CheckTime(now); !errors.Is(err, certs.ErrInvalid) {
		t.Errorf("it is good: %v", err)
	}
	for _, change := range []func(*x509.Certificate){certstest.Expired, func(*x509.Certificate) {}} {
		certstest.Write(t, dir, a.Issue([]string{"new"}, change), a)
		if changed, err := s.Reload(now); !changed || err != nil {
			t.Errorf("changed %v, %v", changed, err)
		}
	}
	if err := s.Current().CheckTime(now); err != nil {
		t.Error(err)
	}
}
