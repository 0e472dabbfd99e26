package door

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/refuse"
)

// Conn is a connection of the port. It uncounts itself when it is closed, and tells whether an answer was delivered.
type Conn struct {
	net.Conn
	port *Port
	once sync.Once // of countOut
	gone atomic.Bool

	// Fields without other protection belong to the goroutine that serves the connection.
	Head Head // of the request under way

	delivered        atomic.Pointer[func(ok bool)] // told of the answer under way; any goroutine may close
	reading, writing lazyDeadline
	body             bodyShare
	answer           atomic.Int64 // reserved in Port.Answers; any goroutine may close
	written          []byte       // the buffer of the answer under way; nil: not for reuse
	plain            plainness    // of an answer that ends with the connection
	heard            bool         // anything was read
	known            bool         // it is not a stranger
	place            strangerPlace
	share            ShareConn // of its key's connections
	ends             time.Time // see Ends
	tls              *tls.Conn // before the TLS handshake; nil afterwards, or without TLS
}

// Head holds the decisions made from the head of a request, before its body.
type Head struct {
	Crowded bool // its key has too many connections
	// Refusal is the refusal of its body; nil: the body is too large in any case.
	Refusal *refuse.Refusal
	Why     Failure // of a refusal because of the key
	Barred  *Caller // the key of such a refusal, nil: unknown
}

// HeadCame notes that the head of a request was read. Bytes written before Received are not an answer, but ask the
// client for the body.
func (c *Conn) HeadCame() {
	c.Head = Head{}
	c.body.due = true
}

// Received notes that the request was read to its end, so that bytes written from here on are its answer.
func (c *Conn) Received() { c.body.due = false }

// OnDelivered makes fn be called once with whether the answer that is about to be written could be, before the
// failed write returns or the next request is read.
func (c *Conn) OnDelivered(fn func(ok bool)) { c.delivered.Store(&fn) }

// tellDelivered tells whether the answer under way was delivered, if that is wanted.
func (c *Conn) tellDelivered(ok bool) {
	if c.delivered.Load() == nil {
		return
	}
	if fn := c.delivered.Swap(nil); fn != nil {
		(*fn)(ok)
	}
}

// Known reports whether the connection is no longer a stranger.
func (c *Conn) Known() bool { return c.known }

// Admit notes that the connection is no longer a stranger.
func (c *Conn) Admit() {
	c.known = true
	c.port.strangers.leave(c)
}

// CountFor counts the connection for the first key that it has shown. ok is false if the key has too many.
func (c *Conn) CountFor(who *Caller) (ok bool) { return c.port.cfg.Shares.Enter(&c.share, who) }

// ExpectBody counts a body of n bytes that will be read. It returns false if there is no room for it.
func (c *Conn) ExpectBody(n int) bool { return c.body.expect(n) }

// StreamBody notes that bytes read from here on are not kept.
func (c *Conn) StreamBody() { c.body.streamed = true }

// HoldAnswer keeps n bytes of Port.Answers reserved until the answer is written.
func (c *Conn) HoldAnswer(n int64) { c.answer.Add(n) }

// Reuse offers the buffer of the answer under way to other answers once it is written, because the HTTP server does
// not keep it.
func (c *Conn) Reuse(buffer []byte) { c.written = buffer }

// Answered notes that the previous answer has been written, because a new request was read.
func (c *Conn) Answered() {
	c.Received()
	c.tellDelivered(true)
	c.answerTaken()
	if !c.known {
		c.port.strangers.answered(c)
	}
}

// Lend returns the underlying connection, for code that sets its deadlines from other goroutines. Return must follow.
func (c *Conn) Lend() net.Conn { return c.Conn }

// Plain notes that the next answer goes to a client of HTTP/1.0, which does not support chunks: the header is sent
// without Transfer-Encoding, the body must be written to the result of Lend, and later writes of the HTTP server are
// discarded. The connection must be closed then.
func (c *Conn) Plain() { c.plain = plainHead }

// plainness is the progress of an answer without chunks.
type plainness int

const (
	plainHead plainness = iota + 1 // its header comes next
	plainBody                      // further writes of the HTTP server are discarded
)

// chunkedField is the header by which the HTTP server announces chunks.
const chunkedField = "Transfer-Encoding: chunked\r\n"

// writePlain is Write for an answer without chunks.
func (c *Conn) writePlain(b []byte) (int, error) {
	if c.plain == plainHead {
		c.plain = plainBody
		head := append([]byte(nil), b...)
		if at := bytes.LastIndex(head, []byte(chunkedField)); at >= 0 {
			head = append(head[:at], head[at+len(chunkedField):]...)
		}
		if _, err := c.writePieces(head); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// Return ends Lend. within is the time for writing the end of the answer.
func (c *Conn) Return(within time.Duration) {
	c.reading.forget()
	c.writing.forget()
	_ = c.SetWriteDeadline(time.Now().Add(within))
}

// ReadingMoved notes that the read deadline was set otherwise.
func (c *Conn) ReadingMoved() { c.reading.forget() }

// Farewell answers a client that may still be sending: it sends the answer, closes its sending side, and reads
// and discards what the client sends, within bounds. Closing at once would reset the connection, so that the client
// might not get the answer. Later writes are discarded.
func (c *Conn) Farewell(answer io.WriterTo) {
	if c.SetDeadline(time.Now().Add(LingerTime)) != nil {
		return
	}
	c.StreamBody()
	c.Reuse(nil) // the HTTP server writes the answer once more; that is discarded
	if _, err := answer.WriteTo(c); err != nil || c.CloseWrite() != nil {
		return
	}
	// The answer is sent, however this ends.
	_, _ = io.Copy(io.Discard, io.LimitReader(c, LingerBytes))
}

// Close closes the connection. It may be called twice and from any goroutine.
func (c *Conn) Close() error {
	c.port.strangers.leave(c)
	c.port.cfg.Shares.Leave(&c.share)
	c.countOut()
	c.body.give()
	c.answerTaken()
	c.tellDelivered(true) // no write has failed
	if !c.gone.Swap(true) {
		defer func() { <-c.port.slots }()
	}
	return c.Conn.Close()
}

// countOut uncounts the connection, once.
func (c *Conn) countOut() { c.once.Do(func() { c.port.open.Add(-1) }) }

// answerTaken frees the memory of the connection's answers, which were written or never will be.
func (c *Conn) answerTaken() {
	if c.answer.Load() > 0 {
		c.port.Answers.Free(c.answer.Swap(0))
	}
}

// Ends returns when the connection of a client with a certificate is too old: the next answer is its last, and its
// streams end. This bounds how long a client can use an open connection after its certificate's authority was removed.
// It is zero for clients without a certificate.
func (c *Conn) Ends() time.Time { return c.ends }

// Over reports whether the connection is too old.
func (c *Conn) Over() bool { return !c.ends.IsZero() && !time.Now().Before(c.ends) }

// TLS reports whether the connection uses TLS.
func (c *Conn) TLS() bool {
	_, ok := c.Conn.(*tls.Conn)
	return ok
}

// socket returns the connection beneath TLS.
func (c *Conn) socket() net.Conn {
	if wrapped, ok := c.Conn.(interface{ NetConn() net.Conn }); ok {
		return wrapped.NetConn()
	}
	return c.Conn
}

// CloseWrite closes the sending side, if the connection supports that.
func (c *Conn) CloseWrite() error {
	if tcp, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return tcp.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Read reads from the connection. When the server reads again, the previous answer was written (or further requests
// were buffered, and claims are left to their leases). A Write that fails from here on concerns something else, such
// as "100 Continue", and the worker has its claims.
func (c *Conn) Read(b []byte) (int, error) {
	c.tellDelivered(true)
	c.answerTaken()
	if c.written != nil {
		c.port.Buffers.Put(c.written)
		c.written = nil
	}
	if !c.heard {
		defer c.endUnasked()()
	}
	if c.tls != nil {
		if err := c.handshake(); err != nil {
			return 0, err
		}
	}
	if !c.body.hold(len(b)) {
		return 0, ErrBodiesFull
	}
	if err := c.reading.apply(net.Conn.SetReadDeadline, c.Conn); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if !c.heard && n > 0 && b[0] == firstByteTLS && c.port.cfg.TLS == nil {
		return 0, ErrClientTLS
	}
	c.heard = c.heard || n > 0
	if !c.heard && errors.Is(err, os.ErrDeadlineExceeded) {
		// Some clients open more connections than they use. Such a connection gets no answer, because Go's client
		// logs unsolicited ones.
		return 0, io.EOF
	}
	if !c.body.take(n) {
		return 0, ErrBodiesFull
	}
	return n, err
}

// endUnasked aborts a Read when the server drains, until stop is called, because the HTTP server closes idle
// connections only after their first request.
func (c *Conn) endUnasked() (stop func()) {
	unhook := context.AfterFunc(c.port.cfg.Serving, func() {
		_ = c.Conn.SetReadDeadline(time.Unix(0, 1)) // it fails if the connection is closed
	})
	return func() {
		if !unhook() {
			c.reading.forget()
		}
	}
}

// Write writes to the connection. If that fails, the answer was not delivered.
func (c *Conn) Write(b []byte) (int, error) {
	c.body.answered()
	if c.plain != 0 {
		return c.writePlain(b)
	}
	n, err := c.writePieces(b)
	if err != nil {
		c.tellDelivered(false)
	}
	return n, err
}

// writePieces writes b in pieces. The client must read each piece in time, and all of them at a minimum rate.
func (c *Conn) writePieces(b []byte) (n int, err error) {
	var until time.Time // zero: b is a single piece, and its deadline is noted
	if len(b) > writePiece {
		until = time.Now().Add(WriteTimeout + time.Duration(len(b))*time.Second/writeRate)
	}
	for {
		if err := c.writing.apply(net.Conn.SetWriteDeadline, c.Conn); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(b[n:min(n+writePiece, len(b))])
		if n += m; err != nil || n == len(b) {
			return n, err
		}
		next := time.Now().Add(WriteTimeout)
		if next.After(until) {
			next = until
		}
		c.writing.wanted = next
	}
}
