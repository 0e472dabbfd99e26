package api

import (
	"crypto/x509"
	"sync"
	"time"

	"github.com/claimq/claimq/internal/certs"
)

// The authorities of clients may change while connections are open. A connection whose
// client has shown a certificate that none of those of now vouches for gets one more
// answer, and is closed. A certificate's end ends no connection.

const (
	// uncoveredLookInterval is how often connections are looked through.
	uncoveredLookInterval = time.Second
	// uncoveredGrace is what a request under way has to end.
	uncoveredGrace = 3 * time.Second
)

// shownConns are the connections whose clients have shown a certificate. The zero
// value is ready. It is safe for concurrent use.
type shownConns struct {
	mu    sync.Mutex
	conns map[*countedConn]*shownConn
}

// shownConn is one of them. Guarded by the mutex of its shownConns.
type shownConn struct {
	*certs.Shown
	uncoveredAt time.Time // since when no authority vouches for it
}

// enter notes a connection whose hands are shaken.
func (s *shownConns) enter(c *countedConn, chain []*x509.Certificate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.conns = make(map[*countedConn]*shownConn)
	}
	s.conns[c] = &shownConn{Shown: certs.NewShown(chain, x509.ExtKeyUsageClientAuth, time.Now())}
}

// leave forgets a connection; twice is safe.
func (s *shownConns) leave(c *countedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// uncovered marks the connections that authorities do not vouch for, and returns those
// of which that is so for uncoveredGrace.
func (s *shownConns) uncovered(authorities *x509.CertPool, now time.Time) (over []*countedConn) {
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
		case now.Sub(shown.uncoveredAt) >= uncoveredGrace:
			over = append(over, c)
		}
	}
	return over
}

// runUncovered closes connections that the authorities do not cover any more until
// stop is called, which waits for that.
func (s *Server) runUncovered() (stop func()) {
	if s.cfg.ClientAuthorities == nil {
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
				s.endUncovered(now)
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

// endUncovered looks at all connections once. While clients need no certificate none
// is closed.
func (s *Server) endUncovered(now time.Time) {
	authorities := s.cfg.ClientAuthorities()
	if authorities == nil {
		return
	}
	over := s.shown.uncovered(authorities, now)
	for _, c := range over {
		_ = c.socket().Close() // who serves it notices, and counts it out
		s.shown.leave(c)
	}
	if len(over) > 0 {
		s.logger.Warn("closed connections with certificates that no authority of client_ca_file vouches for any more", "count", len(over))
	}
}

// closeUncovered makes the answer to be the connection's last if its client is not
// covered any more.
func (r *request) closeUncovered() {
	if conn, ok := r.http.Conn().(*countedConn); ok && conn.uncovered.Load() {
		r.http.SetConnectionClose()
	}
}
