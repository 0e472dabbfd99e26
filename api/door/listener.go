package door

import (
	"crypto/tls"
	"net"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/internal/descriptors"
	"github.com/claimq/claimq/nodes"
)

// acceptFailureInterval is the interval at which failures to accept are logged.
const acceptFailureInterval = 10 * time.Second

// listener makes room for a connection over the bound by closing a stranger. If there is no stranger, it answers
// overloaded in JSON and closes the connection.
type listener struct {
	net.Listener
	port *Port
}

// Listen returns a listener whose connections are all *Conn.
func (p *Port) Listen(ln net.Listener) net.Listener {
	return &listener{&descriptors.Listener{
		Listener: ln,
		MakeRoom: p.strangers.makeRoom,
		Refuse: func(conn net.Conn) {
			p.turnAway(conn, "The server has no file descriptor left for another connection")
		},
		Failed: p.acceptFailed,
	}, p}
}

// acceptFailed logs the error, at most once in acceptFailureInterval, because every connection may fail.
func (p *Port) acceptFailed(err error) {
	if now := time.Now(); now.Sub(p.acceptLogged) >= acceptFailureInterval {
		p.acceptLogged = now
		p.cfg.Logger.Error("a connection cannot be accepted; others go on", "error", err)
	}
}

// Accept returns the next connection within the bound. If clients connect faster than the HTTP server ends those that
// were closed to make room, they wait.
func (l *listener) Accept() (net.Conn, error) {
	p := l.port
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if p.open.Add(1) <= int64(p.cfg.Connections) || p.strangers.makeRoom() {
			return p.accept(conn), nil
		}
		p.open.Add(-1)
		p.turnAway(conn, "The server has "+strconv.Itoa(p.cfg.Connections)+" connections open, its limit")
	}
}

// accept turns a counted connection into one of the port's.
func (p *Port) accept(conn net.Conn) *Conn {
	c := &Conn{Conn: conn, port: p}
	c.body.all, c.body.most = &p.bodies, p.cfg.BodiesBytes
	if p.cfg.TLS != nil {
		c.tls = tls.Server(conn, p.cfg.TLS)
		c.Conn = c.tls
	}
	boundUnsent(conn)
	p.slots <- struct{}{}
	p.strangers.enter(c)
	return c
}

// turnAway answers overloaded without reading a request, or with TLS just closes the connection. It does not block,
// because the answer fits into the socket's buffer.
func (p *Port) turnAway(conn net.Conn, why string) {
	f := refuse.Overloaded(nodes.BoundConnections, why)
	id := p.cfg.Answered(f)
	// With TLS this would need a handshake.
	if p.cfg.TLS == nil && conn.SetWriteDeadline(time.Now().Add(100*time.Millisecond)) == nil {
		// A client that is gone needs no answer.
		_, _ = conn.Write(plainAnswer("503 Service Unavailable", "Retry-After: "+refuse.RetryAfterS+"\r\n", f, id))
	}
	_ = conn.Close()
}

// plainAnswer returns a complete answer that does not come from the HTTP server.
func plainAnswer(status, header string, f *refuse.Refusal, id []byte) []byte {
	body := refuse.Append(nil, f, id)
	b := append([]byte(nil), "HTTP/1.1 "+status+"\r\nContent-Type: application/json\r\nConnection: close\r\n"+header+"X-Request-Id: "...)
	b = append(append(b, id...), "\r\nContent-Length: "...)
	b = append(strconv.AppendInt(b, int64(len(body)), 10), "\r\n\r\n"...)
	return append(b, body...)
}

// unsentBytes bounds the bytes that the kernel buffers for a connection and has not sent, because they count for the
// node's memory, too.
const unsentBytes = 128 << 10

// boundUnsent sets that bound for conn.
func boundUnsent(conn net.Conn) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return // it is closed
	}
	// Systems without this option buffer more.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes)
	})
}
