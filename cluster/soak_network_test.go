package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

// soakNetwork connects the nodes of a soak by pipes whose every direction can
// be held: what is written waits, as packets do that are sent again and again,
// until the direction is let go, the writer's deadline, or the end of the
// connection. Nothing is lost, it only comes late. Or it can be cut: then
// connections break and none can be made.
type soakNetwork struct {
	delayMax time.Duration // of one write; drawn anew for each

	mu      sync.Mutex
	random  *rand.Rand            // guarded by mu
	layers  map[string]*soakLayer // guarded by mu
	conns   map[*soakConn]struct{}
	held    map[soakLink]bool // true: refused at once
	changed chan struct{}     // closed and replaced whenever held changes
}

// soakLink is one direction between two nodes.
type soakLink struct{ from, to string }

func newSoakNetwork(seed uint64, delayMax time.Duration) *soakNetwork {
	return &soakNetwork{
		delayMax: delayMax,
		random:   rand.New(rand.NewPCG(seed, 7)),
		layers:   make(map[string]*soakLayer),
		conns:    make(map[*soakConn]struct{}),
		held:     make(map[soakLink]bool),
		changed:  make(chan struct{}),
	}
}

// hold holds the links, beside those that are held already.
func (n *soakNetwork) hold(links ...soakLink) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range links {
		n.held[l] = false
	}
}

// cut cuts the links, and breaks the connections across them.
func (n *soakNetwork) cut(links ...soakLink) {
	n.mu.Lock()
	for _, l := range links {
		n.held[l] = true
	}
	var broken []*soakConn
	for c := range n.conns {
		if n.held[soakLink{c.from, c.to}] {
			broken = append(broken, c)
		}
	}
	n.mu.Unlock()
	for _, c := range broken {
		_ = c.Close()
	}
}

// release lets links go; without any, all of them.
func (n *soakNetwork) release(links ...soakLink) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(links) == 0 {
		clear(n.held)
	}
	for _, l := range links {
		delete(n.held, l)
	}
	close(n.changed)
	n.changed = make(chan struct{})
}

// reset closes the connections that have an end at addr.
func (n *soakNetwork) reset(addr string) {
	n.mu.Lock()
	var broken []*soakConn
	for c := range n.conns {
		if c.from == addr || c.to == addr {
			broken = append(broken, c)
		}
	}
	n.mu.Unlock()
	for _, c := range broken {
		_ = c.Close()
	}
}

// pass waits until something written now would arrive. done and closed end
// the wait with an error; a nil channel never does.
func (n *soakNetwork) pass(l soakLink, done <-chan struct{}, deadline <-chan time.Time, closed <-chan struct{}) error {
	for {
		n.mu.Lock()
		refused, held := n.held[l]
		changed := n.changed
		n.mu.Unlock()
		if !held {
			return nil
		}
		if refused {
			return syscall.ECONNREFUSED
		}
		select {
		case <-changed:
		case <-done:
			return context.Canceled
		case <-deadline:
			return os.ErrDeadlineExceeded
		case <-closed:
			return net.ErrClosed
		}
	}
}

func (n *soakNetwork) delay() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.delayMax == 0 {
		return 0
	}
	return time.Duration(n.random.Int64N(int64(n.delayMax)))
}

// listen gives a node its place in the network.
func (n *soakNetwork) listen(addr string) *soakLayer {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &soakLayer{network: n, addr: addr, incoming: make(chan net.Conn), closed: make(chan struct{})}
	n.layers[addr] = l
	return l
}

// soakLayer is one node's raft.StreamLayer.
type soakLayer struct {
	network  *soakNetwork
	addr     string
	incoming chan net.Conn
	once     sync.Once
	closed   chan struct{}
}

func (l *soakLayer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	to := string(address)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for _, link := range []soakLink{{l.addr, to}, {to, l.addr}} {
		if err := l.network.pass(link, nil, timer.C, l.closed); err != nil {
			return nil, fmt.Errorf("dial %s: %w", to, err)
		}
	}
	l.network.mu.Lock()
	other := l.network.layers[to]
	l.network.mu.Unlock()
	if other == nil {
		return nil, fmt.Errorf("dial %s: nobody listens", to)
	}
	near, far := net.Pipe()
	a, b := l.network.track(near, l.addr, to), l.network.track(far, to, l.addr)
	select {
	case other.incoming <- b:
		return a, nil
	case <-other.closed:
	case <-l.closed:
	case <-timer.C:
	}
	_, _ = a.Close(), b.Close()
	return nil, fmt.Errorf("dial %s: nobody accepts", to)
}

func (l *soakLayer) Accept() (net.Conn, error) {
	select {
	case c := <-l.incoming:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *soakLayer) Close() error {
	l.once.Do(func() { close(l.closed) })
	l.network.reset(l.addr)
	return nil
}

func (l *soakLayer) Addr() net.Addr { return soakAddr(l.addr) }

type soakAddr string

func (soakAddr) Network() string  { return "memory" }
func (a soakAddr) String() string { return string(a) }

// soakConn is one end of a pipe: what is written goes from from to to.
type soakConn struct {
	net.Conn
	network  *soakNetwork
	from, to string
	once     sync.Once
	closed   chan struct{}

	mu       sync.Mutex
	deadline time.Time // guarded by mu; of writes
}

func (n *soakNetwork) track(c net.Conn, from, to string) *soakConn {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := &soakConn{Conn: c, network: n, from: from, to: to, closed: make(chan struct{})}
	n.conns[t] = struct{}{}
	return t
}

func (c *soakConn) Write(b []byte) (int, error) {
	if d := c.network.delay(); d > 0 {
		<-time.After(d)
	}
	c.mu.Lock()
	deadline := c.deadline
	c.mu.Unlock()
	var expired <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		expired = timer.C
	}
	if err := c.network.pass(soakLink{c.from, c.to}, nil, expired, c.closed); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *soakConn) SetDeadline(t time.Time) error {
	c.setWriteDeadline(t)
	return c.Conn.SetDeadline(t)
}

func (c *soakConn) SetWriteDeadline(t time.Time) error {
	c.setWriteDeadline(t)
	return c.Conn.SetWriteDeadline(t)
}

func (c *soakConn) setWriteDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
}

func (c *soakConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	c.network.mu.Lock()
	delete(c.network.conns, c)
	c.network.mu.Unlock()
	return c.Conn.Close()
}
