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

// renewedAge is for how long what was read of the files of a Renewed stays in use unlooked at.
const renewedAge = time.Second

// Renewed is a client's TLS configuration whose certificates are in files that somebody else writes
// again: they expire. It is safe for concurrent use. Its zero value is the defaults, without files.
type Renewed struct {
	base          *tls.Config // the rest; nil: the defaults
	ca, cert, key string      // "": none

	mu      sync.Mutex // guards what follows
	looked  time.Time
	seen    [sha256.Size]byte // of what the files had when they were last looked at
	current *tls.Config
}

// OpenRenewed reads the files, "" = none, of authorities, certificate and key, which count over what
// base has.
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

// config returns what the files have, or had a second ago; what they had before, if they are not in
// order. It is another one only if they have changed.
func (f *Renewed) config() *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.looked) >= renewedAge {
		_ = f.read(now) // in the midst of being written they are read again
	}
	return f.current
}

// read reads the files and takes what is new and in order. The caller holds the lock, or has the only
// reference.
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

// Transport returns a transport that is made again, by a function, when the files have changed.
// Requests that are out end on the one before.
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

	mu  sync.Mutex // guards what follows
	of  *tls.Config
	now *http.Transport
}

// RoundTrip is that of http.RoundTripper.
func (r *renewing) RoundTrip(req *http.Request) (*http.Response, error) {
	return r.current().RoundTrip(req)
}

// CloseIdleConnections is what an http.Client calls.
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
