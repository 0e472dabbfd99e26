package port

import (
	"crypto/x509"
	"sync"
	"time"

	"github.com/claimq/claimq/internal/certs"
)

// The authorities for client certificates may change while connections are open. A connection whose client
// certificate is no longer signed by any of them gets one more answer and is closed. The expiry of a certificate
// closes no connection.

const (
	// uncoveredLookInterval is the interval of the check.
	uncoveredLookInterval = time.Second
	// UncoveredGrace is the time that a request under way has to finish.
	UncoveredGrace = 3 * time.Second
)

// shownConns are the connections with client certificates. The zero value is ready. It is safe for concurrent use.
type shownConns struct {
	mu    sync.Mutex
	conns map[*Conn]*shownConn
}

// shownConn is one of them, guarded by the mutex of its shownConns.
type shownConn struct {
	*certs.Shown
	uncoveredAt time.Time // since when no authority vouches for it
}

// enter adds a connection after the TLS handshake.
func (s *shownConns) enter(c *Conn, chain []*x509.Certificate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.conns = make(map[*Conn]*shownConn)
	}
	s.conns[c] = &shownConn{Shown: certs.NewShown(chain, x509.ExtKeyUsageClientAuth, time.Now())}
}

// leave removes a connection. It may be called twice.
func (s *shownConns) leave(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// uncovered marks the connections whose certificates no authority vouches for, and returns those for which that has
// been so for UncoveredGrace.
func (s *shownConns) uncovered(authorities *x509.CertPool, now time.Time) (over []*Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, shown := range s.conns {
		switch {
		case shown.VouchedBy(authorities, now):
			shown.uncoveredAt = time.Time{}
			c.uncovered.Store(false)
		case shown.uncoveredAt.IsZero():
			shown.uncoveredAt = now
			c.uncovered.Store(true)
		case now.Sub(shown.uncoveredAt) >= UncoveredGrace:
			over = append(over, c)
		}
	}
	return over
}

// Shown returns the number of connections with client certificates, and how many of these no authority vouches for.
func (p *Port) Shown() (all, uncovered int) {
	p.shown.mu.Lock()
	defer p.shown.mu.Unlock()
	for _, c := range p.shown.conns {
		if !c.uncoveredAt.IsZero() {
			uncovered++
		}
	}
	return len(p.shown.conns), uncovered
}

// CloseUncovered closes uncovered connections until stop is called, which waits for the end.
func (p *Port) CloseUncovered() (stop func()) {
	if p.cfg.ClientAuthorities == nil {
		return func() {}
	}
	ended := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		ticker := time.NewTicker(uncoveredLookInterval)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				p.EndUncovered(now)
			case <-ended:
				return
			}
		}
	})
	return func() {
		close(ended)
		looking.Wait()
	}
}

// EndUncovered checks all connections once. While clients need no certificate, none is closed.
func (p *Port) EndUncovered(now time.Time) {
	authorities := p.cfg.ClientAuthorities()
	if authorities == nil {
		return
	}
	over := p.shown.uncovered(authorities, now)
	for _, c := range over {
		_ = c.socket().Close() // the goroutine that serves it notices, and uncounts it
		p.shown.leave(c)
	}
	if len(over) > 0 {
		p.cfg.Logger.Warn("closed connections with certificates that no authority of client_ca_file vouches for any more", "count", len(over))
	}
}

// Uncovered reports whether no authority now vouches for the connection's client; then the next answer is its last.
func (c *Conn) Uncovered() bool { return c.uncovered.Load() }
