// Package certstest makes authorities and certificates for tests.
package certstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// Certificate is a signed certificate with its key.
type Certificate struct{ CertPEM, KeyPEM []byte }

// Paths names the files that Write wrote.
type Paths struct{ Cert, Key, CA string }

// NewAuthority makes an authority that is valid for an hour.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{t: t, key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// PEM returns the authority's own certificate.
func (a *Authority) PEM() []byte { return a.pem }

// Pool returns a pool that trusts only this authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Issue signs a certificate for the names, which may be IP addresses. By default it is valid for
// half an hour and for both sides of a connection; change may modify it.
func (a *Authority) Issue(names []string, change ...func(*x509.Certificate)) Certificate {
	a.t.Helper()
	key := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: serial(a.t), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-30 * time.Minute), NotAfter: time.Now().Add(30 * time.Minute),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	for _, c := range change {
		c(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return Certificate{
		CertPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
}

// Expired makes Issue sign an expired certificate.
func Expired(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }

// TLS returns the certificate in the form of crypto/tls.
func (c Certificate) TLS(t testing.TB) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(c.CertPEM, c.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// Write writes certificate, key and the authorities' certificates to dir. Each file replaces an
// existing one in one step.
func Write(t testing.TB, dir string, c Certificate, authorities ...*Authority) Paths {
	t.Helper()
	p := Paths{Cert: filepath.Join(dir, "node.crt"), Key: filepath.Join(dir, "node.key"), CA: filepath.Join(dir, "ca.crt")}
	var cas []byte
	for _, a := range authorities {
		cas = append(cas, a.pem...)
	}
	Put(t, p.CA, cas)
	Put(t, p.Key, c.KeyPEM)
	Put(t, p.Cert, c.CertPEM)
	return p
}

// Put replaces the file at path in one step.
func Put(t testing.TB, path string, text []byte) {
	t.Helper()
	next := path + ".new"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

// Serve starts a server that requires client certificates, until the end of the test. Those, and
// its own, are signed by the authority, or by another one once trust is called with that.
func Serve(t testing.TB, h http.Handler, by *Authority) (server *httptest.Server, trust func(by *Authority)) {
	t.Helper()
	var now atomic.Pointer[tls.Config]
	trust = func(by *Authority) {
		now.Store(&tls.Config{
			Certificates: []tls.Certificate{by.Issue([]string{"127.0.0.1"}).TLS(t)},
			ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: by.Pool(),
		})
	}
	trust(by)
	server = httptest.NewUnstartedServer(h)
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return now.Load(), nil }}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) //nolint:forbidigo // net/http takes no other
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, trust
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
