package peer

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/claimq/claimq/internal/certs"
)

// peerConn is a connection of the peer port, in either direction, after or
// during its handshake. The port knows all of them, so that Close can end
// them; closing one makes the port forget it.
type peerConn struct {
	net.Conn
	port *Port

	// Set once, before the connection is handed on; why and other with port.mu held, as
	// Recheck reads those of all.
	why     Purpose
	other   Hello // who is on the other side
	inbound bool  // the other side opened it

	// shown is what the other side has shown, nil without TLS and until hands are shaken;
	// own, what this side has, if it dialed. Both are set once.
	shown atomic.Pointer[certs.Shown]
	own   []byte
	// retired: nothing new is to be asked over it. uncoveredAt is since when no
	// authority vouches for what was shown; guarded by port.looking.
	retired     atomic.Bool
	uncoveredAt time.Time

	// layer is the stream layer that the connection belongs to, nil for none.
	// Guarded by port.mu.
	layer *raftLayer

	closeOnce sync.Once
	closeErr  error
}

// Close ends the connection. It is safe to call more than once.
func (c *peerConn) Close() error {
	c.closeOnce.Do(func() {
		c.port.forget(c)
		c.closeErr = c.Conn.Close()
	})
	return c.closeErr
}

// closedByPeer reports whether an idle connection can be seen to be of no use:
// the other side has closed it, or has sent what nobody asked for. It looks
// without reading and without waiting; false is no promise.
func (c *peerConn) closedByPeer() bool {
	// With TLS too: nobody sends anything of TLS's own on an idle connection.
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
		// Only "nothing there yet" is a healthy idle connection: no error means
		// its end or a stray byte, anything else that it is broken.
		useless = err != syscall.EAGAIN && err != syscall.EWOULDBLOCK && err != syscall.EINTR
	})
	return err != nil || useless
}

// httpConn is a peerConn whose requests are answered here, one at a time and by
// one goroutine.
type httpConn struct {
	*peerConn
	unsent  func() // what is to be done if the answer cannot be written
	written func() // what is to be done once it is written, or never will be
}

// OnUnsent has fn called if the answer certainly does not reach the other node
// whole. The last fn counts; nil takes it back.
func (c *httpConn) OnUnsent(fn func()) { c.unsent = fn }

// OnWritten has fn called once the answer is written, or never will be.
func (c *httpConn) OnWritten(fn func()) { c.written = fn }

// over says that the answer is written, or never will be.
func (c *httpConn) over() {
	if written := c.written; written != nil {
		c.written = nil
		written()
	}
}

// Read reads from the connection. Who reads on has written the answer before.
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

// aLongTimeAgo is a deadline that makes every wait on a connection end now.
func aLongTimeAgo() time.Time { return time.Unix(1, 0) }
