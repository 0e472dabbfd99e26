package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"github.com/claimq/claimq/cluster/peer/peertest"
	"github.com/claimq/claimq/internal/testwait"
)

func TestMain(m *testing.M) {
	testwait.Together(4) // most wait for connections and their timeouts
	os.Exit(m.Run())
}

// testWait bounds every wait in the tests of this file, none of which takes long.
const testWait = 60 * time.Second

// logText is a log that a test can read.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logText) contains(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), part)
}

func (l *logText) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

func (l *logText) logger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Output: l, Level: hclog.Info})
}

// waitUntil looks at a condition until it holds.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("waited too long until %s", what)
		}
	}
}

// testAddrs maps addresses to the identities of the test ports and of the fakes.
var testAddrs sync.Map

// testUUIDAt returns the identity of the node at an address.
func testUUIDAt(addr string) string {
	uuid, _ := testAddrs.Load(addr)
	text, _ := uuid.(string)
	return text
}

// openTestPort opens a port for node nodeID on a free loopback port.
func openTestPort(t *testing.T, nodeID string, change ...func(*Config)) *Port {
	t.Helper()
	cfg := Config{
		ListenAddr: "127.0.0.1:0",
		JoinKeys:   onlyKey(testKey),
		Self:       func() Hello { return testHello(nodeID) },
		Signer:     peertest.Signer(nodeID),
		TargetUUID: testUUIDAt,

		Certificate:      certificateOfAll(t),
		HandshakeTimeout: testWait, // hundreds at once take a busy machine longer than the default
	}
	for _, c := range change {
		c(&cfg)
	}
	p, err := Listen(cfg)
	if err != nil {
		t.Fatalf("listenPeers: %v", err)
	}
	testAddrs.Store(p.listener.Addr().String(), p.cfg.Self().UUID)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// onlyKey returns the join keys of a port with one key.
func onlyKey(key []byte) func() JoinKeys { return func() JoinKeys { return JoinKeys{key} } }

// leavesNothing fails the test if it leaves a goroutine behind. The test must not be
// parallel.
func leavesNothing(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

func TestListen_errors(t *testing.T) {
	t.Parallel()
	taken := openTestPort(t, "n1")
	_, err := Listen(Config{ListenAddr: taken.Addr(), Self: func() Hello { return testHello("n2") }})
	if !errors.Is(err, ErrAddrInUse) || !strings.Contains(err.Error(), "--peer-addr") || !strings.Contains(err.Error(), taken.Addr()) {
		t.Errorf("taken address: got %v", err)
	}
	for name, tc := range map[string]struct{ listen, advertise, want string }{
		"every address":           {"0.0.0.0:0", "", "--peer-advertise"},
		"no address":              {"nonsense", "", "--peer-addr nonsense"},
		"advertised without port": {"127.0.0.1:0", "localhost", "--peer-advertise"},
		"advertised port 0":       {"127.0.0.1:0", "localhost:0", "--peer-advertise"},
	} {
		if _, err := Listen(Config{ListenAddr: tc.listen, Advertise: tc.advertise}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want an error that names %q", name, err, tc.want)
		}
	}
	advertising := openTestPort(t, "n3", func(c *Config) { c.Advertise = "n3.example:7401" })
	if got := advertising.StreamLayer().Addr().String(); got != "n3.example:7401" || advertising.Addr() != got {
		t.Errorf("advertised %q and %q", got, advertising.Addr())
	}
}

// A refused dialer reads why, and so does the operator of the other side.
func TestPort_refusalIsToldAndLogged(t *testing.T) {
	t.Parallel()
	var log logText
	acceptor := openTestPort(t, "n2", func(c *Config) { c.Logger = log.logger() })
	dialer := openTestPort(t, "n1", func(c *Config) { c.JoinKeys = nil })
	_, err := dialer.Call(t.Context(), acceptor.Addr(), "any", nil)
	const want = `node "n2" has a join key, node "n1" has none`
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) {
		t.Errorf("the dialer got %v", err)
	}
	waitUntil(t, "the acceptor has logged the refusal", func() bool { return log.contains("has none: give it the same file with --join-key-file") })
}

// A refusal reaches the dialer although the acceptor has not read everything that it sent.
func TestPort_oversizedHelloIsToldWhy(t *testing.T) {
	t.Parallel()
	p := openTestPort(t, "n2")
	conn := dialRaw(t, p.Addr())
	big := append(newPreamble(PurposeRaft), frameHello, 0xff, 0xff)
	if _, err := conn.Write(append(big, make([]byte, 0xffff)...)); err != nil {
		t.Logf("write: %v", err) // the acceptor may be gone before the end
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 1<<16))
	if !bytes.Contains(answer, []byte("over the bound")) {
		t.Fatalf("got %q, %v", answer, err)
	}
}

// A dialer that sends nothing, or half a hello, is cut off at the deadline.
func TestPort_slowHello(t *testing.T) {
	t.Parallel()
	p := openTestPort(t, "n2", func(c *Config) { c.HandshakeTimeout = 50 * time.Millisecond })
	frame, err := newHelloFrame(helloMessage{Hello: testHello("n1")}, true)
	if err != nil {
		t.Fatal(err)
	}
	whole := append(newPreamble(PurposeRaft), frame...)
	for _, sent := range [][]byte{nil, whole[:3], whole[:len(whole)-1], whole} {
		conn := dialRaw(t, p.Addr())
		_, _ = conn.Write(sent) // on a busy machine it may be cut off already
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
			t.Errorf("after %d bytes the port kept the connection", len(sent))
		}
	}
	waitUntil(t, "the port has forgotten them", func() bool { return connCount(p) == 0 })
}

// A node that answers nothing holds up a dialer no longer than the handshake's timeout, or
// the caller's context.
func TestPort_silentAcceptor(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	quick := openTestPort(t, "n1", func(c *Config) { c.HandshakeTimeout = 50 * time.Millisecond })
	if _, err := quick.Call(t.Context(), silent.Addr().String(), "any", nil); err == nil {
		t.Error("a call to a silent port succeeded")
	}
	patient := openTestPort(t, "n1", func(c *Config) { c.HandshakeTimeout = time.Hour })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := patient.Call(ctx, silent.Addr().String(), "any", nil); err == nil {
		t.Error("a call to a silent port succeeded")
	}
}

// Random bytes at the real port: it keeps working, and nothing is left over.
func TestPort_randomBytes(t *testing.T) {
	leavesNothing(t)
	p := openTestPort(t, "n2", func(c *Config) { c.HandshakeTimeout = 100 * time.Millisecond })
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	frame, err := newHelloFrame(helloMessage{Hello: testHello("n1")}, true)
	if err != nil {
		t.Fatal(err)
	}
	valid := append(newPreamble(PurposeHTTP), frame...)
	for range 300 {
		sent := bytes.Clone(valid)
		for range rnd.IntN(8) {
			sent[rnd.IntN(len(sent))] = byte(rnd.Uint32())
		}
		sent = sent[:rnd.IntN(len(sent)+1)]
		conn := dialRaw(t, p.Addr())
		_, _ = conn.Write(sent)
		_ = conn.Close()
	}
	p.Handle("echo", echoCall)
	friend := openTestPort(t, "n1")
	waitUntil(t, "it answers a friend", func() bool { // its handshake may take more than 100 ms, too
		got, err := friend.Call(t.Context(), p.Addr(), "echo", []byte(`"still here"`))
		return err == nil && string(got) == `"still here"`
	})
	waitUntil(t, "only the friend is connected", func() bool { return connCount(p) == 1 })
}

func TestPort_Close(t *testing.T) {
	leavesNothing(t)
	a, b := openTestPort(t, "n1"), openTestPort(t, "n2")
	entered, left := make(chan struct{}), make(chan struct{})
	b.Handle("wait", func(ctx context.Context, _ Hello, _ []byte) ([]byte, error) {
		defer close(left)
		close(entered)
		<-ctx.Done()
		<-time.After(50 * time.Millisecond) // a slow handler
		return nil, ctx.Err()
	})
	called := make(chan error, 1)
	go func() {
		_, err := a.Call(t.Context(), b.Addr(), "wait", nil)
		called <- err
	}()
	<-entered
	stranger := dialRaw(t, b.Addr())
	defer stranger.Close()

	if err := b.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	select {
	case <-left:
	default:
		t.Error("Close returned while a handler ran")
	}
	if err := <-called; err == nil {
		t.Error("a call outlived the node that it asked")
	}
	if err := b.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	if _, err := b.StreamLayer().Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept on a closed port: %v", err)
	}
	if _, err := b.Call(t.Context(), a.Addr(), "any", nil); err == nil {
		t.Error("a closed port made a call")
	}
}

func TestPort_Call(t *testing.T) {
	t.Parallel()
	a, b := openTestPort(t, "n1"), openTestPort(t, "n2")
	b.Handle("echo", echoCall)
	b.Handle("who", func(_ context.Context, from Hello, _ []byte) ([]byte, error) {
		return []byte(from.NodeID + " " + from.UUID), nil
	})
	b.Handle("refuse", func(context.Context, Hello, []byte) ([]byte, error) { return nil, errors.New("not today") })
	b.Handle("big", func(context.Context, Hello, []byte) ([]byte, error) { return make([]byte, callBodyMax+1), nil })

	largest := bytes.Repeat([]byte("x"), callBodyMax)
	if got, err := a.Call(t.Context(), b.Addr(), "echo", largest); err != nil || !bytes.Equal(got, largest) {
		t.Errorf("the largest body: %d bytes back, %v", len(got), err)
	}
	if got, err := a.Call(t.Context(), b.Addr(), "who", nil); err != nil || string(got) != "n1 "+peertest.UUID("n1") {
		t.Errorf("who: got %q, %v", got, err)
	}
	if _, err := a.Call(t.Context(), b.Addr(), "echo", append(largest, 'x')); err == nil {
		t.Error("a body over the bound was sent")
	}
	for name, want := range map[string]string{"refuse": "not today", "unknown": "no such call: unknown", "big": "over 1.0 MiB"} {
		_, err := a.Call(t.Context(), b.Addr(), name, nil)
		var remote *CallError
		if !errors.As(err, &remote) || remote.Text == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a peerError with %q", name, err, want)
		}
	}
	if n := connCount(a); n != 1 {
		t.Errorf("calls one after the other used %d connections, want 1", n)
	}
}

func echoCall(_ context.Context, _ Hello, body []byte) ([]byte, error) { return body, nil }

// Idle connections are closed, and pools of addresses that are no longer asked are dropped.
func TestPort_reapIdle(t *testing.T) {
	t.Parallel()
	a, b := openTestPort(t, "n1"), openTestPort(t, "n2")
	b.Handle("echo", echoCall)
	if _, err := a.Call(t.Context(), b.Addr(), "echo", []byte("1")); err != nil {
		t.Fatal(err)
	}
	a.reapIdle(time.Now().Add(-time.Hour))
	if n := connCount(a); n != 1 {
		t.Fatalf("a fresh connection was closed: %d left", n)
	}
	a.reapIdle(time.Now().Add(time.Hour))
	if n := connCount(a); n != 0 {
		t.Errorf("%d connections left", n)
	}
	a.mu.Lock()
	pools := len(a.pools)
	a.mu.Unlock()
	if pools != 0 {
		t.Errorf("%d pools left", pools)
	}
}

// The number of nodes that may hold a connection to this one is bounded.
func TestPort_inboundBound(t *testing.T) {
	t.Parallel()
	p := openTestPort(t, "n2")
	p.mu.Lock()
	p.inbound = inboundConnsMax
	p.mu.Unlock()
	conn := dialRaw(t, p.Addr())
	if n, err := io.Copy(io.Discard, conn); n != 0 || isTimeout(err) {
		t.Errorf("a connection past the bound was kept: %d bytes, %v", n, err)
	}
}

// A node that wants to join makes one small call per connection, and their number is
// bounded: the oldest connection is closed.
func TestPort_meetsBound(t *testing.T) {
	t.Parallel()
	p, dialer := openTestPort(t, "n2"), openTestPort(t, "n1")
	p.Handle(CallWho, echoCall)
	if got, err := dialer.Call(t.Context(), p.Addr(), CallWho, make([]byte, meetBodyMax)); err != nil || len(got) != meetBodyMax {
		t.Errorf("the largest call: %d bytes, %v", len(got), err)
	}
	var remote *CallError
	if _, err := dialer.Call(t.Context(), p.Addr(), CallWho, make([]byte, meetBodyMax+1)); err == nil {
		t.Error("a larger call was answered")
	} else if errors.As(err, &remote) && remote.Status != fasthttp.StatusRequestEntityTooLarge {
		t.Errorf("a larger call: %v", err)
	}
	conns := make([]*peerConn, meetsMax+1)
	for i := range conns {
		var err error
		if conns[i], err = dialer.dial(t.Context(), p.Addr(), PurposeMeet, ""); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
		waitUntil(t, "it waits for a call", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.meeting.Len() == min(i+1, meetsMax)
		})
	}
	_ = conns[0].SetDeadline(time.Now().Add(readTimeout / 2)) // then it would go anyway
	if n, err := io.Copy(io.Discard, conns[0]); n != 0 || isTimeout(err) {
		t.Errorf("the oldest was kept: %d bytes, %v", n, err)
	}
}

func dialRaw(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(testWait))
	return secureFake(t, conn, true)
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func connCount(p *Port) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}
