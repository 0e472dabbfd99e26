package api

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/testwait"
)

// TestShutdown_unusedConnection ensures that a stop does not wait for unused connections, which some clients open,
// because a restarting node would be away for the whole stop timeout.
func TestShutdown_unusedConnection(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	addr := listen(t, s)
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw(t, addr, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") // by now the first one is accepted, too
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if b, err := io.ReadAll(conn); len(b) > 0 || err != nil {
		t.Errorf("the connection ends with %q, %v", b, err)
	}
}

// TestShutdown_beforeServe ensures that Serve returns although its goroutine came late, after Shutdown.
func TestShutdown_beforeServe(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testwait.Patience):
		t.Error("it serves")
	}
}
