package peertest

import (
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// MemoryLayer is a raft.StreamLayer whose connections stay in memory.
type MemoryLayer struct {
	To       *MemoryLayer  // the layer that Dial reaches
	Closed   chan struct{} // closed by Close
	incoming chan net.Conn
	once     sync.Once
}

// NewMemoryLayer returns a layer without a target to dial.
func NewMemoryLayer() *MemoryLayer {
	return &MemoryLayer{incoming: make(chan net.Conn), Closed: make(chan struct{})}
}

// Accept returns the next connection that was dialed.
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

// Addr returns a dummy address.
func (l *MemoryLayer) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }

// Close closes the layer but not its connections. It may be called more than once.
func (l *MemoryLayer) Close() error {
	l.once.Do(func() { close(l.Closed) })
	return nil
}
