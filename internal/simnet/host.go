package simnet

import (
	"context"
	"fmt"
	"net"
	"syscall"
)

// backlogMax bounds the connections that wait to be accepted.
const backlogMax = 128

// Host is a place in the network for the life of a process. Its methods are safe for
// concurrent use.
type Host struct {
	network *Network
	name    string
	backlog chan net.Conn // of the listener; nil before Listen
	gone    chan struct{} // closed with the host; guarded by network.mu, except for receives
	dead    bool          // guarded by network.mu
}

// Host creates a host of that name. An earlier one that did not close is removed as by
// Kill. If the earlier one lost its power, its peers notice now.
func (n *Network) Host(name string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	if before := n.hosts[name]; before != nil {
		before.goLocked()
	}
	for s := range n.streams {
		if s.link.From == name {
			s.conn.breakLocked()
		}
	}
	h := &Host{network: n, name: name, gone: make(chan struct{})}
	n.hosts[name] = h
	return h
}

// Listen accepts the connections that other hosts open to this one. Its address is the
// host's name; the argument is ignored.
func (h *Host) Listen(string) (net.Listener, error) {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	if h.dead || h.backlog != nil {
		return nil, fmt.Errorf("listen at %s: %w", h.name, syscall.EADDRINUSE)
	}
	h.backlog = make(chan net.Conn, backlogMax)
	return &listener{h}, nil
}

// Dial opens a connection to a host that listens. It takes a round trip, bounded by ctx.
func (h *Host) Dial(ctx context.Context, to string) (net.Conn, error) {
	n := h.network
	n.mu.Lock()
	defer n.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.changed.Broadcast()
	})
	defer stop()
	there, back := Link{h.name, to}, Link{to, h.name}
	for {
		cutThere, heldThere := n.held[there]
		cutBack, heldBack := n.held[back]
		other := n.hosts[to]
		switch {
		case h.dead:
			return nil, fmt.Errorf("dial %s: %w", to, net.ErrClosed)
		case ctx.Err() != nil:
			return nil, fmt.Errorf("dial %s: %w", to, context.Cause(ctx))
		case cutThere || cutBack:
			return nil, fmt.Errorf("dial %s: %w", to, syscall.ECONNREFUSED)
		case heldThere || heldBack || other != nil && other.dead && !other.reachable():
			n.changed.Wait()
			continue
		case other == nil || other.dead || other.backlog == nil || len(other.backlog) == backlogMax:
			return nil, fmt.Errorf("dial %s: %w", to, syscall.ECONNREFUSED)
		}
		near, far := n.connectLocked(h, other)
		other.backlog <- far // it has room
		return near, nil
	}
}

// reachable reports whether a dead host still refuses connections.
func (h *Host) reachable() bool { return h.backlog != nil }

// Kill ends the host like the end of its process: its connections break after the data that
// it has sent has arrived. The host can no longer be used.
func (h *Host) Kill() {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	h.goLocked()
	for s := range h.network.streams {
		if s.conn.host == h {
			s.conn.closed = true
			s.conn.in.cond.Broadcast()
			s.endLocked(true)
		}
	}
}

// PowerOff ends the host without a sign to its peers until there is another host of its
// name.
func (h *Host) PowerOff() {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	h.goLocked()
	h.backlog = nil
	for s := range h.network.streams {
		if s.conn.host == h {
			s.conn.closed = true
			s.conn.in.cond.Broadcast()
			s.cond.Broadcast()
		}
	}
}

func (h *Host) goLocked() {
	if !h.dead {
		h.dead = true
		close(h.gone)
		h.network.changed.Broadcast()
	}
}

type listener struct{ host *Host }

// Accept returns the next connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.host.gone:
		return nil, net.ErrClosed
	default:
	}
	backlog := l.backlog()
	select {
	case c := <-backlog:
		return c, nil
	case <-l.host.gone:
		return nil, net.ErrClosed
	}
}

func (l *listener) backlog() chan net.Conn {
	l.host.network.mu.Lock()
	defer l.host.network.mu.Unlock()
	return l.host.backlog
}

// Close removes the host like Kill, but its connections live on.
func (l *listener) Close() error {
	l.host.network.mu.Lock()
	defer l.host.network.mu.Unlock()
	l.host.goLocked()
	return nil
}

// Addr returns the host's name.
func (l *listener) Addr() net.Addr { return addr(l.host.name) }

type addr string

func (addr) Network() string  { return "simnet" }
func (a addr) String() string { return string(a) }
