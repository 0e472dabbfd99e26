package clustertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

var errCut = errors.New("the network between the two is cut")

// network connects nodes by pipes. A cut closes the connections across it and refuses new
// ones.
type network struct {
	mu     sync.Mutex
	layers map[string]*layer
	conns  map[*conn]struct{}
	side   map[string]int // nodes on the same side can reach each other; 0 = never cut off
	sides  int
}

func newNetwork() *network {
	return &network{layers: make(map[string]*layer), conns: make(map[*conn]struct{}), side: make(map[string]int)}
}

// listen gives a node its place in the network.
func (n *network) listen(addr string) *layer {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &layer{network: n, addr: addr, incoming: make(chan net.Conn), closed: make(chan struct{})}
	n.layers[addr] = l
	return l
}

// cut moves nodes to a separate side; heal joins all again.
func (n *network) cut(addrs []string) {
	n.mu.Lock()
	n.sides++
	for _, addr := range addrs {
		n.side[addr] = n.sides
	}
	var broken []*conn
	for c := range n.conns {
		if n.side[c.from] != n.side[c.to] {
			broken = append(broken, c)
		}
	}
	n.mu.Unlock()
	closeAll(broken)
}

func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.side)
}

// drop closes whatever node addr has open.
func (n *network) drop(addr string) {
	n.mu.Lock()
	var broken []*conn
	for c := range n.conns {
		if c.from == addr || c.to == addr {
			broken = append(broken, c)
		}
	}
	n.mu.Unlock()
	closeAll(broken)
}

func closeAll(conns []*conn) {
	for _, c := range conns {
		_ = c.Close()
	}
}

// reachable returns an error if from cannot reach to.
func (n *network) reachable(from, to string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.side[from] != n.side[to] {
		return fmt.Errorf("dial %s: %w", to, errCut)
	}
	return nil
}

// layer is one node's raft.StreamLayer.
type layer struct {
	network  *network
	addr     string
	incoming chan net.Conn
	once     sync.Once
	closed   chan struct{}
}

func (l *layer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	to := string(address)
	if err := l.network.reachable(l.addr, to); err != nil {
		return nil, err
	}
	l.network.mu.Lock()
	other := l.network.layers[to]
	l.network.mu.Unlock()
	if other == nil {
		return nil, fmt.Errorf("dial %s: no node listens", to)
	}
	near, far := net.Pipe()
	a := l.network.track(near, l.addr, to)
	b := l.network.track(far, l.addr, to)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	select {
	case other.incoming <- b:
		return a, nil
	case <-other.closed:
	case <-l.closed:
	case <-ctx.Done():
	}
	closeAll([]*conn{a, b})
	return nil, fmt.Errorf("dial %s: it does not accept", to)
}

func (l *layer) Accept() (net.Conn, error) {
	select {
	case c := <-l.incoming:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *layer) Close() error {
	l.once.Do(func() { close(l.closed) })
	l.network.drop(l.addr)
	return nil
}

func (l *layer) Addr() net.Addr { return address(l.addr) }

type address string

func (address) Network() string  { return "memory" }
func (a address) String() string { return string(a) }

// conn is one end of a pipe.
type conn struct {
	net.Conn
	network  *network
	from, to string
}

func (n *network) track(c net.Conn, from, to string) *conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := &conn{Conn: c, network: n, from: from, to: to}
	n.conns[t] = struct{}{}
	return t
}

func (c *conn) Close() error {
	c.network.mu.Lock()
	delete(c.network.conns, c)
	c.network.mu.Unlock()
	return c.Conn.Close()
}
