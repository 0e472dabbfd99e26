package port

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/lasting"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/fsm/command"
)

// Conn is a connection of the port. It uncounts itself when it is closed, and has claims released whose answer it
// could not write.
type Conn struct {
	net.Conn
	port *Port
	once sync.Once

	// Fields without other protection belong to the goroutine that serves the connection.
	Head Head // of the request under way

	unsent           Unsent
	reading, writing lazyDeadline
	body             bodyShare
	answer           atomic.Int64 // room taken by answers; any goroutine may close
	written          []byte       // the buffer of the answer under way; nil: not for reuse
	plain            plainness    // of an answer that ends with the connection
	heard            bool         // anything was read
	known            bool         // it is not a stranger
	place            strangerPlace
	share            lasting.Conn // of its key's connections
	uncovered        atomic.Bool  // no authority now vouches for its client's certificate
	tls              *tls.Conn    // before the TLS handshake; nil afterwards, or without TLS
}

// Head holds the decisions made from the head of a request, before its body.
type Head struct {
	Crowded bool // its key has too many connections
	// Refusal is the refusal of its body; nil: the body is too large in any case.
	Refusal *refuse.Refusal
	Why     keyring.Failure // of a refusal because of the key
	Barred  *keyring.Caller // the key of such a refusal, nil: unknown
}

// Unsent are the claims of an answer that may not arrive, and the caller that made them, because a leader that
// requires keys lets only that caller release them.
type Unsent struct {
	Holds []command.Hold
	Key   []byte // as sent by the client, empty: none
	Known bool   // this node knows the key
	From  netip.Addr
}

// HeadCame notes that the head of a request was read. Bytes written before Received are not an answer, but ask the
// client for the body.
func (c *Conn) HeadCame() {
	c.Head = Head{}
	c.body.due = true
}

// Received notes that the request was read to its end, so that bytes written from here on are its answer.
func (c *Conn) Received() { c.body.due = false }

// Unsent returns where to put the claims of the answer that is about to be written; they are released if that fails.
func (c *Conn) Unsent() *Unsent { return &c.unsent }

// Known reports whether the connection is no longer a stranger.
func (c *Conn) Known() bool { return c.known }

// Admit notes that the connection is no longer a stranger.
func (c *Conn) Admit() {
	c.known = true
	c.port.strangers.leave(c)
}

// CountFor counts the connection for the first key that it has shown. ok is false if the key has too many.
func (c *Conn) CountFor(who *keyring.Caller) (ok bool) { return c.port.cfg.Shares.Enter(&c.share, who) }

// ExpectBody counts a body of n bytes that will be read. It returns false if there is no room for it.
func (c *Conn) ExpectBody(n int) bool { return c.body.expect(n) }

// StreamBody notes that bytes read from here on are not kept.
func (c *Conn) StreamBody() { c.body.streamed = true }

// HoldAnswer notes that n bytes of Port.Answers are taken until the answer is written.
func (c *Conn) HoldAnswer(n int64) { c.answer.Add(n) }

// Reuse offers the buffer of the answer under way to other answers once it is written, because the HTTP server does
// not keep it.
func (c *Conn) Reuse(buffer []byte) { c.written = buffer }

// Answered notes that the previous answer has been written, because a new request was read.
func (c *Conn) Answered() {
	c.Received()
	c.unsent.Holds = nil
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

// Farewell answers a client that is still sending its body: it sends the answer, closes its sending side, and reads
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
	c.port.shown.leave(c)
	c.port.cfg.Shares.Leave(&c.share)
	c.countOut()
	c.body.give()
	c.answerTaken()
	return c.Conn.Close()
}

// countOut uncounts the connection, once.
func (c *Conn) countOut() { c.once.Do(func() { c.port.open.Add(-1) }) }

// answerTaken returns the room of the connection's answers, which were written or never will be.
func (c *Conn) answerTaken() {
	if c.answer.Load() > 0 {
		c.port.Answers.Give(c.answer.Swap(0))
	}
}

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
	c.unsent.Holds = nil
	c.answerTaken()
	if c.written != nil {
		c.port.Buffers.Put(c.written)
		c.written = nil
	}
	if !c.heard {
		defer c.endUnasked()()
	}
	if c.tls != nil {
		if err := c.shake(); err != nil {
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

// Write writes to the connection. If that fails, the worker does not learn of the claims in the answer, and they are
// released before Write returns.
func (c *Conn) Write(b []byte) (int, error) {
	c.body.answered()
	if c.plain != 0 {
		return c.writePlain(b)
	}
	n, err := c.writePieces(b)
	if err != nil && len(c.unsent.Holds) > 0 {
		c.port.cfg.Release(&c.unsent)
		c.unsent.Holds = nil
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
