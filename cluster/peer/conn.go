package peer

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/claimq/claimq/internal/certs"
)

// peerConn is a connection of the peer port, in either direction, during or after its
// handshake. The port knows all of them, so that Close can close them; closing one removes
// it there.
type peerConn struct {
	net.Conn
	port *Port

	// Set once, before the connection is handed on. why and other are set with port.mu
	// held, because Recheck reads those of all connections.
	why     Purpose
	other   Hello // the node on the other side
	inbound bool  // opened by the other side

	// shown is the other side's certificate, nil without TLS and until the handshake is
	// complete; own is this side's, if it dialed. Both are set once.
	shown atomic.Pointer[certs.Shown]
	own   []byte
	// retired: no new requests may use it. uncoveredAt is since when no authority has
	// vouched for what was shown; guarded by port.looking.
	retired     atomic.Bool
	uncoveredAt time.Time

	// layer is the stream layer that the connection belongs to, or nil. Guarded by port.mu.
	layer *raftLayer

	closeOnce sync.Once
	closeErr  error
}

// Close closes the connection. It may be called more than once.
func (c *peerConn) Close() error {
	c.closeOnce.Do(func() {
		c.port.forget(c)
		c.closeErr = c.Conn.Close()
	})
	return c.closeErr
}

// closedByPeer reports whether an idle connection is visibly useless: the other side has
// closed it, or has sent unexpected data. It neither reads nor waits; false guarantees
// nothing.
func (c *peerConn) closedByPeer() bool {
	// This works with TLS, too, because TLS sends nothing on an idle connection.
	sc, ok := rawOf(c.Conn).(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	useless := true
	err = raw.Control(func(fd uintptr) {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		// Only "nothing there yet" means a healthy idle connection: no error means its end
		// or a stray byte, any other error that it is broken.
		useless = err != syscall.EAGAIN && err != syscall.EWOULDBLOCK && err != syscall.EINTR
	})
	return err != nil || useless
}

// httpConn is a peerConn whose requests are answered here, one at a time and by one
// goroutine.
type httpConn struct {
	*peerConn
	unsent  func() // called if the answer cannot be written
	written func() // called once the answer is written, or never will be
}

// OnUnsent makes fn be called if the answer certainly does not reach the other node
// completely. The last fn counts; nil removes it.
func (c *httpConn) OnUnsent(fn func()) { c.unsent = fn }

// OnWritten makes fn be called once the answer is written, or never will be.
func (c *httpConn) OnWritten(fn func()) { c.written = fn }

// over calls written, once.
func (c *httpConn) over() {
	if written := c.written; written != nil {
		c.written = nil
		written()
	}
}

// Read reads from the connection. A read means that the previous answer was written.
func (c *httpConn) Read(b []byte) (int, error) {
	c.unsent = nil
	c.over()
	return c.peerConn.Read(b)
}

// Write writes to the connection.
func (c *httpConn) Write(b []byte) (int, error) {
	n, err := c.peerConn.Write(b)
	if unsent := c.unsent; err != nil && unsent != nil {
		c.unsent = nil
		unsent()
	}
	return n, err
}

// aLongTimeAgo is a deadline that ends every wait on a connection now.
func aLongTimeAgo() time.Time { return time.Unix(1, 0) }
