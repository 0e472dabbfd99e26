package peer

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/claimq/claimq/cluster/peer/peertest"
	"github.com/claimq/claimq/internal/certs/certstest"
)

// tlsPort opens a port with a mode; nil = without TLS.
func tlsPort(t *testing.T, nodeID string, a *certstest.Authority, mode *TLSMode) *Port {
	t.Helper()
	p := openTestPort(t, nodeID, func(c *Config) {
		c.Certificate = nil
		if mode != nil {
			c.Certificate, c.TLSMode = peertest.Certificate(t, a, a.Issue([]string{"127.0.0.1"})), *mode
		}
	})
	p.Handle("echo", echoCall)
	return p
}

// Nodes whose modes are next to each other accept each other in both directions, so that
// TLS can be switched on and off while they serve; others refuse each other. A node never
// falls back to a weaker mode.
func TestTLS_modes(t *testing.T) {
	t.Parallel()
	a := certstest.NewAuthority(t, "ours")
	required, prefer, accept := TLSRequired, TLSPrefer, TLSAccept
	modes := []*TLSMode{nil, &accept, &prefer, &required}
	names := []string{"none", "accept", "prefer", "required"}
	for i, dialers := range modes {
		for j, acceptors := range modes {
			dialer, acceptor := tlsPort(t, "n1", a, dialers), tlsPort(t, "n2", a, acceptors)
			_, err := dialer.Call(t.Context(), acceptor.Addr(), "echo", []byte("x"))
			switch next := j-i >= -1 && j-i <= 1; {
			case next && err != nil:
				t.Errorf("%s dials %s: %v", names[i], names[j], err)
			case i >= 2 && j == 0 && !errors.Is(err, ErrRefused), i <= 1 && j == 3 && !errors.Is(err, ErrRefused):
				t.Errorf("%s dials %s: %v, want a refusal", names[i], names[j], err)
			}
			// For what a node dials, and for what it accepts.
			dialer.mu.Lock()
			for c := range dialer.conns {
				if secured := tlsOf(c.Conn) != nil; !c.inbound && secured != (i >= 2) {
					t.Errorf("%s dials %s with TLS: %t", names[i], names[j], secured)
				}
			}
			dialer.mu.Unlock()
		}
	}
}

// A man in the middle, even with a certificate for the dialed address, cannot remove TLS on
// the way, because the handshake covers the channel.
func TestTLS_modeStripped(t *testing.T) {
	t.Parallel()
	a := certstest.NewAuthority(t, "ours")
	prefer, accept := TLSPrefer, TLSAccept
	dialer, acceptor := tlsPort(t, "n1", a, &prefer), tlsPort(t, "n2", a, &accept)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	testAddrs.Store(listener.Addr().String(), peertest.UUID("n2"))
	own := a.Issue([]string{"127.0.0.1"}).TLS(t)
	var between sync.WaitGroup
	between.Go(func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		stripped := tls.Server(conn, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, ClientAuth: tls.RequestClientCert})
		defer stripped.Close()
		plain, err := net.Dial("tcp", acceptor.Addr())
		if err != nil {
			t.Error(err)
			return
		}
		defer plain.Close()
		between.Go(func() { _, _ = io.Copy(plain, stripped); _ = plain.Close() })
		_, _ = io.Copy(stripped, plain)
	})
	_, err = dialer.Call(t.Context(), listener.Addr().String(), "echo", []byte("x"))
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "another join key") {
		t.Errorf("over a connection without TLS in the middle: %v", err)
	}
	_ = dialer.Close()
	_ = listener.Close()
	between.Wait()
}

// A node that accepts both does not accept strangers, just like one without TLS.
func TestTLS_modeStrangers(t *testing.T) {
	t.Parallel()
	a := certstest.NewAuthority(t, "ours")
	accept := TLSAccept
	p := tlsPort(t, "n2", a, &accept)
	for _, text := range []string{"", "C", "GET / HTTP/1.1\r\n\r\n", "\x16", "\x16\x03\x01\x00\x05hello"} {
		conn := dialRaw(t, p.Addr())
		_, _ = conn.Write([]byte(text))
		_ = conn.(*net.TCPConn).CloseWrite()
		if _, err := io.Copy(io.Discard, conn); isTimeout(err) {
			t.Errorf("%q is not cut off", text)
		}
	}
	waitUntil(t, "no connection is left", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.inbound == 0 })
	dialer := openTestPort(t, "n1", func(c *Config) { c.Certificate, c.JoinKeys = nil, onlyKey(testOtherKey) })
	if _, err := dialer.Call(t.Context(), p.Addr(), "echo", nil); !errors.Is(err, ErrRefused) {
		t.Errorf("with another join key: %v", err)
	}
}
