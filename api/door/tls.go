package door

import (
	"container/list"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// HandshakesMax bounds the handshakes under way. If there is one more, the oldest is cut off, because that is
// more likely a silent stranger than a client, which needs only a few round trips.
const HandshakesMax = 1_024

// ErrClientTLS is returned when a client uses TLS on a port without it.
var ErrClientTLS = errors.New("the client speaks TLS and this port does not")

// firstByteTLS is the first byte of a TLS client; no HTTP request begins with it.
const firstByteTLS = 0x16

// handshakes are the TLS handshakes under way on a server. The zero value is ready. It is safe for concurrent use.
type handshakes struct {
	mu     sync.Mutex
	conns  list.List // of net.Conn, the oldest first
	failed Sampled
}

// begin counts a handshake on conn, and cuts off the oldest one if there are too many. end must follow.
func (h *handshakes) begin(conn net.Conn) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	place := h.conns.PushBack(conn)
	if h.conns.Len() > HandshakesMax {
		oldest := h.conns.Front()
		_ = oldest.Value.(net.Conn).Close() // its goroutine notices
		h.conns.Remove(oldest)
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.conns.Remove(place) // no effect if it was cut off
	}
}

// Handshakes returns the number of TLS handshakes under way.
func (p *Port) Handshakes() int {
	p.handshakes.mu.Lock()
	defer p.handshakes.mu.Unlock()
	return p.handshakes.conns.Len()
}

// handshake does the TLS handshake before the first byte of a connection is read. An error ends the connection; a client
// that uses plain HTTP has been answered.
func (c *Conn) handshake() error {
	secured, p := c.tls, c.port
	c.tls = nil
	raw := secured.NetConn()
	defer p.handshakes.begin(raw)()
	err := raw.SetDeadline(time.Now().Add(p.cfg.HandshakeTimeout))
	if err == nil && p.cfg.Serving.Err() == nil { // only endUnasked ends reads when the server drains
		err = secured.Handshake()
	}
	if err == nil {
		err = raw.SetDeadline(time.Time{})
	}
	if p.cfg.Serving.Err() != nil {
		return io.EOF
	}
	if err == nil {
		if len(secured.ConnectionState().PeerCertificates) > 0 {
			c.ends = time.Now().Add(p.cfg.ConnAge)
		}
		return nil
	}
	var noTLS tls.RecordHeaderError
	if errors.As(err, &noTLS) && noTLS.Conn != nil && looksLikeHTTP(noTLS.RecordHeader[:]) {
		p.answerPlain(raw)
		return io.EOF
	}
	_ = raw.Close()
	var remote *net.OpError
	var verification *tls.CertificateVerificationError
	told := errors.As(err, &verification) || errors.As(err, &remote) && remote.Op == "remote error"
	if !told && !isNoCertificate(err) {
		// Port scans, probes that only connect, clients that gave up.
		p.cfg.Logger.Debug("a TLS handshake was not finished", "remote_addr", raw.RemoteAddr(), "error", err)
	} else if quiet, ok := p.handshakes.failed.MayLog(time.Now()); ok {
		p.cfg.Logger.Warn("refused a TLS connection", "remote_addr", raw.RemoteAddr(), "error", err, "more_not_logged", quiet)
	}
	return io.EOF
}

// isNoCertificate reports whether the client has not sent a required certificate.
func isNoCertificate(err error) bool {
	return err.Error() == "tls: client didn't provide a certificate" // crypto/tls exports no value for it
}

// looksLikeHTTP reports whether b are the first bytes of an HTTP request.
func looksLikeHTTP(b []byte) bool {
	for _, method := range []string{"GET /", "HEAD ", "POST ", "PUT /", "DELET", "PATCH", "OPTIO"} {
		if string(b) == method {
			return true
		}
	}
	return false
}

// answerPlain tells a client that uses plain HTTP what to do, and closes the connection once the client has read
// that.
func (p *Port) answerPlain(raw net.Conn) {
	defer raw.Close()
	f := refuse.New(wire.CodeInvalidRequest, "This port speaks HTTPS and the request was plain HTTP", "Use https:// in place of http://")
	id := p.cfg.Answered(f)
	if raw.SetDeadline(time.Now().Add(LingerTime)) != nil {
		return
	}
	if _, err := raw.Write(plainAnswer("400 Bad Request", "", f, id)); err != nil {
		return
	}
	if half, ok := raw.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(raw, LingerBytes)) // otherwise a reset might overtake the answer
	}
}
