package clienttest

import (
	"context"
	"net"
	"sync"
)

// memoryHost is the server's host name for connections within the process.
const memoryHost = "clienttest"

// entrance is the server's net.Listener. Its connections are made within the process, so that none waits for a
// network, and through a port once one is requested.
type entrance struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu       sync.Mutex // guards the fields below
	port     net.Listener
	accepted sync.WaitGroup // the goroutine that accepts at the port
}

func newEntrance() *entrance {
	return &entrance{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// dial connects within the process.
func (e *entrance) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case e.conns <- there:
		return here, nil
	case <-e.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// listen opens a loopback port on its first call, and returns its address.
func (e *entrance) listen() (addr string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.port == nil {
		if e.port, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return "", err
		}
		ln := e.port
		e.accepted.Go(func() { e.acceptAt(ln) })
	}
	return e.port.Addr().String(), nil
}

func (e *entrance) acceptAt(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		select {
		case e.conns <- conn:
		case <-e.closed:
			conn.Close() //nolint:errcheck // no caller needs the error
		}
	}
}

// Accept returns the next connection.
func (e *entrance) Accept() (net.Conn, error) {
	select {
	case conn := <-e.conns:
		return conn, nil
	case <-e.closed:
		return nil, net.ErrClosed
	}
}

// Close stops accepting connections. It may be called twice.
func (e *entrance) Close() error {
	e.once.Do(func() { close(e.closed) })
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.port == nil {
		return nil
	}
	err := e.port.Close()
	e.accepted.Wait()
	e.port = nil
	return err
}

// Addr returns an empty address, because there may be no port.
func (e *entrance) Addr() net.Addr { return &net.TCPAddr{} }
