package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"sync"
	"time"
)

const (
	// proxyConnMax bounds the connections through one proxy. It closes what comes
	// on top.
	proxyConnMax = 1024
	// proxyChunk is how much is read at once, and proxyQueueMax how many chunks
	// are on their way in one direction, in a connection.
	proxyChunk    = 32 << 10
	proxyQueueMax = 64
	// acceptDelay is the wait after a connection that could not be accepted.
	acceptDelay = 50 * time.Millisecond
)

// Proxies are a Network between nodes on loopback, for users who are not root:
// each node's peer port is reached through a TCP proxy, which finds out by the
// process at the other end which link a connection belongs to. They can cut
// and delay links, and nothing else. Callers are not behind them.
//
// A cut link keeps what is sent until it is whole again, as TCP would, but the
// kernel answers a new connection for the proxy before anything reaches the
// other end.
type Proxies struct {
	rules *rules
	seed  int64

	mu        sync.Mutex // guards what follows
	wg        sync.WaitGroup
	links     map[Link]Quality
	changed   chan struct{} // closed when links changes
	stop      chan struct{} // closed by Close
	closed    bool
	listeners []net.Listener
	conns     map[net.Conn]bool
	pids      func() map[int]int
}

// NewProxies makes the network. seed is of the jitter.
func NewProxies(seed int64) *Proxies {
	p := &Proxies{
		seed: seed, changed: make(chan struct{}), stop: make(chan struct{}),
		conns: map[net.Conn]bool{}, pids: func() map[int]int { return nil },
	}
	p.rules = newRules(p.apply)
	return p
}

// SetPIDs says how to find out which node a process is: from its pid. Without
// it nothing is known about connections, and all links are clean.
func (p *Proxies) SetPIDs(pids func() map[int]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pids = pids
}

// Listen starts the proxy in front of the node's peer port at addr, and returns
// the proxy's own address.
func (p *Proxies) Listen(node int, addr string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for node %d: %w", node, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return "", errors.Join(errClosed, l.Close())
	}
	p.listeners = append(p.listeners, l)
	p.wg.Add(1)
	go p.accept(l, node, addr)
	return l.Addr().String(), nil
}

// Shape implements Network.
func (p *Proxies) Shape(links map[Link]Quality) (remove func() error, err error) {
	for link, q := range links {
		if q.Loss > 0 || q.Duplicate > 0 || q.Reorder > 0 {
			return nil, fmt.Errorf("link %d to %d: %w: proxies only cut and delay", link.From, link.To, ErrUnsupported)
		}
	}
	return p.rules.add(links)
}

func (p *Proxies) apply(links map[Link]Quality) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links = links
	close(p.changed)
	p.changed = make(chan struct{})
	return nil
}

// quality returns the link's quality and what is closed when it may be another.
func (p *Proxies) quality(link Link) (q Quality, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.links[link], p.changed
}

// Dial implements Network: callers are not behind the proxies.
func (p *Proxies) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

// accept takes connections to the node until its listener is closed.
func (p *Proxies) accept(l net.Listener, to int, addr string) {
	defer p.wg.Done()
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			p.waitUntil(time.Now().Add(acceptDelay)) // out of descriptors, probably
			continue
		}
		if p.adopt(conn) {
			go p.serve(conn, to, addr)
		}
	}
}

// adopt counts the connection in, to be closed with the rest. What adopt took,
// drop gives back.
func (p *Proxies) adopt(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.conns) >= 2*proxyConnMax*max(len(p.listeners), 1) {
		_ = conn.Close()
		return false
	}
	p.conns[conn] = true
	p.wg.Add(1)
	return true
}

func (p *Proxies) drop(conn net.Conn) {
	_ = conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
	p.wg.Done()
}

// serve connects to the node and moves bytes in both directions.
func (p *Proxies) serve(in net.Conn, to int, addr string) {
	defer p.drop(in)
	p.mu.Lock()
	pids := p.pids
	p.mu.Unlock()
	from, known := nodeOf(in, pids())
	there, back := Link{from, to}, Link{to, from}
	if !known {
		there, back = Link{to, to}, Link{to, to} // a link that nobody shapes
	}
	if !p.waitWhole(there) || !p.waitWhole(back) {
		return
	}
	var d net.Dialer
	out, err := d.Dial("tcp", addr)
	if err != nil || !p.adopt(out) {
		return
	}
	defer p.drop(out)
	var pipes sync.WaitGroup
	pipes.Go(func() { p.pipe(in, out, there) })
	pipes.Go(func() { p.pipe(out, in, back) })
	pipes.Wait()
}

// waitWhole waits until the link is not cut. It is false when the network was
// closed before.
func (p *Proxies) waitWhole(link Link) bool {
	for {
		q, changed := p.quality(link)
		if !q.Cut {
			return true
		}
		select {
		case <-changed:
		case <-p.stop:
			return false
		}
	}
}

// chunk is what was read at once, and when it is due.
type chunk struct {
	at   time.Time
	data []byte
}

// pipe moves what src sends to dst, over the link, until either ends.
func (p *Proxies) pipe(src, dst net.Conn, link Link) {
	queue := make(chan chunk, proxyQueueMax)
	written := make(chan struct{})
	go func() {
		defer close(written)
		if !p.write(dst, link, queue) {
			_ = src.Close() // nobody gets what else comes
		}
	}()
	rng := rand.New(rand.NewSource(p.seed))
	buf := make([]byte, proxyChunk)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			q, _ := p.quality(link)
			at := time.Now().Add(q.Delay + time.Duration(rng.Float64()*float64(q.Jitter)))
			select {
			case queue <- chunk{at, append([]byte(nil), buf[:n]...)}:
			case <-written:
				return
			}
		}
		if err != nil {
			break
		}
	}
	close(queue)
	<-written
}

// write writes what is due while the link is whole, and ends the stream after
// the last. It is false when it could not.
func (p *Proxies) write(dst net.Conn, link Link, queue <-chan chunk) bool {
	for c := range queue {
		if !p.waitUntil(c.at) || !p.waitWhole(link) {
			return false
		}
		if _, err := dst.Write(c.data); err != nil {
			return false
		}
	}
	half, ok := dst.(interface{ CloseWrite() error })
	return p.waitWhole(link) && ok && half.CloseWrite() == nil
}

func (p *Proxies) waitUntil(at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.stop:
		return false
	}
}

// Close implements Network. It is safe twice.
func (p *Proxies) Close() error {
	p.mu.Lock()
	closing := []io.Closer{}
	if !p.closed {
		p.closed = true
		close(p.stop)
		for _, l := range p.listeners {
			closing = append(closing, l)
		}
		for conn := range p.conns {
			closing = append(closing, conn)
		}
	}
	p.mu.Unlock()
	for _, c := range closing {
		_ = c.Close()
	}
	p.wg.Wait()
	return nil
}
