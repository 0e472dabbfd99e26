package api

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/lasting"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

const (
	// lingerTime and lingerBytes bound what is read and dropped of a body that
	// is too large, so that the client, still sending, gets to see the answer.
	lingerTime  = 2 * time.Second
	lingerBytes = 64 << 20
)

// malformed answers what is no proper HTTP request. The connection is closed
// after it.
func (s *Server) malformed(ctx *fasthttp.RequestCtx, err error) {
	id := requestID(nil, ctx.Request.Header.Peek(headerRequestID), time.Now())
	var small *fasthttp.ErrSmallBuffer
	var timeout net.Error
	f := &refuse.Refusal{Code: wire.CodeInvalidRequest, Text: "The request is not valid HTTP/1.1", Advice: "Send a well-formed request"}
	conn, _ := ctx.Conn().(*countedConn)
	denied := false // for want of a valid key
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge) && conn != nil && conn.refusal != nil:
		if f = conn.refusal; f.Code != wire.CodeOverloaded {
			s.metrics.AuthFailures.Refuse(conn.why, f)
			denied = true
		}
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		f = s.bodyTooLarge()
	case errors.As(err, &small):
		f.Text = "The request's line and headers are larger than " + strconv.Itoa(headerBytes) + " bytes"
		f.Advice = "Send shorter headers and a shorter query"
	case errors.As(err, &timeout) && timeout.Timeout():
		within := readTimeout
		if conn != nil && !conn.known {
			within = strangerTimeout
		}
		f.Text = "The request did not arrive within " + within.String()
		f.Advice = "Send the whole request at once"
	case errors.Is(err, errBodiesFull):
		f = s.bodiesFull()
	case errors.Is(err, errClientTLS):
		f.Text = "The client speaks TLS and this port speaks plain HTTP"
		f.Advice = "Use http:// in place of https://, or start the server with a certificate (--http-tls-cert-file)"
	}
	resp := &ctx.Response
	resp.Reset()
	resp.SetStatusCode(f.Code.Status())
	resp.Header.SetContentType("application/json")
	resp.Header.SetBytesV(headerRequestID, id)
	resp.SetBody(refuse.Append(nil, f, id))
	if denied {
		s.denied(ctx, conn.barred, callNone, id, time.Now())
	}
	s.counts[callNone].Count(string(f.Code))
	setRetryAfter(resp, f.Code)
	switch f.Code {
	case wire.CodeOverloaded:
		s.metrics.Overload(f.Reason)
	case wire.CodeUnauthorized:
		resp.Header.Set(fasthttp.HeaderWWWAuthenticate, keyring.Challenge)
	}
	if errors.Is(err, fasthttp.ErrBodyTooLarge) || f.Code == wire.CodeOverloaded || errors.Is(err, errClientTLS) {
		answerSender(ctx)
	}
}

func (s *Server) bodyTooLarge() *refuse.Refusal {
	return refuse.TooLarge("", "The body is larger than "+strconv.Itoa(s.cfg.Limits.BodyBytes)+" bytes")
}

// answerSender answers a client that is still sending its body: it sends the
// answer, ends its own side of the connection, and reads and drops what the
// client sends, within bounds. Closing at once would reset the connection, and
// the client would never see the answer. What the HTTP server writes after
// this goes nowhere.
func answerSender(ctx *fasthttp.RequestCtx) {
	conn, ok := ctx.Conn().(*countedConn)
	if !ok || conn.SetDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	conn.body.streamed = true
	ctx.Response.SetConnectionClose()
	if _, err := ctx.Response.WriteTo(conn); err != nil || conn.closeWrite() != nil {
		return
	}
	// However it ends, the answer is sent.
	_, _ = io.Copy(io.Discard, io.LimitReader(conn, lingerBytes))
}

// boundedListener closes a stranger for a connection over the bound or, if there is
// none, answers it with overloaded, in JSON, and closes it.
type boundedListener struct {
	net.Listener
	server *Server
}

// Accept returns the next connection within the bound.
func (l *boundedListener) Accept() (net.Conn, error) {
	open := &l.server.open
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if open.Add(1) <= int64(l.server.cfg.Connections) || l.server.strangers.makeRoom() {
			c := &countedConn{Conn: conn, open: open, server: l.server}
			c.body.all, c.body.most = &l.server.bodies, l.server.cfg.BodiesBytes
			if l.server.cfg.TLS != nil {
				c.tls = tls.Server(conn, l.server.cfg.TLS)
				c.Conn = c.tls
			}
			boundUnsent(conn)
			l.server.strangers.enter(c)
			return c, nil
		}
		open.Add(-1)
		l.server.turnAway(conn)
	}
}

// countedConn counts itself out when it is closed, and releases the claims
// whose answer it could not write.
type countedConn struct {
	net.Conn
	open *atomic.Int64
	once sync.Once

	// The claims of the answer that is not written yet, and who releases them.
	// Only the goroutine that serves the connection touches these and what
	// follows.
	unsent unsent
	server *Server

	reading, writing lazyDeadline

	body   bodyShare
	answer atomic.Int64 // what answers have taken of the server's room; anybody may close
	heard  bool         // anything was read
	// known says that this is no stranger. refusal is what a body is refused with
	// for the head before it, nil: it is too large for anybody.
	known     bool
	crowded   bool // the key that it showed has too many connections
	refusal   *refuse.Refusal
	why       keyring.Failure // of a refusal for want of a valid key
	barred    *keyring.Caller // the key of such a refusal, nil: it is not known
	place     strangerPlace   // its strangers guard it
	share     lasting.Conn    // of its key's connections
	uncovered atomic.Bool     // no authority vouches any more for what its client has shown
	tls       *tls.Conn       // whose hands are not shaken yet; nil once they are, or without TLS
}

// Close closes the connection; twice is safe.
func (c *countedConn) Close() error {
	if c.server != nil {
		c.server.strangers.leave(c)
		c.server.shown.leave(c)
		c.server.shares.Leave(&c.share)
	}
	c.countOut()
	c.body.give()
	c.answerTaken()
	return c.Conn.Close()
}

// countOut counts the connection out, once.
func (c *countedConn) countOut() { c.once.Do(func() { c.open.Add(-1) }) }

// socket returns the connection beneath TLS.
func (c *countedConn) socket() net.Conn {
	if wrapped, ok := c.Conn.(interface{ NetConn() net.Conn }); ok {
		return wrapped.NetConn()
	}
	return c.Conn
}

// closeWrite ends the sending side, if the connection has two sides.
func (c *countedConn) closeWrite() error {
	if tcp, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return tcp.CloseWrite()
	}
	return errors.ErrUnsupported
}

// turnAway answers overloaded without reading a request, or just closes a
// connection that is to be TLS. The answer fits into the socket's buffer, so this
// does not wait.
func (s *Server) turnAway(conn net.Conn) {
	id := requestID(nil, nil, time.Now())
	f := refuse.Because(wire.CodeOverloaded)
	f.Reason = fsm.Reason(fsm.BoundConnections)
	f.Text = "The server has " + strconv.Itoa(s.cfg.Connections) + " connections open, its limit"
	// Within TLS it could only be told after a handshake.
	if s.cfg.TLS == nil && conn.SetWriteDeadline(time.Now().Add(100*time.Millisecond)) == nil {
		// A client that is gone needs no answer.
		_, _ = conn.Write(plainAnswer("503 Service Unavailable", "Retry-After: "+refuse.RetryAfterS+"\r\n", f, id))
	}
	_ = conn.Close()
	s.counts[callNone].Count(string(f.Code))
	s.metrics.Overload(f.Reason)
}
