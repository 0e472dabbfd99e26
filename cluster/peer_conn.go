package cluster

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// peerConn is a connection of the peer port, in either direction, after or
// during its handshake. The port knows all of them, so that Close can end
// them; closing one makes the port forget it.
type peerConn struct {
	net.Conn
	port *peerPort

	// Set once, before the connection is handed on.
	why     purpose
	other   hello // who is on the other side
	inbound bool  // the other side opened it

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
	sc, ok := c.Conn.(syscall.Conn)
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

// aLongTimeAgo is a deadline that makes every wait on a connection end now.
func aLongTimeAgo() time.Time { return time.Unix(1, 0) }
