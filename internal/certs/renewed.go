package certs

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// renewedAge is the age at which a Renewed reads its files again.
const renewedAge = time.Second

// Renewed is a client's TLS configuration whose certificates are in files that another program
// rewrites before they expire. It is safe for concurrent use. Its zero value uses the defaults and
// no files.
type Renewed struct {
	base          *tls.Config // the rest; nil: the defaults
	ca, cert, key string      // "": none

	mu      sync.Mutex // guards what follows
	looked  time.Time
	seen    [sha256.Size]byte // of the files when they were last read
	current *tls.Config
}

// OpenRenewed reads the files of authorities, certificate and key ("" = none), which override those
// in base.
func OpenRenewed(base *tls.Config, ca, cert, key string) (*Renewed, error) {
	if (cert == "") != (key == "") {
		return nil, errors.New("the certificate's file and its key's go together: give both or none")
	}
	f := &Renewed{base: base, ca: ca, cert: cert, key: key}
	if !f.named() {
		return f, nil
	}
	if err := f.read(time.Now()); err != nil {
		return nil, err
	}
	return f, nil
}

// named reports whether there are files.
func (f *Renewed) named() bool { return f.ca != "" || f.cert != "" }

// config returns the configuration of the files, read at most a second ago, or the last valid one
// if they are wrong now. The pointer changes only if the files have changed.
func (f *Renewed) config() *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.looked) >= renewedAge {
		_ = f.read(now) // files that are just being written are read again later
	}
	return f.current
}

// read reads the files and uses them if they are new and valid. The caller holds the lock, or has
// the only reference.
func (f *Renewed) read(now time.Time) error {
	f.looked = now
	sum := sha256.New()
	var ca []byte
	for _, path := range []string{f.ca, f.cert, f.key} {
		if path == "" {
			continue
		}
		text, err := ReadFile(path)
		if err != nil {
			return err
		}
		if path == f.ca {
			ca = text
		}
		fmt.Fprintf(sum, "%d\n", len(text))
		sum.Write(text)
	}
	if seen := [sha256.Size]byte(sum.Sum(nil)); f.current != nil && seen == f.seen {
		return nil
	}
	c := f.base.Clone()
	if c == nil {
		c = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if f.ca != "" {
		pool, err := ParseAuthorities(f.ca, ca)
		if err != nil {
			return err
		}
		c.RootCAs = pool
	}
	if f.cert != "" {
		own, err := Open(Files{Cert: f.cert, Key: f.key})
		if err != nil {
			return err
		}
		c.Certificates = []tls.Certificate{own.Current().Certificate}
	}
	f.current, f.seen = c, [sha256.Size]byte(sum.Sum(nil))
	return nil
}

// Transport returns a transport that calls make for a new one when the files have changed. Requests
// under way end on the old one.
func (f *Renewed) Transport(make func(*tls.Config) *http.Transport) http.RoundTripper {
	if !f.named() {
		return make(f.base)
	}
	return &renewing{files: f, make: make}
}

// renewing is the transport of a Renewed.
type renewing struct {
	files *Renewed
	make  func(*tls.Config) *http.Transport

	mu  sync.Mutex // guards the fields below
	of  *tls.Config
	now *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (r *renewing) RoundTrip(req *http.Request) (*http.Response, error) {
	return r.current().RoundTrip(req)
}

// CloseIdleConnections is called by http.Client.
func (r *renewing) CloseIdleConnections() { r.current().CloseIdleConnections() }

func (r *renewing) current() *http.Transport {
	cfg := r.files.config()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of != cfg {
		if r.now != nil {
			r.now.CloseIdleConnections()
		}
		r.of, r.now = cfg, r.make(cfg)
	}
	return r.now
}
