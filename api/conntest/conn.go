package conntest

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// Nop is a connection without a peer.
type Nop struct{}

// Read returns io.EOF.
func (Nop) Read([]byte) (int, error) { return 0, io.EOF }

// Write discards b.
func (Nop) Write(b []byte) (int, error) { return len(b), nil }

// Close does nothing.
func (Nop) Close() error { return nil }

// LocalAddr returns an empty address.
func (Nop) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr returns an empty address.
func (Nop) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// SetDeadline does nothing.
func (Nop) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (Nop) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (Nop) SetWriteDeadline(time.Time) error { return nil }

// Pair returns the two ends of a connection.
func Pair(t *testing.T) (ours, theirs *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	out, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	in, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), out.Close() })
	return in.(*net.TCPConn), out.(*net.TCPConn)
}

// HangUps are the ways in which a client can go.
var HangUps = map[string]func(*net.TCPConn) error{
	"closes":                  (*net.TCPConn).Close,
	"resets":                  func(c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) },
	"closes its sending side": (*net.TCPConn).CloseWrite,
	"closes with data on the way": func(c *net.TCPConn) error {
		_, err := io.WriteString(c, "GET / HTTP/1.1\r\n")
		return errors.Join(err, c.Close())
	},
}
