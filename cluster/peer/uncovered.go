package peer

import (
	"bytes"
	"crypto/x509"
	"slices"
	"time"

	"github.com/claimq/claimq/internal/certs"
)

// The authorities may change while connections are open. If no current authority vouches
// for the certificate of a connection's other side, the connection is retired: no new
// requests use it, those under way have a moment, and then it is closed. Raft's connections
// are closed at once, because Raft repeats what was lost. The expiry of a certificate
// closes no connection, because all nodes' might expire in the same second.
//
// A connection that was dialed with a certificate that is no longer this node's own is
// retired as well, without closing it soon, so that the other side has none with the old
// certificate when its authority is removed.

const (
	// uncoveredLookInterval is the interval between checks of the connections.
	uncoveredLookInterval = time.Second
	// uncoveredGrace bounds the time for which requests under way may continue.
	uncoveredGrace = 3 * time.Second
)

// noteShown records the certificate of c's other side, after the handshake.
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

// runUncovered closes connections that the authorities no longer cover, until the port is
// closed.
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

// endUncovered retires connections that are not covered, and closes those that have not
// been for uncoveredGrace.
func (p *Port) endUncovered(now time.Time) {
	p.looking.Lock()
	defer p.looking.Unlock()
	own, authorities := p.cfg.Certificate()
	var closed []string
	for _, c := range p.shownConns() {
		covered := c.shown.Load().VouchedBy(authorities, now)
		if covered {
			c.uncoveredAt = time.Time{}
			if c.own != nil && c.purpose != PurposeRaft && len(own.Certificate) > 0 && !bytes.Equal(c.own, own.Certificate[0]) {
				c.retired.Store(true)
			}
			continue
		}
		c.retired.Store(true)
		if c.uncoveredAt.IsZero() {
			c.uncoveredAt = now
		}
		if c.purpose == PurposeRaft || now.Sub(c.uncoveredAt) >= uncoveredGrace {
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

// dropRetired ensures that no new requests use retired connections.
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
				delete(p.clients, to) // it ends when its streams have ended
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
