package peer

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
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

// readRequest reads the frames of one request.
func readRequest(r *bufio.Reader) error {
	for {
		if kind, err := readKind(r); err != nil || kind == frameRequest {
			return err
		}
	}
}

// forward forwards a request with that body and returns its answer.
func forward(ctx context.Context, p *Port, addr, body string) (*fasthttp.Response, error) {
	req, resp := peertest.Submit(body)
	_, err := p.Forward(ctx, addr, testUUIDAt(addr), nodes.Passing{}, req, resp)
	return resp, err
}

// forwardWaiting is forward for a request that is wanted until ctx ends once the leader holds it.
func forwardWaiting(ctx context.Context, p *Port, addr, body string) (*fasthttp.Response, nodes.Passed, error) {
	req, resp := peertest.Submit(body)
	pass := nodes.Passing{Held: func(time.Duration) context.Context { return ctx }}
	passed, err := p.Forward(context.WithoutCancel(ctx), addr, testUUIDAt(addr), pass, req, resp)
	return resp, passed, err
}

// openStreamPair returns a port, and another one that answers with handler.
func openStreamPair(t *testing.T, handler fasthttp.RequestHandler) (follower, leader *Port) {
	t.Helper()
	follower, leader = openTestPort(t, "n1"), openTestPort(t, "n2")
	leader.SetForwardHandler(handler)
	return follower, leader
}

// callOf returns the handler's request as the leader's handlers see it.
func callOf(ctx *fasthttp.RequestCtx) *streamCall { return ctx.Conn().(*streamCall) }

// holds makes the handler's request one that is held, and returns its caller's context.
func holds(ctx *fasthttp.RequestCtx, wait time.Duration) context.Context {
	return callOf(ctx).Hold(wait)
}

// Many requests share one connection, and each gets its own answer.
func TestPort_Forward(t *testing.T) {
	t.Parallel()
	const count = 500
	var came atomic.Int32
	all := make(chan struct{})
	follower, leader := openStreamPair(t, func(ctx *fasthttp.RequestCtx) {
		if came.Add(1) == count {
			close(all)
		}
		select {
		case <-all: // no answer before all have come
		case <-holds(ctx, time.Minute).Done(): // a broken connection: its caller reports it
		}
		ctx.SetStatusCode(fasthttp.StatusCreated)
		ctx.Response.Header.Set("X-Target", string(ctx.Request.Header.RequestURI()))
		ctx.Response.SetBody(append([]byte("to "), ctx.Request.Body()...))
	})
	var asking sync.WaitGroup
	for i := range count {
		asking.Go(func() {
			body := strings.Repeat("x", i*300) // some need more than one part
			resp, _, err := forwardWaiting(t.Context(), follower, leader.Addr(), body)
			if err != nil || resp.StatusCode() != fasthttp.StatusCreated || string(resp.Body()) != "to "+body || string(resp.Header.Peek("X-Target")) != "/api/tasks" {
				t.Errorf("request %d: %d, %d bytes, %v", i, resp.StatusCode(), len(resp.Body()), err)
			}
		})
	}
	asking.Wait()
	if n := connCount(leader); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	waitUntil(t, "no stream is left", func() bool { return leader.streams.Load() == 0 })
}

// The nodes' information about a request arrives, and is not part of the request.
func TestPort_Forward_said(t *testing.T) {
	t.Parallel()
	for _, want := range []nodes.Passing{
		{},
		{From: netip.MustParseAddr("192.0.2.7"), Known: true, Waited: 1500 * time.Millisecond},
		{From: netip.MustParseAddr("2001:db8::7")},
	} {
		var got nodes.Passing
		follower, leader := openStreamPair(t, func(ctx *fasthttp.RequestCtx) {
			got = callOf(ctx).Passing()
			callOf(ctx).Passed().OpRefused = want.Known
		})
		req, resp := peertest.Submit("x")
		passed, err := follower.Forward(t.Context(), leader.Addr(), testUUIDAt(leader.Addr()), want, req, resp)
		if got.From != want.From || got.Known != want.Known || got.Waited != want.Waited || passed.OpRefused != want.Known || passed.GivenUp || err != nil {
			t.Errorf("%+v arrived as %+v; %+v, %v", want, got, passed, err)
		}
	}
}

// A large answer with a slow reader delays others by no more than a part of it.
func TestPort_Forward_largeAnswer(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 20<<20)
	follower, leader := openStreamPair(t, func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Request.Body()) == "large" {
			ctx.Response.SetBodyString(large)
		}
	})
	var asking sync.WaitGroup
	asking.Go(func() {
		resp, err := forward(t.Context(), follower, leader.Addr(), "large")
		for tries := 0; tries < 5 && errors.Is(err, nodes.ErrOutcomeUnknown); tries++ { // a machine that stands still for seconds breaks a connection
			resp, err = forward(t.Context(), follower, leader.Addr(), "large")
		}
		if err != nil || string(resp.Body()) != large {
			t.Errorf("%d bytes, %v", len(resp.Body()), err)
		}
	})
	for range 50 {
		if _, err := forward(t.Context(), follower, leader.Addr(), "small"); err != nil {
			t.Errorf("small: %v", err)
		}
	}
	asking.Wait()
}

// The leader learns that the caller of a request that it holds has gone, and its answer still
// arrives and says what was done, or that nothing was.
func TestPort_Forward_gone(t *testing.T) {
	t.Parallel()
	for _, nothing := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		follower, leader := openStreamPair(t, func(ctx *fasthttp.RequestCtx) {
			wanted := holds(ctx, time.Minute)
			cancel()
			<-wanted.Done()
			ctx.Response.SetBodyString(context.Cause(wanted).Error())
			callOf(ctx).Passed().GivenUp = nothing
		})
		want := errCallerGone.Error()
		if nothing {
			want = ""
		}
		if resp, passed, err := forwardWaiting(ctx, follower, leader.Addr(), "x"); err != nil || string(resp.Body()) != want || passed.GivenUp != nothing {
			t.Errorf("%q, %+v, %v", resp.Body(), passed, err)
		}
	}
}

// A request that was not sent whole was not done; one that may have been sent has an unknown
// outcome. Nothing is ever sent twice.
func TestPort_Forward_errors(t *testing.T) {
	t.Parallel()
	const large = 4 << 20 // more than the sockets' buffers
	answer := func(text string) []byte {
		payload := append([]byte{0}, text...)
		return append(binary.BigEndian.AppendUint32([]byte{frameLastPart, 0, 0, 0, 0}, uint32(len(payload))), payload...)
	}
	part := func(text string) []byte {
		b := answer(text)
		b[0] = framePart
		return b
	}
	cases := map[string]struct {
		answer []byte // after the request; then the connection is closed
		unread bool   // it is closed while the request is read
		body   int
		want   error
	}{
		"closed while it reads":               {nil, true, large, nodes.ErrNoLeader},
		"closed after it has read":            {nil, false, 10, nodes.ErrOutcomeUnknown},
		"closed within the answer":            {answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")[:30], false, 10, nodes.ErrOutcomeUnknown},
		"closed between parts of it":          {part("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}"), false, 10, nodes.ErrOutcomeUnknown},
		"answers with less than it announces": {answer("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}"), false, 10, nodes.ErrOutcomeUnknown},
		"answers without a length":            {answer("HTTP/1.1 200 OK\r\n\r\n{}"), false, 10, nodes.ErrOutcomeUnknown},
		"answers with what is no HTTP":        {answer("hello there"), false, 10, nodes.ErrOutcomeUnknown},
		"answers with a part that is none":    {part("hello there"), false, 10, nodes.ErrOutcomeUnknown},
		"answers too much":                    {part(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", forwardAnswerMax+1)), false, 10, nodes.ErrOutcomeUnknown},
		"answers with nothing":                {[]byte{frameLastPart, 0, 0, 0, 0, 0, 0, 0, 0}, false, 10, nodes.ErrOutcomeUnknown},
		"answers with a request":              {[]byte{frameRequest, 0, 0, 0, 0, 0, 0, 0, 0}, false, 10, nodes.ErrOutcomeUnknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := openFakePeer(t, func(_ int, conn net.Conn, r *bufio.Reader) {
				if tc.unread {
					_, _ = io.ReadFull(r, make([]byte, 100))
					return
				}
				if err := readRequest(r); err != nil {
					t.Error(err)
				}
				_, _ = conn.Write(tc.answer)
			})
			p := openTestPort(t, "n1")
			resp, err := forward(t.Context(), p, fake.addr, strings.Repeat("x", tc.body))
			if !errors.Is(err, tc.want) || errors.Is(err, nodes.ErrOutcomeUnknown) != errors.Is(tc.want, nodes.ErrOutcomeUnknown) {
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
		ctx        context.Context
		addr, uuid string
	}{
		"no listener":            {t.Context(), closed.Addr().String(), peertest.UUID("n2")},
		"refused":                {t.Context(), other.Addr(), peertest.UUID("n2")},
		"another node there":     {t.Context(), other.Addr(), "another node"},
		"cancelled before":       {cancelled, other.Addr(), peertest.UUID("n2")},
		"an address that's none": {t.Context(), "nonsense", peertest.UUID("n2")},
	} {
		req, resp := peertest.Submit("{}")
		if _, err := p.Forward(tc.ctx, tc.addr, tc.uuid, nodes.Passing{}, req, resp); !errors.Is(err, nodes.ErrNoLeader) || errors.Is(err, nodes.ErrOutcomeUnknown) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	_ = p.Close()
	if _, err := forward(t.Context(), p, other.Addr(), "{}"); !errors.Is(err, nodes.ErrShuttingDown) {
		t.Errorf("closed port: got %v", err)
	}
}

// Many requests can be under way at once; beyond the bound they wait for their turn. Those that the
// leader holds need none.
func TestPort_Forward_manyAtOnce(t *testing.T) {
	leavesNothing(t)
	const waves = 2
	var here sync.WaitGroup
	here.Add(streamsAtOnce)
	var count atomic.Int32
	follower, leader := openStreamPair(t, func(ctx *fasthttp.RequestCtx) {
		switch {
		case string(ctx.Request.Body()) == "held":
			<-holds(ctx, time.Minute).Done()
		case count.Add(1) <= streamsAtOnce:
			here.Done()
			here.Wait() // until all that fit are here together
		}
		ctx.SetBody(ctx.Request.Body())
	})
	ctx, cancel := context.WithCancel(t.Context())
	var waiting, wg sync.WaitGroup
	for range streamsAtOnce + 1 {
		waiting.Go(func() {
			if resp, _, err := forwardWaiting(ctx, follower, leader.Addr(), "held"); err != nil || string(resp.Body()) != "held" {
				t.Errorf("held: %q, %v", resp.Body(), err)
			}
		})
	}
	waitUntil(t, "all are held", func() bool { return leader.streams.Load() == streamsAtOnce+1 })
	for i := range waves * streamsAtOnce {
		wg.Go(func() {
			body := fmt.Sprintf("task %d", i)
			if resp, err := forward(t.Context(), follower, leader.Addr(), body); err != nil || string(resp.Body()) != body {
				t.Errorf("request %d: %q, %v", i, resp.Body(), err)
			}
		})
	}
	wg.Wait()
	cancel()
	waiting.Wait()
	_, _ = follower.Close(), leader.Close()
}

// A request whose turn does not come in time was not made.
func TestPort_Forward_noTurn(t *testing.T) {
	t.Parallel()
	came, release := make(chan struct{}), make(chan struct{})
	follower, leader := openStreamPair(t, func(*fasthttp.RequestCtx) { came <- struct{}{}; <-release })
	var wg sync.WaitGroup
	for range streamsAtOnce {
		wg.Go(func() {
			if _, err := forward(t.Context(), follower, leader.Addr(), "x"); err != nil {
				t.Error(err)
			}
		})
		<-came
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := forward(ctx, follower, leader.Addr(), "x"); !errors.Is(err, nodes.ErrNoLeader) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no turn: %v", err)
	}
	close(release)
	wg.Wait()
}

// More requests than the leader takes are refused, also long ones.
func TestPort_Forward_tooMany(t *testing.T) {
	t.Parallel()
	follower, leader := openStreamPair(t, func(*fasthttp.RequestCtx) {})
	leader.streams.Store(streamsMax)
	for _, body := range []string{"x", strings.Repeat("x", 3*streamPartMax)} {
		if resp, err := forward(t.Context(), follower, leader.Addr(), body); err != nil || resp.StatusCode() != fasthttp.StatusServiceUnavailable || !strings.Contains(string(resp.Body()), "overloaded") {
			t.Errorf("too many: %q, %v", resp.Body(), err)
		}
	}
	leader.streams.Store(0)
	if resp, err := forward(t.Context(), follower, leader.Addr(), "x"); err != nil || resp.StatusCode() != fasthttp.StatusOK {
		t.Errorf("no longer too many: %q, %v", resp.Body(), err)
	}
}

// A connection that the leader has closed is not used: the request goes out once, on a new one.
func TestPort_Forward_staleConnection(t *testing.T) {
	t.Parallel()
	follower, leader := openStreamPair(t, func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("done") })
	for range 3 {
		if resp, err := forward(t.Context(), follower, leader.Addr(), "x"); err != nil || string(resp.Body()) != "done" {
			t.Fatalf("%q, %v", resp.Body(), err)
		}
		leader.mu.Lock()
		for c := range leader.conns {
			go c.Close() // it takes the lock
		}
		leader.mu.Unlock()
		waitUntil(t, "the end has arrived", func() bool { return connCount(follower) == 0 })
	}
}

// The parts of an answer after the first are sent only if there is room for it; the caller learns
// why not, and the leader that it was not delivered.
func TestPort_Forward_noRoom(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	for _, size := range []int{5, 3 * streamPartMax} {
		body := strings.Repeat("x", size)
		told := make(chan bool, 1)
		follower, leader := openStreamPair(t, func(ctx *fasthttp.RequestCtx) {
			callOf(ctx).Passed().Delivered = func(ok bool) { told <- ok }
			ctx.SetBodyString(body)
		})
		for _, room := range []error{full, nil} {
			req, resp := peertest.Submit("{}")
			asked := 0
			pass := nodes.Passing{Reserve: func(n int) error { asked += n; return room }}
			passed, err := follower.Forward(t.Context(), leader.Addr(), testUUIDAt(leader.Addr()), pass, req, resp)
			if asked != size {
				t.Errorf("asked for %d bytes, want %d", asked, size)
			}
			if !errors.Is(err, room) || room != nil && (!errors.Is(err, nodes.ErrOutcomeUnknown) || len(resp.Body()) > 0) || room == nil && string(resp.Body()) != body {
				t.Errorf("room %v: %d bytes, %v", room, len(resp.Body()), err)
			}
			if err == nil {
				passed.Delivered(true)
			}
			if got := <-told; got != (room == nil) {
				t.Errorf("room %v: delivered %v", room, got)
			}
		}
	}
}

// A request arrives unchanged, and so does its answer.
func TestPort_Forward_isFaithful(t *testing.T) {
	t.Parallel()
	p, leader := openTestPort(t, "n1"), openTestPort(t, "n2")
	req, resp := peertest.Submit(`{"task_type":"email"}`)
	pass := func() error {
		_, err := p.Forward(t.Context(), leader.Addr(), testUUIDAt(leader.Addr()), nodes.Passing{}, req, resp)
		return err
	}
	if err := pass(); err != nil || resp.StatusCode() != fasthttp.StatusServiceUnavailable || !strings.Contains(string(resp.Body()), `"no_leader"`) {
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
	if err := pass(); err != nil {
		t.Fatal(err)
	}
	want := `POST /api/tasks/by-key/a%2Fb%20c?x=1&y=%20#no a b n1.example {"task_type":"email"}`
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
	if err := pass(); err != nil || resp.Header.ContentLength() != 5 {
		t.Errorf("HEAD: %v, length %d", err, resp.Header.ContentLength())
	}
	leader.SetForwardHandler(func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(fasthttp.StatusNoContent) })
	req.Header.SetMethod(fasthttp.MethodGet)
	if err := pass(); err != nil || resp.StatusCode() != fasthttp.StatusNoContent {
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
		if _, err := p.Forward(ctx, leader.Addr(), testUUIDAt(leader.Addr()), nodes.Passing{}, &req, &resp); err != nil || string(resp.Body()) != want {
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
		if _, err := p.Forward(t.Context(), leader.Addr(), testUUIDAt(leader.Addr()), nodes.Passing{}, &req, &resp); err != nil || resp.StatusCode() != fasthttp.StatusNotFound {
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
	req, resp := peertest.Submit(strings.Repeat("x", apiBodyMax))
	req.Header.Set("X-Long", strings.Repeat("x", apiHeaderMax))
	pass := func() error {
		_, err := p.Forward(t.Context(), leader.Addr(), testUUIDAt(leader.Addr()), nodes.Passing{}, req, resp)
		return err
	}
	err := pass()
	for tries := 0; tries < 5 && err != nil; tries++ { // a machine that stands still for seconds breaks a connection
		err = pass()
	}
	if err != nil || string(resp.Body()) != "served" {
		t.Errorf("%v, %d %q", err, resp.StatusCode(), resp.Body())
	}
}
