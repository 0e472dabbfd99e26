package door

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watchAfter is the time that a request has to wait before its connection is watched. On a busy system most claims
// are answered sooner, so that they cost only a timer.
const watchAfter = 20 * time.Millisecond

// ErrGone is the cause of a caller's context when its connection, or at least the client's sending side, is closed.
var ErrGone = errors.New("the client has closed its connection")

// connWatch notices that the peer has closed a connection while it is not being read. A client that has closed only
// its sending side counts as gone: TCP cannot tell the difference, and a client that waits for an answer has no
// reason to do it. Bytes that the client sends meanwhile stay unread.
type connWatch struct {
	conn  net.Conn
	raw   syscall.RawConn
	gone  context.CancelCauseFunc // called with ErrGone, possibly twice
	timer *time.Timer
	done  chan struct{} // closed when the watching, if it began, is over

	mu    sync.Mutex
	ended bool
}

// watch watches conn until end is called, which must be before conn is read. It returns nil if conn cannot be
// watched.
func watch(conn net.Conn, gone context.CancelCauseFunc) *connWatch {
	for {
		if sc, ok := conn.(syscall.Conn); ok {
			raw, err := sc.SyscallConn()
			if err != nil {
				return nil
			}
			w := &connWatch{conn: conn, raw: raw, gone: gone, done: make(chan struct{})}
			w.timer = time.AfterFunc(watchAfter, w.run)
			return w
		}
		wrapped, ok := conn.(interface{ NetConn() net.Conn }) // as TLS is
		if !ok {
			return nil
		}
		conn = wrapped.NetConn()
	}
}

// Watch watches the connection until end is called, which must be before it is read. When the client has gone, gone
// is called with ErrGone, possibly twice. end is nil if the connection cannot be watched.
func (c *Conn) Watch(gone context.CancelCauseFunc) (end func()) {
	w := watch(c.Conn, gone)
	if w == nil {
		return nil
	}
	return func() {
		w.end()
		c.reading.forget()
	}
}

// run waits in the runtime's poller, which wakes it on every event, until the connection is closed or end moves the
// deadline.
func (w *connWatch) run() {
	defer close(w.done)
	if !w.begin() {
		return
	}
	if err := w.raw.Read(hungUp); errors.Is(err, os.ErrDeadlineExceeded) {
		return // ended; end checks once more
	}
	w.gone(ErrGone)
}

// begin clears the read deadline of the request. It returns false if end was called.
func (w *connWatch) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	_ = w.conn.SetReadDeadline(time.Time{}) // it fails if this side has closed the connection, and then Read does, too
	return true
}

// end ends the watching and waits for it; a close by the peer before that is noticed. If the watching had begun, the
// connection has no read deadline afterwards.
func (w *connWatch) end() {
	if !w.timer.Stop() {
		w.mu.Lock()
		w.ended = true
		// An error means that the connection is closed, which ends the watching, too.
		_ = w.conn.SetReadDeadline(time.Unix(1, 0))
		w.mu.Unlock()
		<-w.done
		_ = w.conn.SetReadDeadline(time.Time{})
	}
	gone := true
	if err := w.raw.Control(func(fd uintptr) { gone = hungUp(fd) }); err != nil || gone {
		w.gone(ErrGone)
	}
}

// hungUp reports whether the peer of a socket will send no more, without reading what it has sent.
func hungUp(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: pollGone}} //nolint:gosec // a descriptor is an int32
	for {
		n, err := unix.Poll(fds, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err != nil || n > 0
	}
}
