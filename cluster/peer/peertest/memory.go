package peertest

import (
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// MemoryLayer is a raft.StreamLayer whose connections stay in memory.
type MemoryLayer struct {
	To       *MemoryLayer  // whom dialing reaches
	Closed   chan struct{} // closed by Close
	incoming chan net.Conn
	once     sync.Once
}

// NewMemoryLayer returns a layer that dials nobody yet.
func NewMemoryLayer() *MemoryLayer {
	return &MemoryLayer{incoming: make(chan net.Conn), Closed: make(chan struct{})}
}

// Accept returns the next connection that somebody dialed.
func (l *MemoryLayer) Accept() (net.Conn, error) {
	select {
	case c := <-l.incoming:
		return c, nil
	case <-l.Closed:
		return nil, net.ErrClosed
	}
}

// Dial opens a connection to To, once that accepts it.
func (l *MemoryLayer) Dial(raft.ServerAddress, time.Duration) (net.Conn, error) {
	here, there := net.Pipe()
	l.To.incoming <- there
	return here, nil
}

// Addr returns an address that says nothing.
func (l *MemoryLayer) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }

// Close ends the layer, not its connections. It is safe to call more than once.
func (l *MemoryLayer) Close() error {
	l.once.Do(func() { close(l.Closed) })
	return nil
}
