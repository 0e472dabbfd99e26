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

	// Set once, before the connection is handed on; purpose and other with port.mu held,
	// because Recheck reads those of all connections.
	purpose Purpose
	other   Hello // the node on the other side
	inbound bool  // opened by the other side

	// shown is the other side's certificate, nil without TLS and until the handshake is
	// complete; own is this side's, if it dialed. Both are set once.
	shown atomic.Pointer[certs.Shown]
	own   []byte
	// retired is true if no new requests may use it. uncoveredAt is since when no authority
	// has vouched for the certificate shown; guarded by port.looking.
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

// aLongTimeAgo is a deadline that ends every wait on a connection now.
func aLongTimeAgo() time.Time { return time.Unix(1, 0) }
