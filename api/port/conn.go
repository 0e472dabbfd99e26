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

// Conn is a connection of the port. It counts itself out when it is closed, and has
// the claims released whose answer it could not write.
type Conn struct {
	net.Conn
	port *Port
	once sync.Once

	// Only the goroutine that serves the connection touches what is guarded by
	// nothing else.
	Head Head // of the request under way

	unsent           Unsent
	reading, writing lazyDeadline
	body             bodyShare
	answer           atomic.Int64 // what answers have taken of the port's room; anybody may close
	written          []byte       // the buffer of the answer under way, nil: not for another answer
	plain            plainness    // of an answer that ends with the connection
	heard            bool         // anything was read
	known            bool         // this is no stranger
	place            strangerPlace
	share            lasting.Conn // of its key's connections
	uncovered        atomic.Bool  // no authority vouches any more for what its client has shown
	tls              *tls.Conn    // whose hands are not shaken yet; nil once they are, or without TLS
}

// Head is what was decided by the head of a request, before its body.
type Head struct {
	Crowded bool // the key that it showed has too many connections
	// Refusal is what its body is refused with, nil: it is too large for anybody.
	Refusal *refuse.Refusal
	Why     keyring.Failure // of a refusal for want of a valid key
	Barred  *keyring.Caller // the key of such a refusal, nil: it is not known
}

// Unsent are the claims of an answer that may not arrive, and by whom they were made: a
// leader that asks for keys has nobody else release them.
type Unsent struct {
	Holds []command.Hold
	Key   []byte // that the client sent, empty: none
	Known bool   // this node knows the key
	From  netip.Addr
}

// HeadCame says that the head of a request is there. What is written before Received is no
// answer yet, but asks the client for the body.
func (c *Conn) HeadCame() {
	c.Head = Head{}
	c.body.due = true
}

// Received says that no more of the request is read: what is written from here on is its
// answer.
func (c *Conn) Received() { c.body.due = false }

// Unsent is for the claims of the answer that is to be written: they are released if
// that fails.
func (c *Conn) Unsent() *Unsent { return &c.unsent }

// Known reports whether this is no stranger.
func (c *Conn) Known() bool { return c.known }

// Admit says that this is no stranger any more.
func (c *Conn) Admit() {
	c.known = true
	c.port.strangers.leave(c)
}

// CountFor counts the connection for the key that it was the first to show. ok is false
// if the key has too many.
func (c *Conn) CountFor(who *keyring.Caller) (ok bool) { return c.port.cfg.Shares.Enter(&c.share, who) }

// ExpectBody counts a body of n bytes that is to come; false: there is no room for it.
func (c *Conn) ExpectBody(n int) bool { return c.body.expect(n) }

// StreamBody says that what is read from here on is not kept.
func (c *Conn) StreamBody() { c.body.streamed = true }

// HoldAnswer counts n bytes of Port.Answers, which are taken, until the answer is written.
func (c *Conn) HoldAnswer(n int64) { c.answer.Add(n) }

// Reuse gives a buffer, that of the answer under way, to other answers once that is
// written: the HTTP server does not keep it beyond that.
func (c *Conn) Reuse(buffer []byte) { c.written = buffer }

// Answered says that the answer before has been written: a new request came, whole.
func (c *Conn) Answered() {
	c.Received()
	c.unsent.Holds = nil
	c.answerTaken()
	if !c.known {
		c.port.strangers.answered(c)
	}
}

// Lend returns the connection itself, to one who sets its deadlines from other
// goroutines. Return must follow.
func (c *Conn) Lend() net.Conn { return c.Conn }

// Plain says that the answer whose head comes next is to a client of HTTP/1.0, which knows no
// chunks: the head goes without Transfer-Encoding, the body is written to what Lend returns, and
// what the HTTP server writes at its end goes nowhere. The connection must be closed then.
func (c *Conn) Plain() { c.plain = plainHead }

// plainness is how far an answer without chunks has come.
type plainness int

const (
	plainHead plainness = iota + 1 // its head comes next
	plainBody                      // and then nothing from the HTTP server
)

// chunkedField is how the HTTP server says that a body has chunks.
const chunkedField = "Transfer-Encoding: chunked\r\n"

// writePlain is Write of an answer that is plain.
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

// Return says that the connection's deadlines are its own again, and gives the end of an
// answer within to be written.
func (c *Conn) Return(within time.Duration) {
	c.reading.forget()
	c.writing.forget()
	_ = c.SetWriteDeadline(time.Now().Add(within))
}

// ReadingMoved says that somebody else has set when reading ends.
func (c *Conn) ReadingMoved() { c.reading.forget() }

// Farewell answers a client that is still sending its body: it sends the
// answer, ends its own side of the connection, and reads and drops what the
// client sends, within bounds. Closing at once would reset the connection, and
// the client would never see the answer. What is written after this goes nowhere.
func (c *Conn) Farewell(answer io.WriterTo) {
	if c.SetDeadline(time.Now().Add(LingerTime)) != nil {
		return
	}
	c.StreamBody()
	c.Reuse(nil) // the HTTP server writes the answer once more, to nowhere
	if _, err := answer.WriteTo(c); err != nil || c.CloseWrite() != nil {
		return
	}
	// However it ends, the answer is sent.
	_, _ = io.Copy(io.Discard, io.LimitReader(c, LingerBytes))
}

// Close closes the connection; twice is safe, and so is any goroutine.
func (c *Conn) Close() error {
	c.port.strangers.leave(c)
	c.port.shown.leave(c)
	c.port.cfg.Shares.Leave(&c.share)
	c.countOut()
	c.body.give()
	c.answerTaken()
	return c.Conn.Close()
}

// countOut counts the connection out, once.
func (c *Conn) countOut() { c.once.Do(func() { c.port.open.Add(-1) }) }

// answerTaken gives back what the connection's answers took, which are written or
// never will be.
func (c *Conn) answerTaken() {
	if c.answer.Load() > 0 {
		c.port.Answers.Give(c.answer.Swap(0))
	}
}

// TLS reports whether the connection speaks TLS.
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

// CloseWrite ends the sending side, if the connection has two sides.
func (c *Conn) CloseWrite() error {
	if tcp, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return tcp.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Read reads from the connection. Who reads on has written the answer before
// (or has more requests at hand, and leaves the claims to their leases): from
// here on a Write that fails is about something else, such as "100 Continue",
// and the worker has its claims.
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
		// Some clients open more connections than they use. Nobody asked anything,
		// so nobody is answered: Go's client logs answers that it did not ask for.
		return 0, io.EOF
	}
	if !c.body.take(n) {
		return 0, ErrBodiesFull
	}
	return n, err
}

// endUnasked ends a Read when the server drains, until stop is called: the HTTP
// server closes the connections between two requests, but waits for those that it
// has not had the first of.
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

// Write writes to the connection. If that fails, nobody learns of the claims
// that the answer was about, and they are released before Write returns.
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

// writePieces writes b, of which the other side must read each piece in time, and
// all of it.
func (c *Conn) writePieces(b []byte) (n int, err error) {
	var until time.Time // 0: b is one piece, and its deadline is noted
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
