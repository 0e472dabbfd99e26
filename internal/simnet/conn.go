package simnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// sendMax bounds the bytes of one direction of a connection that are written but not read.
// Further writes wait.
const sendMax = 256 << 10

// conn is one end of a connection.
type conn struct {
	network *Network
	host    *Host // of this end
	dialed  bool
	in, out *stream

	// Guarded by network.mu.
	closed  bool
	readBy  time.Time // deadlines
	writeBy time.Time
}

// stream is one direction of a connection, guarded by network.mu.
type stream struct {
	number  int
	conn    *conn // the end that writes to it
	link    Link
	cond    *sync.Cond // on network.mu: anything changed
	chunks  []chunk    // in the order of arrival
	size    int        // bytes in chunks
	last    time.Time  // arrival of the last written chunk
	slow    time.Duration
	stalled bool
	ended   bool // no more writes follow
	unread  bool // the reader has gone
	broken  bool // its contents are lost, at once
}

// chunk holds the bytes of one write; nil means the end. The reader sees a reset as an
// error.
type chunk struct {
	bytes []byte
	at    time.Time // arrival
	reset bool
}

// connectLocked opens a connection between two hosts.
func (n *Network) connectLocked(from, to *Host) (near, far *conn) {
	near = &conn{network: n, host: from, dialed: true}
	far = &conn{network: n, host: to}
	near.out, far.out = n.openLocked(near, to.name), n.openLocked(far, from.name)
	near.in, far.in = far.out, near.out
	return near, far
}

func (n *Network) openLocked(c *conn, to string) *stream {
	n.opened++
	s := &stream{number: n.opened, conn: c, link: Link{c.host.name, to}, cond: sync.NewCond(&n.mu)}
	if n.weather.Slow > 0 && n.random.IntN(1000) < n.weather.Slow {
		s.slow = n.weather.SlowMax
	}
	n.streams[s] = struct{}{}
	return s
}

// Read returns what has arrived.
func (c *conn) Read(b []byte) (int, error) {
	n, s := c.network, c.in
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		now := time.Now()
		head, wake := s.headLocked(now)
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case s.broken:
			return 0, syscall.ECONNRESET
		case passed(c.readBy, now):
			return 0, os.ErrDeadlineExceeded
		case head != nil && head.bytes == nil && head.reset:
			return 0, syscall.ECONNRESET
		case head != nil && head.bytes == nil:
			return 0, io.EOF
		case len(b) == 0:
			return 0, nil
		case head != nil:
			return s.takeLocked(b), nil
		}
		waitLocked(s.cond, now, wake, c.readBy)
	}
}

// headLocked returns the first chunk if it has arrived, else when it will; zero = not
// known.
func (s *stream) headLocked(now time.Time) (*chunk, time.Time) {
	if _, held := s.conn.network.held[s.link]; held || s.stalled || len(s.chunks) == 0 {
		return nil, time.Time{}
	}
	head := &s.chunks[0]
	if head.at.After(now) {
		return nil, head.at
	}
	return head, time.Time{}
}

// takeLocked reads from the chunks that have arrived.
func (s *stream) takeLocked(b []byte) int {
	now, n := time.Now(), 0
	for n < len(b) && len(s.chunks) > 0 && s.chunks[0].bytes != nil && !s.chunks[0].at.After(now) {
		head := &s.chunks[0]
		m := copy(b[n:], head.bytes)
		n += m
		if head.bytes = head.bytes[m:]; len(head.bytes) == 0 {
			s.chunks = s.chunks[1:]
		}
	}
	s.size -= n
	s.cond.Broadcast()
	return n
}

// Write sends b. It waits while too much is under way.
func (c *conn) Write(b []byte) (sent int, err error) {
	n, s := c.network, c.out
	n.mu.Lock()
	defer n.mu.Unlock()
	for sent < len(b) {
		now := time.Now()
		switch {
		case c.closed:
			return sent, net.ErrClosed
		case s.broken || s.ended || s.unread:
			return sent, syscall.EPIPE
		case passed(c.writeBy, now):
			return sent, os.ErrDeadlineExceeded
		case s.size >= sendMax:
			waitLocked(s.cond, now, time.Time{}, c.writeBy)
			continue
		}
		part := append([]byte(nil), b[sent:min(len(b), sent+sendMax-s.size)]...)
		s.putLocked(chunk{bytes: part})
		s.size += len(part)
		sent += len(part)
	}
	if n.weather.Torn > 0 && n.random.IntN(1000) < n.weather.Torn {
		c.tearLocked()
	}
	return sent, nil
}

// tearLocked breaks the connection for this end, now. The other end gets what was sent,
// except the last chunk half of the time, and then the break.
func (c *conn) tearLocked() {
	if last := len(c.out.chunks) - 1; last >= 0 && c.network.random.IntN(2) == 0 {
		c.out.size -= len(c.out.chunks[last].bytes)
		c.out.chunks = c.out.chunks[:last]
	}
	c.out.endLocked(true)
	c.in.broken, c.in.chunks, c.in.size = true, nil, 0
	c.in.cond.Broadcast()
	delete(c.network.streams, c.in)
}

func (s *stream) putLocked(c chunk) {
	c.at = time.Now().Add(s.conn.network.delayLocked(s))
	if c.at.Before(s.last) {
		c.at = s.last
	}
	s.last = c.at
	s.chunks = append(s.chunks, c)
	s.cond.Broadcast()
}

// hastenLocked makes everything arrive by then.
func (s *stream) hastenLocked(by time.Time) {
	for i := range s.chunks {
		if s.chunks[i].at.After(by) {
			s.chunks[i].at = by
		}
	}
	if s.last.After(by) {
		s.last = by
	}
}

// endLocked writes the end.
func (s *stream) endLocked(reset bool) {
	if !s.ended {
		s.ended = true
		s.putLocked(chunk{reset: reset})
	}
	s.cond.Broadcast()
}

// breakLocked breaks the connection at both ends. Data under way is lost.
func (c *conn) breakLocked() {
	for _, s := range []*stream{c.in, c.out} {
		s.broken, s.chunks, s.size = true, nil, 0
		s.cond.Broadcast()
		delete(c.network.streams, s)
	}
}

// Close closes this end. Data that it has sent arrives, data sent to it does not.
func (c *conn) Close() error {
	n := c.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	c.out.endLocked(len(c.in.chunks) > 0)
	c.in.chunks, c.in.size = nil, 0
	c.in.cond.Broadcast()
	if _, held := n.held[c.out.link]; !held && !c.out.stalled {
		c.in.unread = true // otherwise the other end cannot know
	}
	delete(n.streams, c.in)
	return nil
}

// CloseWrite ends this end's direction.
func (c *conn) CloseWrite() error {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.out.endLocked(false)
	return nil
}

// LocalAddr returns the name of this end's host.
func (c *conn) LocalAddr() net.Addr { return addr(c.out.link.From) }

// RemoteAddr returns the name of the other end's host.
func (c *conn) RemoteAddr() net.Addr { return addr(c.out.link.To) }

// SetDeadline sets both deadlines and wakes waiting calls.
func (c *conn) SetDeadline(t time.Time) error { return c.setDeadlines(t, &c.readBy, &c.writeBy) }

// SetReadDeadline sets the deadline of reads.
func (c *conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, &c.readBy) }

// SetWriteDeadline sets the deadline of writes.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, &c.writeBy) }

func (c *conn) setDeadlines(t time.Time, deadlines ...*time.Time) error {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	for _, d := range deadlines {
		*d = t
	}
	c.in.cond.Broadcast()
	c.out.cond.Broadcast()
	return nil
}

func passed(deadline, now time.Time) bool { return !deadline.IsZero() && !now.Before(deadline) }

// waitLocked waits for cond or the first of the times; zero times are ignored.
func waitLocked(cond *sync.Cond, now time.Time, times ...time.Time) {
	var first time.Time
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if !first.IsZero() {
		timer := time.AfterFunc(first.Sub(now), func() {
			cond.L.Lock()
			defer cond.L.Unlock()
			cond.Broadcast()
		})
		defer timer.Stop()
	}
	cond.Wait()
}
