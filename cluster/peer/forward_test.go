package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/cluster/peer/peertest"
	"github.com/claimq/claimq/nodes"
)

// fakePeer shakes hands like a node, and then does what the test says.
type fakePeer struct {
	addr     string
	accepted atomic.Int32
}

// openFakePeer serves each connection with serve, which gets its number, starting at one,
// and closes it afterwards.
func openFakePeer(t *testing.T, serve func(n int, conn net.Conn, r *bufio.Reader)) *fakePeer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakePeer{addr: listener.Addr().String()}
	testAddrs.Store(f.addr, peertest.UUID("n2"))
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			n := int(f.accepted.Add(1))
			wg.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(testWait))
				conn = secureFake(t, conn, false)
				h := testHandshake("n2")
				var err error
				h.channel, err = channelOf(conn)
				if err != nil {
					return
				}
				if _, _, err := h.accept(conn); err == nil {
					serve(n, conn, bufio.NewReader(conn))
				}
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); wg.Wait() })
	return f
}

func readRequest(r *bufio.Reader) error {
	var req fasthttp.Request
	return req.Read(r)
}

// A request that was not sent was not done; one that may have been sent has an unknown
// outcome. Nothing is ever sent twice.
func TestPort_Forward_errors(t *testing.T) {
	t.Parallel()
	const large = 4 << 20 // more than the sockets' buffers
	cases := map[string]struct {
		serve func(n int, conn net.Conn, r *bufio.Reader)
		body  int
		want  error
	}{
		"closed while it reads": {
			func(_ int, conn net.Conn, r *bufio.Reader) { _, _ = io.ReadFull(r, make([]byte, 100)) }, large, nodes.ErrOutcomeUnknown,
		},
		"closed after it has read": {
			func(_ int, _ net.Conn, r *bufio.Reader) { _ = readRequest(r) }, 10, nodes.ErrOutcomeUnknown,
		},
		"closed within the answer's headers": {
			func(_ int, conn net.Conn, r *bufio.Reader) {
				_ = readRequest(r)
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Le")
			}, 10, nodes.ErrOutcomeUnknown,
		},
		"closed within the answer's body": {
			func(_ int, conn net.Conn, r *bufio.Reader) {
				_ = readRequest(r)
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"suc")
			}, 10, nodes.ErrOutcomeUnknown,
		},
		"closed within a chunk": {
			func(_ int, conn net.Conn, r *bufio.Reader) {
				_ = readRequest(r)
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
			}, 10, nodes.ErrOutcomeUnknown,
		},
		"answers without a length": {
			func(_ int, conn net.Conn, r *bufio.Reader) {
				_ = readRequest(r)
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n{\"success\":true}")
			}, 10, nodes.ErrOutcomeUnknown,
		},
		"answers with what is no HTTP": {
			func(_ int, conn net.Conn, r *bufio.Reader) {
				_ = readRequest(r)
				_, _ = io.WriteString(conn, "hello there\r\n\r\n")
			}, 10, nodes.ErrOutcomeUnknown,
		},
		"answers too much": {
			func(_ int, conn net.Conn, r *bufio.Reader) {
				_ = readRequest(r)
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", forwardAnswerMax+1)
			}, 10, nodes.ErrOutcomeUnknown,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := openFakePeer(t, tc.serve)
			p := openTestPort(t, "n1")
			req, resp := peertest.Submit(strings.Repeat("x", tc.body))
			err := p.Forward(t.Context(), fake.addr, req, resp, nil)
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if len(resp.Body()) != 0 || resp.StatusCode() != fasthttp.StatusOK {
				t.Errorf("the answer is not empty: %d %q", resp.StatusCode(), resp.Body())
			}
			if n := fake.accepted.Load(); n != 1 {
				t.Errorf("%d connections for one request", n)
			}
			waitUntil(t, "the connection is gone", func() bool { return connCount(p) == 0 })
		})
	}
}

func TestPort_Forward_nothingSent(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	p := openTestPort(t, "n1")
	other := openTestPort(t, "n2", func(c *Config) { c.JoinKeys = onlyKey(testOtherKey) })
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx  context.Context
		addr string
	}{
		"nobody listens":         {t.Context(), closed.Addr().String()},
		"refused":                {t.Context(), other.Addr()},
		"cancelled before":       {cancelled, other.Addr()},
		"an address that's none": {t.Context(), "nonsense"},
	} {
		req, resp := peertest.Submit("{}")
		if err := p.Forward(tc.ctx, tc.addr, req, resp, nil); !errors.Is(err, nodes.ErrNoLeader) || errors.Is(err, nodes.ErrOutcomeUnknown) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	_ = p.Close()
	req, resp := peertest.Submit("{}")
	if err := p.Forward(t.Context(), other.Addr(), req, resp, nil); !errors.Is(err, nodes.ErrShuttingDown) {
		t.Errorf("closed port: got %v", err)
	}
}

// The caller's context ends the wait, and the outcome of a sent request is unknown.
func TestPort_Forward_context(t *testing.T) {
	t.Parallel()
	received := make(chan struct{}, 2)
	fake := openFakePeer(t, func(_ int, _ net.Conn, r *bufio.Reader) {
		_ = readRequest(r)
		received <- struct{}{}
		_, _ = r.ReadByte() // until the other side gives up
	})
	p := openTestPort(t, "n1")

	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-received; cancel() }()
	req, resp := peertest.Submit("{}")
	if err := p.Forward(ctx, fake.addr, req, resp, nil); !errors.Is(err, nodes.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}

	ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	req, resp = peertest.Submit("{}")
	if err := p.Forward(ctx, fake.addr, req, resp, nil); !errors.Is(err, nodes.ErrOutcomeUnknown) {
		t.Errorf("past the deadline: got %v", err)
	}
}

// A kept-alive connection that the peer has closed is not used: the request goes out once,
// on a new one.
func TestPort_Forward_staleConnection(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	fake := openFakePeer(t, func(n int, conn net.Conn, r *bufio.Reader) {
		if readRequest(r) != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		if n == 1 {
			_ = conn.Close()
			close(gone)
			return
		}
		_, _ = r.ReadByte()
	})
	p := openTestPort(t, "n1")
	for range 2 {
		req, resp := peertest.Submit("{}")
		if err := p.Forward(t.Context(), fake.addr, req, resp, nil); err != nil || string(resp.Body()) != "{}" {
			t.Fatalf("forward: %q, %v", resp.Body(), err)
		}
		<-gone
		waitUntil(t, "the end has arrived", func() bool { return idleClosedByPeer(p, fake.addr) || fake.accepted.Load() == 2 })
	}
	if n := fake.accepted.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

func idleClosedByPeer(p *Port, addr string) bool {
	pool := p.acquirePool(addr)
	defer p.releasePool(pool)
	pool.mu.Lock()
	defer pool.mu.Unlock()
	for _, c := range pool.idle {
		if !c.closedByPeer() {
			return false
		}
	}
	return true
}

// An answer too large for the caller is not read; the caller learns why.
func TestPort_Forward_noRoom(t *testing.T) {
	t.Parallel()
	p, leader := openTestPort(t, "n1"), openTestPort(t, "n2")
	leader.SetForwardHandler(func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("12345") })
	full := errors.New("full")
	for _, room := range []error{full, nil} {
		req, resp := peertest.Submit("{}")
		asked := 0
		err := p.Forward(t.Context(), leader.Addr(), req, resp, func(n int) error { asked = n; return room })
		if asked != 5 {
			t.Errorf("asked for %d bytes, want 5", asked)
		}
		if !errors.Is(err, room) || room != nil && (!errors.Is(err, nodes.ErrOutcomeUnknown) || len(resp.Body()) > 0) || room == nil && string(resp.Body()) != "12345" {
			t.Errorf("room %v: %q, %v", room, resp.Body(), err)
		}
	}
}

// A request arrives unchanged, and so does its answer.
func TestPort_Forward_isFaithful(t *testing.T) {
	t.Parallel()
	p, leader := openTestPort(t, "n1"), openTestPort(t, "n2")
	req, resp := peertest.Submit(`{"task_type":"email"}`)
	if err := p.Forward(t.Context(), leader.Addr(), req, resp, nil); err != nil || resp.StatusCode() != fasthttp.StatusServiceUnavailable || !strings.Contains(string(resp.Body()), `"no_leader"`) {
		t.Fatalf("before a handler is set: %d %q, %v", resp.StatusCode(), resp.Body(), err)
	}
	leader.SetForwardHandler(func(ctx *fasthttp.RequestCtx) {
		ctx.SetStatusCode(fasthttp.StatusConflict)
		ctx.Response.Header.Set("X-Claimq-Index", "7")
		fmt.Fprintf(ctx, "%s %s %s %s %s", ctx.Method(), ctx.Request.Header.RequestURI(), ctx.Request.Header.Peek("X-Test"), ctx.Host(), ctx.Request.Body())
	})

	req.Header.SetConnectionClose()
	req.Header.Set("X-Test", "a b")
	req.Header.Set("Expect", "100-continue")
	req.SetRequestURI("/api/tasks/by-key/a%2Fb%20c?x=1&y=%20#no")
	_ = req.URI().Path() // as a router would, before it forwards the request
	if err := p.Forward(t.Context(), leader.Addr(), req, resp, nil); err != nil {
		t.Fatal(err)
	}
	want := `POST /api/tasks/by-key/a%2Fb%20c?x=1&y=%20 a b n1.example {"task_type":"email"}`
	if got := string(resp.Body()); got != want || resp.StatusCode() != fasthttp.StatusConflict || string(resp.Header.Peek("X-Claimq-Index")) != "7" {
		t.Errorf("got  %s\nwant %s (%d)", got, want, resp.StatusCode())
	}
	if resp.ConnectionClose() || !req.Header.ConnectionClose() {
		t.Error("the client's wish to close its connection was not kept where it belongs")
	}

	leader.SetForwardHandler(func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("12345") })
	req.Header.SetMethod(fasthttp.MethodHead)
	req.ResetBody()
	req.Header.Del("Expect")
	if err := p.Forward(t.Context(), leader.Addr(), req, resp, nil); err != nil || resp.Header.ContentLength() != 5 {
		t.Errorf("HEAD: %v, length %d", err, resp.Header.ContentLength())
	}
	leader.SetForwardHandler(func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(fasthttp.StatusNoContent) })
	req.Header.SetMethod(fasthttp.MethodGet)
	if err := p.Forward(t.Context(), leader.Addr(), req, resp, nil); err != nil || resp.StatusCode() != fasthttp.StatusNoContent {
		t.Errorf("no content: %v, %d", err, resp.StatusCode())
	}
	if n := connCount(p); n != 1 {
		t.Errorf("used %d connections, want 1", n)
	}
}

// Requests from clients, including odd ones, keep their framing.
func TestPort_Forward_framing(t *testing.T) {
	t.Parallel()
	p, leader := openTestPort(t, "n1"), openTestPort(t, "n2")
	leader.SetForwardHandler(func(ctx *fasthttp.RequestCtx) { fmt.Fprintf(ctx, "%s %q", ctx.Method(), ctx.Request.Body()) })
	for raw, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: n1\r\n\r\n":                                                                            `GET ""`,
		"GET / HTTP/1.1\r\nHost: n1\r\nContent-Length: 2\r\n\r\n{}":                                                     `GET "{}"`,
		"GET / HTTP/1.1\r\nHost: n1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":                                     `GET ""`,
		"POST / HTTP/1.1\r\nHost: n1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n":                         `POST "{}"`,
		"POST / HTTP/1.1\r\nHost: n1\r\nContent-Length: 0\r\n\r\n":                                                      `POST ""`,
		"POST / HTTP/1.0\r\nHost: n1\r\nContent-Length: 2\r\n\r\n{}":                                                    `POST "{}"`,
		"POST / HTTP/1.1\r\nHost: n1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 2\r\n\r\n{}": `POST "{}"`,
		"DELETE / HTTP/1.1\r\nHost: n1\r\n\r\n":                                                                         `DELETE ""`,
	} {
		var req fasthttp.Request
		var resp fasthttp.Response
		if err := req.Read(bufio.NewReader(strings.NewReader(raw))); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), testWait)
		if err := p.Forward(ctx, leader.Addr(), &req, &resp, nil); err != nil || string(resp.Body()) != want {
			t.Errorf("%q: got %s, want %s, %v", raw, resp.Body(), want, err)
		}
		cancel()
	}
}

// A client of the API cannot make its request pass for a node's call.
func TestPort_Forward_isNoCall(t *testing.T) {
	t.Parallel()
	p, leader := openTestPort(t, "n1"), openTestPort(t, "n2")
	leader.Handle("join", func(context.Context, Hello, []byte) ([]byte, error) {
		t.Error("a client made a node's call")
		return nil, nil
	})
	leader.SetForwardHandler(func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(fasthttp.StatusNotFound) })
	for _, target := range []string{"/peer/join", "http://n1/peer/join", "/x/../peer/join", "//peer/join", "/%70eer/join", "/peer/../peer/join", "/peer/join?x=1"} {
		var req fasthttp.Request
		var resp fasthttp.Response
		raw := "POST " + target + " HTTP/1.1\r\nHost: n1\r\nContent-Length: 2\r\n\r\n{}"
		if err := req.Read(bufio.NewReader(strings.NewReader(raw))); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		if err := p.Forward(t.Context(), leader.Addr(), &req, &resp, nil); err != nil || resp.StatusCode() != fasthttp.StatusNotFound {
			t.Errorf("%s: %d, %v", target, resp.StatusCode(), err)
		}
	}
}

// The largest headers and the largest body that the API accepts can be forwarded.
func TestPort_Forward_largest(t *testing.T) {
	t.Parallel()
	const apiHeaderMax, apiBodyMax = 12 << 10, 8 << 20
	p, leader := openTestPort(t, "n1"), openTestPort(t, "n2")
	leader.SetForwardHandler(func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("served") })
	req, resp := peertest.Submit("{}")
	req.Header.Set("X-Long", strings.Repeat("x", apiHeaderMax))
	if err := p.Forward(t.Context(), leader.Addr(), req, resp, nil); err != nil || string(resp.Body()) != "served" {
		t.Errorf("headers: %v, %d %q", err, resp.StatusCode(), resp.Body())
	}
	req, resp = peertest.Submit(strings.Repeat("x", apiBodyMax))
	if err := p.Forward(t.Context(), leader.Addr(), req, resp, nil); err != nil || string(resp.Body()) != "served" {
		t.Errorf("body: %v, %d %q", err, resp.StatusCode(), resp.Body())
	}
}

// Many requests can be under way at once; beyond the bound they wait for a free connection.
func TestPort_Forward_manyAtOnce(t *testing.T) {
	leavesNothing(t)
	p, leader := openTestPort(t, "n1"), openTestPort(t, "n2")
	const waves = 2
	var here sync.WaitGroup
	here.Add(connsPerPeerMax)
	var count atomic.Int32
	leader.SetForwardHandler(func(ctx *fasthttp.RequestCtx) {
		if count.Add(1) <= connsPerPeerMax {
			here.Done()
			here.Wait() // until all that fit are here together
		}
		ctx.SetBody(ctx.Request.Body())
	})
	var wg sync.WaitGroup
	for i := range waves * connsPerPeerMax {
		wg.Go(func() {
			body := fmt.Sprintf("task %d", i)
			req, resp := peertest.Submit(body)
			if err := p.Forward(t.Context(), leader.Addr(), req, resp, nil); err != nil || string(resp.Body()) != body {
				t.Errorf("request %d: %q, %v", i, resp.Body(), err)
			}
		})
	}
	wg.Wait()
	if n := connCount(p); n > connsPerPeerMax {
		t.Errorf("%d connections, bound %d", n, connsPerPeerMax)
	}
}
