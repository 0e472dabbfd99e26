// Package certs loads the certificate of a port and the authorities that it trusts from PEM
// files, and reloads them while the port serves. If the new files are wrong, it explains
// why and keeps using the old ones. It makes no connections and starts no goroutines.
package certs

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// fileBytesMax bounds a file. Hundreds of authorities fit.
const fileBytesMax = 1 << 20

// ErrInvalid is returned for files that cannot be used. The text says which and why.
var ErrInvalid = errors.New("invalid certificate files")

// Files names the PEM files of a port.
type Files struct {
	// Cert contains the certificate, followed by any intermediate ones.
	Cert string
	// Key contains the certificate's private key, without a passphrase.
	Key string
	// Authorities contains the authorities that must have signed the certificates of
	// others; "" = none.
	Authorities string
	// Mutual requires that one of Authorities signed the port's own certificate, for both
	// server and client use, because all ports of this kind show theirs to each other.
	Mutual bool
}

// Set holds the contents of valid files. It is never changed.
type Set struct {
	Certificate tls.Certificate // with Leaf
	Authorities *x509.CertPool  // nil if no file is named
	// ExpiresAt is the end of the certificate's validity, or of the last chain that vouches
	// for it.
	ExpiresAt time.Time
}

// CheckTime returns an ErrInvalid if the certificate has expired or is not valid yet at
// that time.
func (s *Set) CheckTime(now time.Time) error {
	leaf := s.Certificate.Leaf
	switch {
	case now.After(s.ExpiresAt):
		return fmt.Errorf("%w: the certificate of %s expired at %s", ErrInvalid, describe(leaf), s.ExpiresAt.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("%w: the certificate of %s is not valid before %s", ErrInvalid, describe(leaf), leaf.NotBefore.UTC().Format(time.RFC3339))
	default:
		return nil
	}
}

// Store holds the Set in use. Its methods are safe for concurrent use.
type Store struct {
	files   Files
	current atomic.Pointer[Set]

	mu   sync.Mutex
	seen [sha256.Size]byte // of the files when they were last read
}

// Open reads the files. It accepts an expired certificate, because that may be replaced
// before it is used; see CheckTime. Anything else that is wrong is an ErrInvalid.
func Open(files Files) (*Store, error) {
	s := &Store{files: files}
	set, sum, err := s.read()
	if err != nil {
		return nil, err
	}
	s.seen = sum
	s.current.Store(set)
	return s, nil
}

// Current returns the Set in use.
func (s *Store) Current() *Set { return s.current.Load() }

// Reload reads the files again and uses them if they are new and valid; changed says
// whether. Files that are wrong, or have newly expired, change nothing. The ErrInvalid for
// them is returned only once, not on each look at the same files.
func (s *Store) Reload(now time.Time) (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set, sum, err := s.read()
	if sum == s.seen {
		return false, nil
	}
	s.seen = sum
	if err != nil {
		return false, err
	}
	if err := set.CheckTime(now); err != nil && s.Current().CheckTime(now) == nil {
		return false, err
	}
	s.current.Store(set)
	return true, nil
}

// read reads the files. sum covers their contents or the errors, so that any change shows.
func (s *Store) read() (set *Set, sum [sha256.Size]byte, err error) {
	h := sha256.New()
	var texts [3][]byte
	for i, path := range []string{s.files.Cert, s.files.Key, s.files.Authorities} {
		if path == "" {
			continue
		}
		text, readErr := ReadFile(path)
		if readErr != nil {
			err = errors.Join(err, readErr)
			text = []byte(readErr.Error())
		}
		texts[i] = text
		fmt.Fprintf(h, "%d %t\n", len(text), readErr == nil)
		h.Write(text)
	}
	h.Sum(sum[:0])
	if err != nil {
		return nil, sum, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	set, err = s.files.parse(texts[0], texts[1], texts[2])
	if err != nil {
		return nil, sum, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return set, sum, nil
}

// ReadFile reads a PEM file of certificates or a key, up to a maximum size.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err != nil {
		return nil, err
	}
	if len(text) > fileBytesMax {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, fileBytesMax)
	}
	return text, nil
}

// parse makes a Set from the contents of the files.
func (f Files) parse(cert, key, authorities []byte) (*Set, error) {
	if !hasBlock(cert, "CERTIFICATE") {
		if hasBlock(cert, "PRIVATE KEY") {
			return nil, fmt.Errorf("%s has a private key and no certificate: are the files of certificate and key swapped?", f.Cert)
		}
		return nil, fmt.Errorf("%s has no certificate in PEM form", f.Cert)
	}
	if !hasBlock(key, "PRIVATE KEY") {
		if hasBlock(key, "CERTIFICATE") {
			return nil, fmt.Errorf("%s has a certificate and no private key: are the files of certificate and key swapped?", f.Key)
		}
		return nil, fmt.Errorf("%s has no private key in PEM form", f.Key)
	}
	if hasBlock(key, "ENCRYPTED") {
		return nil, fmt.Errorf("the private key in %s has a passphrase: it must have none", f.Key)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", f.Cert, f.Key, err)
	}
	set := &Set{Certificate: pair}
	chain := make([]*x509.Certificate, len(pair.Certificate))
	for i, der := range pair.Certificate {
		if chain[i], err = x509.ParseCertificate(der); err != nil {
			return nil, fmt.Errorf("certificate %d of %s: %w", i+1, f.Cert, err)
		}
	}
	set.Certificate.Leaf, set.ExpiresAt = chain[0], firstEnd(chain)
	if f.Authorities == "" {
		return set, nil
	}
	if set.Authorities, err = ParseAuthorities(f.Authorities, authorities); err != nil {
		return nil, err
	}
	if f.Mutual {
		err = set.checkMutual(f, chain)
	}
	return set, err
}

// ParseAuthorities returns the certificates in text, the content of the file at path.
func ParseAuthorities(path string, text []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	count := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s has a %s among the certificates of authorities", path, block.Type)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d of %s: %w", count+1, path, err)
		}
		pool.AddCert(c)
		count++
	}
	if count == 0 {
		return nil, fmt.Errorf("%s has no certificate of an authority in PEM form", path)
	}
	return pool, nil
}

// checkMutual checks the certificate as other ports will, except for its name and the time,
// and records until when they will accept it.
func (s *Set) checkMutual(f Files, chain []*x509.Certificate) error {
	at := time.Now()
	switch leaf := chain[0]; { // CheckTime reports an expired one
	case at.After(leaf.NotAfter):
		at = leaf.NotAfter
	case at.Before(leaf.NotBefore):
		at = leaf.NotBefore
	}
	s.ExpiresAt = time.Time{}
	for _, side := range []struct {
		usage x509.ExtKeyUsage
		name  string
	}{{x509.ExtKeyUsageServerAuth, "serverAuth"}, {x509.ExtKeyUsageClientAuth, "clientAuth"}} {
		chains, err := Verify(chain, s.Authorities, side.usage, at)
		var invalid x509.CertificateInvalidError
		if errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage {
			return fmt.Errorf("the certificate of %s in %s is not made for %s: nodes need both, serverAuth and clientAuth, in its extended key usage", describe(chain[0]), f.Cert, side.name)
		}
		if err != nil {
			return fmt.Errorf("the certificate of %s in %s is not one that %s vouches for: %w", describe(chain[0]), f.Cert, f.Authorities, err)
		}
		var last time.Time
		for _, c := range chains {
			if end := firstEnd(c); end.After(last) {
				last = end
			}
		}
		if s.ExpiresAt.IsZero() || last.Before(s.ExpiresAt) {
			s.ExpiresAt = last
		}
	}
	return nil
}

// Verify checks that one of authorities signed the first certificate in chain, directly or
// through the others, for that use and at that time.
func Verify(chain []*x509.Certificate, authorities *x509.CertPool, use x509.ExtKeyUsage, at time.Time) ([][]*x509.Certificate, error) {
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	return chain[0].Verify(x509.VerifyOptions{
		Roots: authorities, Intermediates: between, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{use},
	})
}

// firstEnd returns when the first certificate of a chain expires.
func firstEnd(chain []*x509.Certificate) time.Time {
	end := chain[0].NotAfter
	for _, c := range chain[1:] {
		if c.NotAfter.Before(end) {
			end = c.NotAfter
		}
	}
	return end
}

// hasBlock reports whether text has a PEM block whose type contains word.
func hasBlock(text []byte, word string) bool {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if bytes.Contains([]byte(block.Type), []byte(word)) {
			return true
		}
	}
	return false
}

// describe names a certificate for a log.
func describe(c *x509.Certificate) string {
	if len(c.DNSNames) > 0 {
		return fmt.Sprintf("%q", c.DNSNames[0])
	}
	if len(c.IPAddresses) > 0 {
		return c.IPAddresses[0].String()
	}
	return fmt.Sprintf("%q", c.Subject.CommonName)
}
