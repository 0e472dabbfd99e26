package peer

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

const (
	// raftCallTimeout bounds one of Raft's calls to a peer, including connecting. If it
	// were lower, a follower with a slow disk would be given up while it writes; if higher,
	// calls into a cut connection would hang on after it is restored.
	raftCallTimeout = 3 * time.Second
	// raftConnsPerPeer is the number of idle connections that Raft keeps to a peer.
	raftConnsPerPeer = 3
)

// raftLayer is the part of the peer port that Raft's network transport uses. Closing it
// closes its connections but not the port, so that a node can restart Raft with a new
// layer.
type raftLayer struct {
	port *Port
	done chan struct{} // closed by Close
	once sync.Once
}

var _ raft.StreamLayer = (*raftLayer)(nil)

// NewRaftTransport returns Raft's transport over a layer.
func NewRaftTransport(layer raft.StreamLayer, logger hclog.Logger) *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream:  layer,
		MaxPool: raftConnsPerPeer,
		Timeout: raftCallTimeout,
		Logger:  logger.Named("raft-net"),
	})
}

// StreamLayer returns a layer for one raft.NetworkTransport, which closes it. Only one
// should be open at a time, because two would share incoming connections.
func (p *Port) StreamLayer() raft.StreamLayer {
	return &raftLayer{port: p, done: make(chan struct{})}
}

// Dial opens a Raft connection to the member at address: to the node with the UUID that
// belongs there, and first to the address that this node has reported last, if that
// differs.
func (l *raftLayer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	want := l.port.cfg.TargetUUID(string(address))
	if moved := l.port.whereabouts.Of(want); moved != "" && moved != string(address) {
		// Use half of the time, because it may be at the configured address after all.
		if c, err := l.dial(moved, timeout/2, want); err == nil {
			return c, nil
		}
		timeout /= 2
	}
	return l.dial(string(address), timeout, want)
}

func (l *raftLayer) dial(addr string, timeout time.Duration, want string) (net.Conn, error) {
	ctx := l.port.ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	c, err := l.port.dial(ctx, addr, PurposeRaft, want)
	if err != nil {
		return nil, err
	}
	if !l.own(c) {
		return nil, fmt.Errorf("dial peer %s: %w", addr, net.ErrClosed)
	}
	return c, nil
}

// raftStallMax bounds how long this node waits for the next raftStallBytes of a message. If
// it were lower, a leader whose disk stalls would have to send its snapshot again; if
// higher, a follower in the middle of a snapshot would take longer to elect another leader.
const (
	raftStallMax   = 5 * time.Second
	raftStallBytes = 64 << 10
)

// Accept returns the next inbound Raft connection after its handshake, or net.ErrClosed
// once the layer or the port is closed.
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
		return &raftInbound{Conn: c, allowed: func() error { return l.port.mayOpen(l.port.ctx, PurposeRaft, c.other, hostOf(c)) }, checkedAt: time.Now()}, nil
	}
}

// Close closes the layer and its connections. It may be called more than once.
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
func (l *raftLayer) Addr() net.Addr { return hostPort(l.port.addr) }

// own makes c end with the layer. If the layer is closed already, it closes c and returns
// false.
func (l *raftLayer) own(c *peerConn) bool {
	l.port.mu.Lock()
	c.layer = l
	l.port.mu.Unlock()
	// If the layer was closed before c belonged to it, c is closed here; if after, by
	// Close.
	select {
	case <-l.done:
		_ = c.Close()
		return false
	default:
		return true
	}
}

// deliverRaft hands c to Accept. If no Raft runs it gives up after the handshake timeout,
// and the dialer tries again.
func (p *Port) deliverRaft(c *peerConn) {
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

// hostPort is an advertised host:port, which need not be an IP address.
type hostPort string

// Network returns "tcp".
func (a hostPort) Network() string { return "tcp" }

// String returns the host:port.
func (a hostPort) String() string { return string(a) }

// raftInbound is a connection for requests to this node's Raft, each answered before the
// next is read. It closes itself when a message stalls, or crawls, for raftStallMax. Raft
// reads a snapshot in its main loop and without a deadline, so a leader that is stopped or
// cut off while it sends one would leave a follower that neither votes nor stands for
// election.
//
// Reads and writes must alternate, as Raft's do.
type raftInbound struct {
	net.Conn
	inside  bool          // part of a message was read that is not answered yet
	bounded bool          // the connection has a read deadline
	left    time.Duration // if inside: time left for the next raftStallBytes
	got     int           // bytes of these so far

	// allowed returns an error if the sender's messages are no longer accepted; nil = they
	// always are.
	allowed   func() error
	checkedAt time.Time // when allowed was last called
}

// raftCheckInterval is the interval between checks whether a connection is still allowed,
// because it can outlive a membership.
const raftCheckInterval = 100 * time.Millisecond

// Read reads from the connection, without a time limit until a message begins.
func (c *raftInbound) Read(b []byte) (int, error) {
	begun := time.Now()
	if err := c.bound(begun); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if err == nil && !c.inside {
		err = c.check()
	}
	if err != nil {
		// The rest of the message must not be taken for the next one.
		_ = c.Close()
	}
	c.left -= time.Since(begun)
	if c.got += n; !c.inside || c.got >= raftStallBytes {
		c.left, c.got = raftStallMax, 0
	}
	c.inside = c.inside || n > 0
	return n, err
}

// check calls allowed at intervals of raftCheckInterval.
func (c *raftInbound) check() error {
	if c.allowed == nil {
		return nil
	}
	now := time.Now()
	if now.Sub(c.checkedAt) < raftCheckInterval {
		return nil
	}
	c.checkedAt = now
	return c.allowed()
}

// bound sets the deadline of the next read, or removes the last one.
func (c *raftInbound) bound(now time.Time) error {
	var deadline time.Time
	if c.inside {
		deadline = now.Add(c.left)
	} else if !c.bounded {
		return nil
	}
	c.bounded = c.inside
	return c.SetReadDeadline(deadline)
}

// Write writes an answer to the connection.
func (c *raftInbound) Write(b []byte) (int, error) {
	c.inside = false
	return c.Conn.Write(b)
}
