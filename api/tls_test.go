package api

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/certs/certstest"
	"github.com/claimq/claimq/nodes"
)

// serversOverTLS in the environment makes every server of the tests use HTTPS, and their clients, too.
const serversOverTLS = "CLAIMQ_TEST_SERVERS_OVER_TLS"

// Runs the tests about clients' connections again over TLS.
func TestServer_allOverTLS(t *testing.T) {
	t.Parallel()
	if os.Getenv(serversOverTLS) != "" {
		return // this is that run
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.count=1",
		"-test.run=^TestServer_(WaitingGone|WaitingThere|WaitingDrained|Stream|StreamGone|StreamCompressed|StreamWithinPacket|StreamsDrain|KeepAlive|Protocol|ShutdownFinishes|Malformed|RefusedWhileSending)$")
	cmd.Env = append(os.Environ(), serversOverTLS+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

// testTLS returns the TLS configurations of a server for a loopback address and of its clients.
func testTLS(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	a := certstest.NewAuthority(t, "tests")
	return &tls.Config{Certificates: []tls.Certificate{a.Issue([]string{"127.0.0.1"}).TLS(t)}}, &tls.Config{RootCAs: a.Pool(), ServerName: "127.0.0.1"}
}

// allTLS has the configurations for all servers and clients of a run over TLS.
var allTLS struct {
	once           sync.Once
	server, client *tls.Config
}

// sharedTLS returns them.
func sharedTLS(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	allTLS.once.Do(func() { allTLS.server, allTLS.client = testTLS(t) })
	return allTLS.server, allTLS.client
}

// overTLS returns the address of a proxy that forwards plain connections to addr over TLS, including half-closes.
func overTLS(t *testing.T, addr string, cfg *tls.Config) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			passing.Go(func() { passOver(client.(*net.TCPConn), addr, cfg) })
		}
	})
	t.Cleanup(func() { _ = ln.Close(); passing.Wait() })
	return ln.Addr().String()
}

func passOver(client *net.TCPConn, addr string, cfg *tls.Config) {
	defer client.Close()
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer raw.Close()
	server := tls.Client(raw, cfg)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.CloseWrite()
	})
	if _, err := io.Copy(server, client); err != nil { // it was reset
		_ = raw.(*net.TCPConn).SetLinger(0)
		_ = raw.Close()
	} else {
		_ = errors.Join(server.CloseWrite(), raw.(*net.TCPConn).CloseWrite())
	}
	back.Wait()
}

// setupTLS returns a server with HTTPS, its address and the TLS configuration of its clients.
func setupTLS(t *testing.T, change func(server *tls.Config), options ...func(*Config)) (s *Server, node *nodetest.Node, addr string, client *tls.Config) {
	t.Helper()
	server, client := testTLS(t)
	if change != nil {
		change(server)
	}
	s, node = setup(t, append(options, func(c *Config) { c.TLS = server })...)
	return s, node, listen(t, s), client
}

func dialTLS(t *testing.T, addr string, cfg *tls.Config) *tls.Conn {
	t.Helper()
	raw := dialServer(t, addr)
	_ = raw.SetDeadline(time.Now().Add(time.Minute))
	return tls.Client(raw, cfg)
}

// A claim whose answer could not be written is released.
func TestServer_TLSUnsent(t *testing.T) {
	t.Parallel()
	s, node, addr, client := setupTLS(t, nil)
	submitOne(t, s, `{"params":0}`)
	began, gone := make(chan struct{}), make(chan struct{})
	node.OnPropose = func(_ context.Context, cmd command.Command) (nodes.Proposed, error) {
		if _, release := cmd.(command.Release); !release {
			close(began)
			<-gone
		}
		return node.Apply(cmd)
	}
	conn := dialTLS(t, addr, client)
	sendClaim(t, conn, `{"worker_id":"w"}`)
	<-began
	raw := conn.NetConn().(*net.TCPConn)
	if err := errors.Join(raw.SetLinger(0), raw.Close()); err != nil {
		t.Fatal(err)
	}
	close(gone)
	waitFor(t, func() bool { return s.core.port.Open() == 0 })
	if got := node.Machine.Get(1).Status; got != fsm.StatusPending {
		t.Errorf("the task is %s, want pending", got)
	}
}

// A client that uses plain HTTP on a port with TLS is told so.
func TestServer_PlainToTLS(t *testing.T) {
	t.Parallel()
	s, _, addr, _ := setupTLS(t, nil)
	for _, request := range []string{
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 1_000_000),
		"DELETE /api/tasks/1 HTTP/1.1\r\n",
	} {
		conn := dialServer(t, addr)
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		go func() { _, _ = io.WriteString(conn, request) }()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%.20s: %v", request, err)
		}
		body, err := io.ReadAll(resp.Body)
		var got wire.Refusal
		if err := errors.Join(err, json.Unmarshal(body, &got)); err != nil || resp.StatusCode != 400 || got.Code != wire.CodeInvalidRequest || !strings.Contains(got.Error, "speaks HTTPS") || !strings.Contains(got.Message, "https://") || got.RequestID == "" {
			t.Errorf("%.20s: %d %s, %v", request, resp.StatusCode, body, err)
		}
		_ = conn.Close()
	}
	// Anything else is closed.
	conn := dialServer(t, addr)
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, "hello\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(conn); strings.Contains(string(b), "HTTP") {
		t.Errorf("got %q", b)
	}
	waitFor(t, func() bool { return s.core.port.Open() == 0 })
}

// A client that uses TLS on a port without it fails at once.
func TestServer_TLSToPlain(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	_, client := testTLS(t)
	c := http.Client{Transport: &http.Transport{TLSClientConfig: client, DisableKeepAlives: true}}
	addr := listen(t, s)
	_, err := c.Get("https://" + addr + "/healthz")
	if err == nil || !strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		t.Errorf("got %v", err)
	}
	conn := dialServer(t, addr)
	if _, err := conn.Write([]byte{0x16, 3, 1, 0, 200, 1}); err != nil {
		t.Fatal(err)
	}
	got := receive(t, bufio.NewReader(conn))
	if f := got.refused(t, wire.CodeInvalidRequest); f["error"] != "The client speaks TLS and this port speaks plain HTTP" {
		t.Errorf("got %+v", got)
	}
}

// If client certificates are required, no request without a valid one is answered, and both sides are told.
func TestServer_TLSClients(t *testing.T) {
	t.Parallel()
	ours, others := certstest.NewAuthority(t, "ours"), certstest.NewAuthority(t, "others'")
	var log lockedText
	_, _, addr, client := setupTLS(t, func(c *tls.Config) {
		c.ClientAuth, c.ClientCAs, c.SessionTicketsDisabled = tls.RequireAndVerifyClientCert, ours.Pool(), true
	}, func(c *Config) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Debug}) })
	names := []string{"worker"}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for name, c := range map[string]struct {
			own  []tls.Certificate
			told string // "" = it is accepted
		}{
			"good":    {[]tls.Certificate{ours.Issue(names).TLS(t)}, ""},
			"none":    {nil, "remote error"}, // only TLS 1.3 has an alert for it
			"others'": {[]tls.Certificate{others.Issue(names).TLS(t)}, "unknown certificate authority"},
			"expired": {[]tls.Certificate{ours.Issue(names, certstest.Expired).TLS(t)}, "expired certificate"},
		} {
			cfg := client.Clone()
			cfg.MinVersion, cfg.MaxVersion = version, version
			if c.own != nil {
				// Otherwise crypto/tls would withhold certificates that the server did not request.
				cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c.own[0], nil }
			}
			conn := dialTLS(t, addr, cfg)
			_, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			var answer []byte
			if err == nil {
				answer, err = io.ReadAll(conn)
			}
			switch {
			case c.told == "" && (err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200")):
				t.Errorf("%s, %x: %q, %v", name, version, answer, err)
			case c.told != "" && (err == nil || !strings.Contains(err.Error(), "remote error: tls: ") || !strings.Contains(err.Error(), c.told) || len(answer) > 0):
				t.Errorf("%s, %x: %q, %v", name, version, answer, err)
			}
		}
	}
	waitFor(t, func() bool { return strings.Contains(log.String(), "refused a TLS connection") })
}

// Silent strangers are cut off, the oldest first if there are many, and do not hold up clients.
func TestServer_TLSStrangers(t *testing.T) {
	t.Parallel()
	s, _, addr, client := setupTLS(t, nil, func(c *Config) { c.handshakeTimeout = 3 * time.Second })
	var strangers []*net.TCPConn
	for range door.HandshakesMax + 100 {
		strangers = append(strangers, dialServer(t, addr))
	}
	conn := dialTLS(t, addr, client)
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, bufio.NewReader(conn)); got.status != 200 {
		t.Errorf("among strangers: %+v", got)
	}
	_ = strangers[0].SetDeadline(time.Now().Add(time.Minute))
	if _, err := strangers[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest is still there: %v", err)
	}
	for _, c := range strangers { // and the others at their timeout
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("one is still there: %v", err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	waitFor(t, func() bool { return s.core.port.Open() == 0 })
	if n := s.core.port.Handshakes(); n != 0 {
		t.Errorf("%d handshakes are left", n)
	}
}

// Garbage ends its own connection, and leaves nothing behind.
func TestServer_TLSGarbage(t *testing.T) {
	before := []goleak.Option{
		goleak.IgnoreCurrent(), // and goroutines that fasthttp ends later, or never
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	for _, secured := range []bool{true, false} {
		server, client := testTLS(t)
		cfg := Config{Node: nodetest.New()}
		if secured {
			cfg.TLS = server
		}
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var serving, asking sync.WaitGroup
		serving.Go(func() { _ = s.Serve(ln) })
		heads := []string{"", "\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03", "\x16\x03\x01", "\x80\x2e\x01", "GET / HTTP/1.1\r\n", "CLQ\x01r", "\x15\x03\x03\x00\x02\x02\x28"}
		for i := range 300 {
			text := []byte(heads[i%len(heads)])
			for range random.IntN(300) {
				text = append(text, byte(random.Uint32()))
			}
			within := secured && i%3 == 0 // the TLS is valid, its content is not
			asking.Go(func() {
				raw, err := net.Dial("tcp", ln.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				defer raw.Close()
				_ = raw.SetDeadline(time.Now().Add(time.Minute))
				conn := raw
				if within {
					conn = tls.Client(raw, client)
				}
				_, _ = conn.Write(text)
				_ = raw.(*net.TCPConn).CloseWrite()
				if b, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("TLS %v, seed %d: %x is not cut off, %q", secured, seed, text, b)
				}
			})
		}
		asking.Wait()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		serving.Wait()
		waitFor(t, func() bool { return s.core.port.Open() == 0 }) // the HTTP server closes a connection after it has counted it
	}
	goleak.VerifyNone(t, before...)
}

// lockedText is a log that a test can read.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
