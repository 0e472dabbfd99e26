package client

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/internal/repeat"
	"github.com/claimq/claimq/internal/testwait"
)

// wires is a network with one server in a bubble. When it freezes, its connections stay open but carry nothing, as
// with a machine that has lost power; new connections work.
type wires struct {
	accept chan net.Conn
	epoch  atomic.Int64
	made   atomic.Int64
	holes  []string // hosts whose packets are dropped
}

func newWires(t *testing.T, serve http.Handler) *wires {
	w := &wires{accept: make(chan net.Conn)}
	server := &http.Server{Handler: serve}
	go server.Serve(w)
	t.Cleanup(func() { server.Close() })
	return w
}

func (w *wires) Accept() (net.Conn, error) {
	c, ok := <-w.accept
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (w *wires) Close() error   { close(w.accept); return nil }
func (w *wires) Addr() net.Addr { return &net.TCPAddr{} }

func (w *wires) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(address)
	if slices.Contains(w.holes, host) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	w.made.Add(1)
	here, there := net.Pipe()
	w.accept <- there
	return &frail{Conn: here, w: w, born: w.epoch.Load(), closed: make(chan struct{})}, nil
}

// frail is a connection that may freeze.
type frail struct {
	net.Conn
	w      *wires
	born   int64
	once   sync.Once
	closed chan struct{}
}

func (f *frail) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	if f.w.epoch.Load() != f.born {
		<-f.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (f *frail) Write(b []byte) (int, error) {
	if f.w.epoch.Load() != f.born {
		return len(b), nil
	}
	return f.Conn.Write(b)
}

func (f *frail) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.Conn.Close()
}

// connected returns a client of a bubble's network. The caller closes it.
func connected(t *testing.T, w *wires, endpoints ...string) *Client {
	t.Helper()
	c, err := New(Config{Endpoints: endpoints, Dial: w.dial})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// After one call without an answer on a reused connection, the client does not trust the others and does not try each
// of them.
func TestClient_connectionsThatAreDead(t *testing.T) {
	t.Parallel()
	for _, idle := range []int{1, 4, 60} {
		synctest.Test(t, func(t *testing.T) {
			gate := make(chan struct{})
			w := newWires(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					<-gate
				}
				says(200, pendingTask)(rw, r)
			}))
			c := connected(t, w, "http://a:1")
			var calls sync.WaitGroup
			for range idle {
				calls.Go(func() { c.Get(t.Context(), "17") })
			}
			synctest.Wait()
			close(gate)
			calls.Wait()
			if n := w.made.Load(); n != int64(idle) {
				t.Fatalf("%d connections, want %d", n, idle)
			}
			w.epoch.Add(1)
			begun := time.Now()
			submit(t, c)
			if took := time.Since(begun); took > headerTimeout+time.Second {
				t.Errorf("with %d dead connections it took %v", idle, took)
			}
			c.Close()
		})
	}
}

// A claim and a Wait on a dead connection start again within 10 s.
func TestClient_waitsThatAreDead(t *testing.T) {
	t.Parallel()
	const most = 10 * time.Second
	for name, wait := range map[string]func(c *Client) error{
		"claim": func(c *Client) error {
			_, err := c.ClaimNext(context.Background(), ClaimRequest{WorkerID: "w1", Wait: time.Hour, Lease: time.Hour})
			return err
		},
		"wait": func(c *Client) error { _, err := c.Wait(context.Background(), "17"); return err },
	} {
		synctest.Test(t, func(t *testing.T) {
			var frozen atomic.Bool
			w := newWires(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if frozen.Load() {
					says(200, strings.Replace(claimedTask, `"status":"claimed"`, `"status":"completed"`, 1))(rw, r)
					return
				}
				select {
				case <-time.After(repeat.PollMax):
					says(404, `{"success":false,"error":"E","code":"no_pending_tasks","message":"M","request_id":"R"}`)(rw, r)
				case <-r.Context().Done():
				}
			}))
			c := connected(t, w, "http://a:1")
			done := make(chan error, 1)
			go func() { done <- wait(c) }()
			synctest.Wait()
			w.epoch.Add(1)
			frozen.Store(true)
			begun := time.Now()
			if err := <-done; err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(begun); took > most {
				t.Errorf("%s: it took %v", name, took)
			}
			c.Close()
		})
	}
}

// If the advertised address cannot be reached from the client, only a few calls lose time with it.
func TestClient_advertisedAddressThatIsAHole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWires(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if r.Header.Get("X-Claimq-Redirect") == "1" {
				redirects("http://hole:1")(rw, r)
				return
			}
			says(201, pendingTask)(rw, r)
		}))
		w.holes = []string{"hole"}
		c := connected(t, w, "http://a:1", "http://b:1")
		var slow atomic.Int64
		var calls sync.WaitGroup
		for range 3000 { // five minutes
			calls.Go(func() {
				begun := time.Now()
				if _, err := c.Get(t.Context(), "17"); err != nil {
					t.Error(err)
				}
				if time.Since(begun) > 500*time.Millisecond {
					slow.Add(1)
				}
			})
			<-time.After(100 * time.Millisecond)
		}
		calls.Wait()
		if n := slow.Load(); n == 0 || n > 8 { // after 3 s, 6, 12, 24, 48, 96
			t.Errorf("%d of 3000 calls are slow", n)
		}
		c.Close()
	})
}

// A Config.Dial that hangs and ignores its context does not hold calls up for long, and a connection that it makes
// too late is closed.
func TestConfig_Dial_hangs(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWires(t, http.HandlerFunc(says(201, pendingTask)))
			go2, late := make(chan struct{}), &frail{closed: make(chan struct{})}
			late.Conn, _ = net.Pipe()
			dial := func(ctx context.Context, network, address string) (net.Conn, error) {
				switch {
				case !strings.HasPrefix(address, "hole"):
					return w.dial(ctx, network, address)
				case deaf:
					<-go2
					return late, nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}
			c, err := New(Config{Endpoints: []string{"http://hole:1", "http://a:1"}, Dial: dial})
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			submit(t, c)
			if took := time.Since(begun); took > ownDialTimeout+time.Second {
				t.Errorf("deaf %v: it took %v", deaf, took)
			}
			close(go2)
			if deaf {
				<-late.closed
			}
			c.Close()
		})
	}
}

// A Config.Dial that succeeds is never taken for one that was abandoned.
func TestConfig_Dial_keepsEachConnection(t *testing.T) {
	t.Parallel()
	dial := bounded(func(context.Context, string, string) (net.Conn, error) {
		conn, _ := net.Pipe()
		return conn, nil
	})
	for i := range 20_000 {
		conn, err := dial(t.Context(), "tcp", "a:1")
		if err != nil {
			t.Fatalf("dial %d: %v", i, err)
		}
		conn.Close()
	}
}

// nameServers resolves names for all tests of the package.
var nameServers = names{asked: map[question]bool{}}

func TestMain(m *testing.M) {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: nameServers.dial}
	testwait.Together(4) // most wait for timers and connections
	os.Exit(m.Run())
}

// A name server that does not answer leaves enough time to connect.
func TestClient_nameServerThatIsDead(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(says(201, pendingTask)))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	c, err := New(Config{Endpoints: []string{"http://node.claimq.test.:" + port}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	submit(t, c)
	nameServers.mu.Lock()
	defer nameServers.mu.Unlock()
	if len(nameServers.asked) == 0 {
		t.Error("no name server was asked")
	}
}

// names are two name servers. The first does not answer; the second resolves every name to 127.0.0.1.
type names struct {
	mu    sync.Mutex
	asked map[question]bool
}

// question is a lookup by a request, of A or AAAA records.
type question struct {
	of   *httptrace.ClientTrace
	kind uint16
}

func (n *names) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	go n.answer(there, httptrace.ContextClientTrace(ctx))
	return here, nil
}

func (n *names) answer(c net.Conn, of *httptrace.ClientTrace) {
	defer c.Close()
	var size uint16
	if binary.Read(c, binary.BigEndian, &size) != nil {
		return
	}
	q := make([]byte, size)
	if _, err := io.ReadFull(c, q); err != nil {
		return
	}
	end := 12 + slices.Index(q[12:], 0) + 5 // after the name, its type and class
	kind := binary.BigEndian.Uint16(q[end-4:])
	n.mu.Lock()
	first := !n.asked[question{of, kind}]
	n.asked[question{of, kind}] = true
	n.mu.Unlock()
	if first {
		io.Copy(io.Discard, c) // until the other side closes
		return
	}
	a := append(slices.Clone(q[:2]), 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0)
	a = append(a, q[12:end]...)
	if kind == 1 {
		a[7] = 1
		a = append(a, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
	}
	c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...))
}

// A slow or refusing address of a name delays the next one only for a moment.
func TestDialFirst(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for _, c := range []struct {
		takes []time.Duration // of each address, -1: it refuses
		want  int             // -1: none
		after time.Duration
	}{
		{[]time.Duration{0}, 0, 0},
		{[]time.Duration{-1, 0}, 1, 0},
		{[]time.Duration{-1, -1}, -1, 0},
		{[]time.Duration{time.Hour, 0}, 1, connectNext},
		{[]time.Duration{time.Second, time.Hour, time.Hour}, 0, time.Second},
		{[]time.Duration{time.Hour, time.Hour}, -1, connectTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), connectTimeout)
			defer cancel()
			conns := make([]*frail, len(c.takes))
			for i := range conns {
				conns[i] = &frail{closed: make(chan struct{})}
				conns[i].Conn, _ = net.Pipe()
			}
			begun := time.Now()
			conn, err := dialFirst(ctx, len(c.takes), func(i int) (net.Conn, error) {
				if c.takes[i] < 0 {
					return nil, refused
				}
				<-time.After(c.takes[i])
				return conns[i], nil
			})
			if took := time.Since(begun); took != c.after || (err == nil) != (c.want >= 0) || err == nil && conn != conns[c.want] {
				t.Errorf("%v: %v after %v", c.takes, err, took)
			}
			for i, f := range conns { // late ones are closed
				if i != c.want && c.takes[i] > 0 && time.Duration(i)*connectNext <= c.after {
					<-f.closed
				}
			}
		})
	}
}

// A tls.Config that offers h2, for example because another client has used it, speaks HTTP/1.1 here.
func TestConfig_TLS_h2(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(says(201, pendingTask)))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	own := &tls.Config{RootCAs: roots, NextProtos: []string{"h2", "http/1.1"}}
	c, err := New(Config{Endpoints: []string{server.URL}, TLS: own})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	submit(t, c)
	if len(own.NextProtos) != 2 {
		t.Error("the program's config is changed")
	}
}
