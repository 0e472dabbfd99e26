package cluster

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// raftLayer is the part of the peer port that Raft's network transport sees.
// Closing it ends its connections but not the port, so that a node can start
// its Raft anew with a layer of its own.
type raftLayer struct {
	port *peerPort
	done chan struct{} // closed by Close
	once sync.Once
}

var _ raft.StreamLayer = (*raftLayer)(nil)

// StreamLayer returns a layer for one raft.NetworkTransport, which closes it.
// At most one should be open at a time: two would share what comes in.
func (p *peerPort) StreamLayer() raft.StreamLayer {
	return &raftLayer{port: p, done: make(chan struct{})}
}

// Dial opens a Raft connection to the member at address: to the node with the
// UUID that belongs there, where that is known.
func (l *raftLayer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx := l.port.ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	want := ""
	if l.port.cfg.TargetUUID != nil {
		want = l.port.cfg.TargetUUID(string(address))
	}
	c, err := l.port.dial(ctx, string(address), purposeRaft, want)
	if err != nil {
		return nil, err
	}
	if !l.own(c) {
		return nil, fmt.Errorf("dial peer %s: %w", address, net.ErrClosed)
	}
	return c, nil
}

// Accept returns the next Raft connection that somebody opened, hands shaken.
// net.ErrClosed once the layer or the port is closed.
func (l *raftLayer) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, net.ErrClosed
	case <-l.port.ctx.Done():
		return nil, net.ErrClosed
	case c := <-l.port.raftConns:
		if !l.own(c) {
			return nil, net.ErrClosed
		}
		return c, nil
	}
}

// Close ends the layer and its connections. It is safe to call more than once.
func (l *raftLayer) Close() error {
	l.once.Do(func() { close(l.done) })
	l.port.mu.Lock()
	var conns []*peerConn
	for c := range l.port.conns {
		if c.layer == l {
			conns = append(conns, c)
		}
	}
	l.port.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	return nil
}

// Addr returns the advertised address of the port.
func (l *raftLayer) Addr() net.Addr { return peerAddr(l.port.addr) }

// own makes c end with the layer; false, c being closed, if that has happened.
func (l *raftLayer) own(c *peerConn) bool {
	l.port.mu.Lock()
	c.layer = l
	l.port.mu.Unlock()
	// Whoever closed the layer before c was its own did not see c; whoever
	// closes it from here on does.
	select {
	case <-l.done:
		_ = c.Close()
		return false
	default:
		return true
	}
}

// deliverRaft hands c to whoever accepts. Without a Raft that runs it gives up
// after the handshake timeout: the dialer tries again.
func (p *peerPort) deliverRaft(c *peerConn) {
	timer := time.NewTimer(p.cfg.HandshakeTimeout)
	defer timer.Stop()
	select {
	case p.raftConns <- c:
	case <-timer.C:
		_ = c.Close()
	case <-p.ctx.Done():
		_ = c.Close()
	}
}

// peerAddr is an advertised host:port, which need not be an IP address.
type peerAddr string

// Network returns "tcp".
func (a peerAddr) Network() string { return "tcp" }

// String returns the host:port.
func (a peerAddr) String() string { return string(a) }
