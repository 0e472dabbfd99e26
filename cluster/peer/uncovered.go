package peer

import (
	"bytes"
	"crypto/x509"
	"slices"
	"time"

	"github.com/claimq/claimq/internal/certs"
)

// The authorities may change while connections are open. A connection whose other side
// has shown a certificate that none of those of now vouches for is retired: nothing new
// is asked over it, what is under way has a moment, and then it is closed; Raft's, which
// repeats what was lost, at once. A certificate's end ends no connection: all nodes'
// might come in the same second.
//
// Who dialed with a certificate that is no longer its own retires the connection too,
// without a hurry: so the other side finds none by it when its authority goes.

const (
	// uncoveredLookInterval is how often connections are looked through.
	uncoveredLookInterval = time.Second
	// uncoveredGrace is what requests under way have to end.
	uncoveredGrace = 3 * time.Second
)

// noteShown notes what the other side of c, whose hands are shaken, has shown.
func (c *peerConn) noteShown() {
	secured := tlsOf(c.Conn)
	if secured == nil {
		return
	}
	use := x509.ExtKeyUsageClientAuth
	if secured.dialed {
		use = x509.ExtKeyUsageServerAuth
		c.own = secured.own
	}
	c.shown.Store(certs.NewShown(secured.ConnectionState().PeerCertificates, use, time.Now()))
}

// runUncovered ends connections that the authorities do not cover any more, until the
// port is closed.
func (p *Port) runUncovered() {
	ticker := time.NewTicker(uncoveredLookInterval)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			p.endUncovered(now)
		case <-p.ctx.Done():
			return
		}
	}
}

// endUncovered retires what is not covered, and closes what has been so for
// uncoveredGrace.
func (p *Port) endUncovered(now time.Time) {
	p.looking.Lock()
	defer p.looking.Unlock()
	own, authorities := p.cfg.Certificate()
	var closed []string
	for _, c := range p.shownConns() {
		covered := c.shown.Load().VouchedBy(authorities, now)
		if covered {
			c.uncoveredAt = time.Time{}
			if c.own != nil && c.why != PurposeRaft && len(own.Certificate) > 0 && !bytes.Equal(c.own, own.Certificate[0]) {
				c.retired.Store(true)
			}
			continue
		}
		c.retired.Store(true)
		if c.uncoveredAt.IsZero() {
			c.uncoveredAt = now
		}
		if c.why == PurposeRaft || now.Sub(c.uncoveredAt) >= uncoveredGrace {
			_ = c.Close()
			closed = append(closed, c.other.NodeID)
		}
	}
	p.dropRetired()
	if len(closed) > 0 {
		count := len(closed)
		slices.Sort(closed)
		p.log.Warn("closed connections with certificates that no authority of ca_file vouches for any more", "count", count, "node_ids", slices.Compact(closed))
	}
}

// shownConns returns the connections whose other side has shown a certificate.
func (p *Port) shownConns() []*peerConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	var conns []*peerConn
	for c := range p.conns {
		if c.shown.Load() != nil {
			conns = append(conns, c)
		}
	}
	return conns
}

// dropRetired sees to it that nothing new is asked over connections that are retired.
func (p *Port) dropRetired() {
	p.mu.Lock()
	pools := make([]*connPool, 0, len(p.pools))
	for _, pool := range p.pools {
		pools = append(pools, pool)
	}
	for to, s := range p.clients {
		select {
		case <-s.ready:
			if s.dialErr == nil && s.conn.retired.Load() {
				delete(p.clients, to) // it ends when its streams have
			}
		default:
		}
	}
	p.mu.Unlock()
	for _, pool := range pools {
		pool.dropRetired()
	}
}

// dropRetired closes the idle connections that are retired.
func (pool *connPool) dropRetired() {
	var retired []*pooledConn
	pool.mu.Lock()
	pool.idle = slices.DeleteFunc(pool.idle, func(c *pooledConn) bool {
		if !c.retired.Load() {
			return false
		}
		retired = append(retired, c)
		return true
	})
	pool.mu.Unlock()
	for _, c := range retired {
		_ = c.Close()
	}
}
