package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// connsPerPeerMax bounds the HTTP connections to one peer, each with at most one
	// request under way. Further requests wait for a free one.
	connsPerPeerMax = 512
	// connIdleTimeout is the time after which an unused HTTP connection to a peer is
	// closed.
	connIdleTimeout = 60 * time.Second
	// idleReapInterval is the interval between checks for idle connections.
	idleReapInterval = 15 * time.Second
	// roundTripBuffer is the size of the write buffer of such a connection.
	roundTripBuffer = 4 << 10
)

// connPool holds the connections for calls to one peer address.
type connPool struct {
	port *Port
	addr string
	free chan struct{} // a slot per connection, connsPerPeerMax

	users int // calls under way; guarded by port.mu

	mu   sync.Mutex
	idle []*pooledConn // most recently used last; idle ones hold no slot
}

// pooledConn is a connection with its buffers, used by one caller at a time.
type pooledConn struct {
	*peerConn
	r      *bufio.Reader
	w      *bufio.Writer
	usedAt time.Time
}

// acquirePool returns the pool for addr; releasePool must follow.
func (p *Port) acquirePool(addr string) *connPool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pool := p.pools[addr]
	if pool == nil {
		pool = &connPool{port: p, addr: addr, free: make(chan struct{}, connsPerPeerMax)}
		p.pools[addr] = pool
	}
	pool.users++
	return pool
}

func (p *Port) releasePool(pool *connPool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pool.users--
}

// get returns a connection for one request: the most recently used one that the peer has
// not closed, else a new one. put must follow. Nothing has been sent when it returns an
// error.
func (pool *connPool) get(ctx context.Context) (*pooledConn, error) {
	select {
	case pool.free <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for one of %d connections to peer %s: %w", connsPerPeerMax, pool.addr, ctx.Err())
	case <-pool.port.ctx.Done():
		return nil, net.ErrClosed
	}
	for c := pool.pop(); c != nil; c = pool.pop() {
		if time.Since(c.usedAt) < connIdleTimeout && !c.retired.Load() && !c.closedByPeer() {
			return c, nil
		}
		_ = c.Close()
	}
	conn, err := pool.port.dial(ctx, pool.addr, PurposeHTTP, pool.port.cfg.TargetUUID(pool.addr))
	if err != nil {
		<-pool.free
		return nil, err
	}
	return newPooledConn(conn), nil
}

func newPooledConn(conn *peerConn) *pooledConn {
	c := &pooledConn{peerConn: conn}
	c.r = bufio.NewReaderSize(conn, forwardHeaderMax)
	c.w = bufio.NewWriterSize(c, roundTripBuffer)
	return c
}

func (pool *connPool) pop() *pooledConn {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	last := len(pool.idle) - 1
	if last < 0 {
		return nil
	}
	c := pool.idle[last]
	pool.idle[last] = nil
	pool.idle = pool.idle[:last]
	return c
}

// put returns a connection to the pool, or closes it if it cannot be reused.
func (pool *connPool) put(c *pooledConn, reusable bool) {
	if reusable && !c.retired.Load() {
		c.usedAt = time.Now()
		pool.mu.Lock()
		pool.idle = append(pool.idle, c)
		pool.mu.Unlock()
	} else {
		_ = c.Close()
	}
	<-pool.free
}

// reap closes connections that have been idle since before cutoff, and reports whether the
// pool is empty.
func (pool *connPool) reap(cutoff time.Time) (empty bool) {
	pool.mu.Lock()
	n := 0
	for n < len(pool.idle) && pool.idle[n].usedAt.Before(cutoff) {
		n++
	}
	old := append([]*pooledConn(nil), pool.idle[:n]...)
	pool.idle = append(pool.idle[:0], pool.idle[n:]...)
	clear(pool.idle[len(pool.idle):cap(pool.idle)])
	empty = len(pool.idle) == 0
	pool.mu.Unlock()
	for _, c := range old {
		_ = c.Close()
	}
	return empty
}

// runIdleReaper closes idle connections and removes unused pools until the port is closed.
func (p *Port) runIdleReaper() {
	ticker := time.NewTicker(idleReapInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.reapIdle(time.Now().Add(-connIdleTimeout))
		case <-p.ctx.Done():
			return
		}
	}
}

func (p *Port) reapIdle(cutoff time.Time) {
	p.mu.Lock()
	pools := make([]*connPool, 0, len(p.pools))
	for _, pool := range p.pools {
		pools = append(pools, pool)
	}
	p.mu.Unlock()
	for _, pool := range pools {
		if !pool.reap(cutoff) {
			continue
		}
		p.mu.Lock()
		// A call in between is counted in users, or has returned its connection.
		if pool.users == 0 && pool.isEmpty() {
			delete(p.pools, pool.addr)
		}
		p.mu.Unlock()
	}
}

func (pool *connPool) isEmpty() bool {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	return len(pool.idle) == 0
}

// errNoLength is returned for an answer that only ends with its connection, because it
// cannot be known to be complete.
var errNoLength = errors.New("the answer does not say how long it is")

// roundTrip sends req once and reads the answer. ctx must have a deadline. reusable reports whether
// the connection can be used again.
func (c *pooledConn) roundTrip(ctx context.Context, req *fasthttp.Request, resp *fasthttp.Response) (reusable bool, err error) {
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return false, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(aLongTimeAgo()) })
	c.w.Reset(c)
	err = writeRequest(c.w, req)
	if err == nil {
		err = readAnswerBody(c.r, resp, nil)
	}
	// If the context ends at this moment it may still change the deadline.
	untouched := stop()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	reusable = err == nil && untouched && !resp.ConnectionClose() && c.r.Buffered() == 0
	return reusable, err
}

// writeRequest writes req.
func writeRequest(w *bufio.Writer, req *fasthttp.Request) error {
	if err := req.Write(w); err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	return nil
}

// readAnswerBody reads one complete answer. reserve, if not nil, is called with the size of a
// body before it is read; its error ends the reading.
func readAnswerBody(r *bufio.Reader, resp *fasthttp.Response, reserve func(n int) error) error {
	for {
		if err := resp.Header.Read(r); err != nil {
			return fmt.Errorf("read answer: %w", endIsUnexpected(err))
		}
		if resp.StatusCode() != fasthttp.StatusContinue {
			break
		}
	}
	if status := resp.StatusCode(); resp.SkipBody || status < 200 || status == fasthttp.StatusNoContent || status == fasthttp.StatusNotModified {
		return nil
	}
	length := resp.Header.ContentLength()
	if length < -1 {
		return fmt.Errorf("read answer: %w", errNoLength)
	}
	if reserve != nil && length > 0 {
		if err := reserve(length); err != nil {
			return fmt.Errorf("read answer of %d bytes: %w", length, err)
		}
	}
	if err := resp.ReadBody(r, forwardAnswerMax); err != nil {
		return fmt.Errorf("read answer: %w", endIsUnexpected(err))
	}
	if length == -1 {
		if err := resp.Header.ReadTrailer(r); err != nil {
			return fmt.Errorf("read answer: %w", endIsUnexpected(err))
		}
	}
	return nil
}

func endIsUnexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
