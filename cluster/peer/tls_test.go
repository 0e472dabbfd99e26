package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/cluster/peer/peertest"
	"github.com/claimq/claimq/internal/certs/certstest"
	"github.com/claimq/claimq/nodes"
)

// peersOverTLS in the environment makes every port and every fake peer of the tests use
// mutual TLS.
const peersOverTLS = "CLAIMQ_TEST_PEERS_OVER_TLS"

// The peer port does the same over TLS: its tests also pass over it.
func TestPort_allOverTLS(t *testing.T) {
	t.Parallel()
	if os.Getenv(peersOverTLS) != "" {
		return // this is that run
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^(TestPort|TestRaftLayer|TestListen)", "-test.count=1")
	cmd.Env = append(os.Environ(), peersOverTLS+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

// everyone makes the certificate for a run over TLS.
var everyone struct {
	once        sync.Once
	certificate Certificate
}

// certificateOfAll returns the common certificate of all ports in a run over TLS; nil in
// other runs.
func certificateOfAll(t *testing.T) Certificate {
	if os.Getenv(peersOverTLS) == "" {
		return nil
	}
	everyone.once.Do(func() { everyone.certificate = issueToAll(t) })
	return everyone.certificate
}

// issueToAll makes a certificate for all ports, valid at the time of the test's bubble.
func issueToAll(t *testing.T) Certificate {
	t.Helper()
	a := certstest.NewAuthority(t, "everyone's")
	return peertest.Certificate(t, a, a.Issue([]string{"127.0.0.1"}))
}

// secureFake adds TLS to a connection that no port made, in a run over TLS.
func secureFake(t *testing.T, conn net.Conn, dialed bool) net.Conn {
	certificate := certificateOfAll(t)
	if certificate == nil {
		return conn
	}
	p := Port{cfg: Config{Certificate: certificate}}
	secured := p.secure(conn, dialed, "127.0.0.1:1")
	_ = secured.(*tlsConn).negotiate() // the next step fails, too
	return secured
}

// A refused dialer learns why, and so does the operator of the other side.
func TestTLS_refused(t *testing.T) {
	t.Parallel()
	ours, others := certstest.NewAuthority(t, "ours"), certstest.NewAuthority(t, "others'")
	good := func(t *testing.T) Certificate {
		return peertest.Certificate(t, ours, ours.Issue([]string{"127.0.0.1", "n1", "n2"}))
	}
	none := func(*testing.T) Certificate { return nil }
	issued := func(trusted, by *certstest.Authority, names []string, change ...func(*x509.Certificate)) func(*testing.T) Certificate {
		return func(t *testing.T) Certificate {
			return peertest.Certificate(t, trusted, by.Issue(names, change...))
		}
	}
	local := []string{"127.0.0.1"}
	serverOnly := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	clientOnly := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }
	const takesNot = "does not take this node's certificate, its log says why"
	for name, c := range map[string]struct {
		dialer, acceptor func(*testing.T) Certificate
		told, logged     string
	}{
		"a dialer without TLS":          {none, good, "the other side says: this node wants mutual TLS and the dialer speaks none", "wants mutual TLS and the dialer speaks none"},
		"an acceptor without TLS":       {good, none, "this node wants mutual TLS and the other side speaks none", "the dialer speaks TLS and this node does not"},
		"a dialer of another authority": {issued(ours, others, local), good, "the other side says: the certificate of the dialer is not to be trusted: x509: certificate signed by unknown authority", "the dialer is not to be trusted"},
		"an acceptor of another":        {good, issued(ours, others, local), "the other side is not to be trusted: tls: failed to verify certificate: x509: certificate signed by unknown authority", takesNot},
		"a dialer that has expired":     {issued(ours, ours, local, certstest.Expired), good, "expired", "expired"},
		"an acceptor that has expired":  {good, issued(ours, ours, local, certstest.Expired), "expired", takesNot},
		"a dialer with a server's":      {issued(ours, ours, local, serverOnly), good, "incompatible key usage", "incompatible key usage"},
		"an acceptor with a client's":   {good, issued(ours, ours, local, clientOnly), "incompatible key usage", takesNot},
		"a dialer of another name":      {issued(ours, ours, []string{"n3", "::1"}), good, `neither for its node id, "n1", nor for the host of its peer address, "127.0.0.1:`, "it is for n3, ::1"},
		"an acceptor of another name":   {good, issued(ours, ours, []string{"n2", "n2.example"}), "doesn't contain any IP SANs", takesNot},
		"a dialer that has none to show": {func(*testing.T) Certificate {
			return func() (tls.Certificate, *x509.CertPool) { return tls.Certificate{}, ours.Pool() }
		}, good, "the dialer has no certificate", "has no certificate"},
		"an acceptor of a name in common": {good, issued(ours, ours, local, func(c *x509.Certificate) { c.IPAddresses, c.Subject.CommonName = nil, "127.0.0.1" }), "Common Name", takesNot},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log logText
			acceptor := openTestPort(t, "n2", func(p *Config) { p.Logger, p.Certificate = log.logger(), c.acceptor(t) })
			acceptor.Handle("hi", func(context.Context, Hello, []byte) ([]byte, error) { return []byte("hi"), nil })
			dialer := openTestPort(t, "n1", func(p *Config) { p.Certificate = c.dialer(t) })
			_, err := dialer.Call(t.Context(), acceptor.Addr(), "hi", nil)
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.told) {
				t.Errorf("the dialer got %v, want %q", err, c.told)
			}
			waitUntil(t, "the acceptor has logged "+c.logged, func() bool { return log.contains(c.logged) })
		})
	}
}

// A dialer's certificate may have either name; the acceptor's needs the dialed one.
func TestTLS_names(t *testing.T) {
	t.Parallel()
	a := certstest.NewAuthority(t, "ours")
	acceptor := openTestPort(t, "n2", func(c *Config) {
		c.JoinKeys, c.Certificate = nil, peertest.Certificate(t, a, a.Issue([]string{"127.0.0.1"}))
	})
	acceptor.Handle("who", func(_ context.Context, from Hello, _ []byte) ([]byte, error) { return []byte(from.NodeID), nil })
	for name, names := range map[string][]string{"node id": {"n1"}, "address": {"127.0.0.1"}} {
		dialer := openTestPort(t, "n1", func(c *Config) { c.JoinKeys, c.Certificate = nil, peertest.Certificate(t, a, a.Issue(names)) })
		if got, err := dialer.Call(t.Context(), acceptor.Addr(), "who", nil); err != nil || string(got) != "n1" {
			t.Errorf("by its %s: %q, %v", name, got, err)
		}
	}
	// A name, and one that only a pattern matches.
	dialer := openTestPort(t, "n1", func(c *Config) {
		c.JoinKeys, c.Advertise, c.Certificate = nil, "claimq-0.claimq.example:7401", peertest.Certificate(t, a, a.Issue([]string{"*.claimq.example"}))
	})
	if got, err := dialer.Call(t.Context(), acceptor.Addr(), "who", nil); err != nil || string(got) != "n1" {
		t.Errorf("by a pattern: %q, %v", got, err)
	}
}

// Certificates and authorities are read for each connection: a change applies from the next
// one on.
func TestTLS_change(t *testing.T) {
	t.Parallel()
	before, after := certstest.NewAuthority(t, "before"), certstest.NewAuthority(t, "after")
	both := before.Pool()
	both.AppendCertsFromPEM(after.PEM())
	old, next := before.Issue([]string{"127.0.0.1"}).TLS(t), after.Issue([]string{"127.0.0.1"}).TLS(t)
	type set struct {
		own     tls.Certificate
		trusted *x509.CertPool
	}
	var n1, n2 atomic.Pointer[set]
	change := func(p *atomic.Pointer[set], own tls.Certificate, trusted *x509.CertPool) { p.Store(&set{own, trusted}) }
	change(&n1, old, before.Pool())
	change(&n2, old, before.Pool())
	open := func(id string, p *atomic.Pointer[set]) *Port {
		return openTestPort(t, id, func(c *Config) {
			c.Certificate = func() (tls.Certificate, *x509.CertPool) { s := p.Load(); return s.own, s.trusted }
		})
	}
	dialer, acceptor := open("n1", &n1), open("n2", &n2)
	acceptor.Handle("hi", func(context.Context, Hello, []byte) ([]byte, error) { return nil, nil })
	call := func() error {
		dialer.reapIdle(time.Now().Add(time.Hour)) // over a new one
		_, err := dialer.Call(t.Context(), acceptor.Addr(), "hi", nil)
		return err
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	for step, do := range []func(){
		func() { change(&n1, old, both) }, func() { change(&n2, old, both) },
		func() { change(&n1, next, both) }, func() { change(&n2, next, both) },
		func() { change(&n1, next, after.Pool()) }, func() { change(&n2, next, after.Pool()) },
	} {
		do()
		if err := call(); err != nil {
			t.Errorf("step %d: %v", step, err)
		}
	}
	change(&n2, next, before.Pool())
	if err := call(); !errors.Is(err, ErrRefused) {
		t.Errorf("over a new one: %v", err)
	}
}

// Silent strangers do not delay nodes, and are cut off.
func TestTLS_silentStrangers(t *testing.T) {
	t.Parallel()
	a := certstest.NewAuthority(t, "ours")
	certificate := peertest.Certificate(t, a, a.Issue([]string{"127.0.0.1"}))
	acceptor := openTestPort(t, "n2", func(c *Config) { c.Certificate, c.HandshakeTimeout = certificate, testWait })
	acceptor.SetForwardHandler(func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("done") })
	for range 1_000 {
		conn, err := net.Dial("tcp", acceptor.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	dialer := openTestPort(t, "n1", func(c *Config) { c.Certificate = certificate })
	req, resp := peertest.Submit("x")
	if _, err := dialer.Forward(t.Context(), acceptor.Addr(), testUUIDAt(acceptor.Addr()), nodes.Passing{}, req, resp); err != nil || string(resp.Body()) != "done" {
		t.Errorf("%q, %v", resp.Body(), err)
	}
	strict := openTestPort(t, "n3", func(c *Config) { c.Certificate, c.HandshakeTimeout = certificate, 50*time.Millisecond })
	conn, err := net.Dial("tcp", strict.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(testWait))
	if _, err := io.Copy(io.Discard, conn); isTimeout(err) {
		t.Errorf("a stranger was not cut off: %v", err)
	}
}

// The same with more strangers than possible handshakes: each further one cuts off the
// oldest.
func TestTLS_moreSilentStrangersThanHandshakes(t *testing.T) {
	t.Parallel()
	a := certstest.NewAuthority(t, "ours")
	certificate := peertest.Certificate(t, a, a.Issue([]string{"127.0.0.1"}))
	for name, tlsOn := range map[string]Certificate{"TLS": certificate, "no TLS": nil} {
		acceptor := openTestPort(t, "n2", func(c *Config) { c.Certificate, c.HandshakeTimeout = tlsOn, time.Hour })
		acceptor.SetForwardHandler(func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("done") })
		var first net.Conn
		for range handshakesMax {
			conn, err := net.Dial("tcp", acceptor.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if first == nil {
				first = conn
			}
		}
		dialer := openTestPort(t, "n1", func(c *Config) { c.Certificate = tlsOn })
		req, resp := peertest.Submit("x")
		if _, err := dialer.Forward(t.Context(), acceptor.Addr(), testUUIDAt(acceptor.Addr()), nodes.Passing{}, req, resp); err != nil || string(resp.Body()) != "done" {
			t.Errorf("%s: a node among strangers: %q, %v", name, resp.Body(), err)
		}
		_ = first.SetDeadline(time.Now().Add(testWait))
		if _, err := io.Copy(io.Discard, first); isTimeout(err) {
			t.Errorf("%s: the oldest was not cut off: %v", name, err)
		}
	}
}

// slowly is a connection on which something happens before the first answer is read.
type slowly struct {
	net.Conn
	before func()
}

func (s *slowly) Read(b []byte) (int, error) {
	s.before()
	return s.Conn.Read(b)
}

// A flood from elsewhere does not cut off a node that shakes hands slowly.
func TestPort_floodBesideASlowNode(t *testing.T) {
	t.Parallel()
	acceptor := openTestPort(t, "n2", func(c *Config) { c.HandshakeTimeout = time.Hour })
	acceptor.SetForwardHandler(func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("done") })
	flood := sync.OnceFunc(func() {
		last := ""
		for i := range handshakesMax + 10 {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%50))}}
			conn, err := d.Dial("tcp", acceptor.Addr())
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			last = conn.LocalAddr().String()
		}
		waitUntil(t, "the flood to be taken", func() bool {
			acceptor.mu.Lock()
			defer acceptor.mu.Unlock()
			return acceptor.pending.Back().Value.(pendingHandshake).conn.RemoteAddr().String() == last
		})
	})
	dialer := openTestPort(t, "n1", func(c *Config) {
		c.HandshakeTimeout = time.Hour
		c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "tcp", addr)
			return &slowly{conn, flood}, err
		}
	})
	req, resp := peertest.Submit("x")
	if _, err := dialer.Forward(t.Context(), acceptor.Addr(), testUUIDAt(acceptor.Addr()), nodes.Passing{}, req, resp); err != nil || string(resp.Body()) != "done" {
		t.Errorf("a slow node beside a flood: %q, %v", resp.Body(), err)
	}
}

// Garbage in place of a handshake ends its own connection, and leaves nothing behind.
func TestTLS_garbage(t *testing.T) {
	leavesNothing(t)
	a := certstest.NewAuthority(t, "ours")
	certificate := peertest.Certificate(t, a, a.Issue([]string{"127.0.0.1"}))
	seed := time.Now().UnixNano()
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	for name, tlsOn := range map[string]Certificate{"TLS": certificate, "no TLS": nil} {
		p := openTestPort(t, "n2", func(c *Config) { c.Certificate, c.HandshakeTimeout = tlsOn, 100*time.Millisecond })
		hellos := [][]byte{{}, {firstByteTLS, 3, 1}, newPreamble(PurposeRaft), clientHello(t), []byte("GET / HTTP/1.1\r\n\r\n")}
		var wg sync.WaitGroup
		for i := range 300 {
			text := bytes.Clone(hellos[i%len(hellos)])
			for range random.IntN(200) {
				text = append(text, byte(random.Uint32()))
			}
			if len(text) > 0 && i%3 == 0 {
				text[random.IntN(len(text))] ^= byte(1 << random.IntN(8))
			}
			wg.Go(func() {
				conn, err := net.Dial("tcp", p.Addr())
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(testWait))
				_, _ = conn.Write(text)
				if _, err := io.Copy(io.Discard, conn); isTimeout(err) {
					t.Errorf("%s, seed %d: %x was not cut off", name, seed, text)
				}
			})
		}
		wg.Wait()
		waitUntil(t, "no connection is left", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.inbound == 0 })
		dialer := openTestPort(t, "n1", func(c *Config) { c.Certificate = tlsOn })
		waitUntil(t, name+": a node is answered", func() bool { // a busy machine may need more than its 100 ms for a handshake
			_, err := dialer.Call(t.Context(), p.Addr(), "hi", nil)
			return err != nil && strings.Contains(err.Error(), "no such call")
		})
		if err := errors.Join(dialer.Close(), p.Close()); err != nil {
			t.Error(err)
		}
	}
}

// clientHello returns the first message of a TLS client.
func clientHello(t *testing.T) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	go func() { _ = tls.Client(theirs, &tls.Config{ServerName: "n2"}).Handshake() }()
	header := make([]byte, 5)
	if _, err := io.ReadFull(ours, header); err != nil {
		t.Fatal(err)
	}
	rest := make([]byte, int(header[3])<<8|int(header[4]))
	if _, err := io.ReadFull(ours, rest); err != nil {
		t.Fatal(err)
	}
	return append(header, rest...)
}
