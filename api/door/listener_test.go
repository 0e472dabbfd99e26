package door

import (
	"net"
	"testing"
	"testing/synctest"
)

// arriving is a listener at which connections arrive as fast as they are accepted.
type arriving struct{ net.Listener }

func (arriving) Accept() (net.Conn, error) {
	conn, _ := net.Pipe()
	return conn, nil
}

// When clients connect faster than the server ends the connections that made room, they wait to be accepted. The HTTP
// server would otherwise refuse them in an answer of its own.
func TestListener_waitsForEndedConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t)
		ln := p.Listen(arriving{})
		accepted := make(chan net.Conn, 3*p.cfg.Connections)
		go func() {
			for range cap(accepted) {
				if conn, err := ln.Accept(); err == nil {
					accepted <- conn
				}
			}
		}()
		synctest.Wait()
		if got, want := len(accepted), 2*p.cfg.Connections; got != want {
			t.Errorf("%d connections are accepted, want %d", got, want)
		}
		for range cap(accepted) {
			_ = (<-accepted).Close()
		}
		if open := p.Open(); open != 0 {
			t.Errorf("%d connections are open, want 0", open)
		}
	})
}
