package peer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/cluster/peer/peertest"
	"github.com/claimq/claimq/nodes"
)

// forwardWaiting forwards a request with that body and returns its answer.
func forwardWaiting(ctx context.Context, p *Port, addr, body string) (*fasthttp.Response, error) {
	req, resp := peertest.Submit(body)
	return resp, p.ForwardWaiting(ctx, addr, testUUIDAt(addr), req, resp)
}

// openStreamPair returns a port, and another one that answers with handler.
func openStreamPair(t *testing.T, handler fasthttp.RequestHandler) (follower, leader *Port) {
	t.Helper()
	follower, leader = openTestPort(t, "n1"), openTestPort(t, "n2")
	leader.SetForwardHandler(handler)
	return follower, leader
}

// callerOf returns the context of the handler's caller.
func callerOf(ctx *fasthttp.RequestCtx) context.Context {
	return ctx.Conn().(interface{ Caller() context.Context }).Caller()
}

// Many waiting requests share one connection, and each gets its own answer.
func TestPort_ForwardWaiting(t *testing.T) {
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
		case <-callerOf(ctx).Done(): // a broken connection: its caller reports it
		}
		ctx.SetStatusCode(fasthttp.StatusCreated)
		ctx.Response.Header.Set("X-Target", string(ctx.Request.Header.RequestURI()))
		ctx.Response.SetBody(append([]byte("to "), ctx.Request.Body()...))
	})
	var asking sync.WaitGroup
	for i := range count {
		asking.Go(func() {
			body := strings.Repeat("x", i*300) // some need more than one part
			resp, err := forwardWaiting(t.Context(), follower, leader.Addr(), body)
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

// A request that is too long to share a connection gets its own.
func TestPort_ForwardWaiting_long(t *testing.T) {
	t.Parallel()
	follower, leader := openStreamPair(t, func(ctx *fasthttp.RequestCtx) {
		if _, ok := ctx.Conn().(*streamConn); ok {
			t.Error("came over the shared connection")
		}
		ctx.Response.SetBodyString("served")
	})
	if resp, err := forwardWaiting(t.Context(), follower, leader.Addr(), strings.Repeat("x", streamRequestMax)); err != nil || string(resp.Body()) != "served" {
		t.Errorf("%q, %v", resp.Body(), err)
	}
}

// A large answer with a slow reader delays others by no more than a part of it.
func TestPort_ForwardWaiting_largeAnswer(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 20<<20)
	follower, leader := openStreamPair(t, func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Request.Body()) == "large" {
			ctx.Response.SetBodyString(large)
		}
	})
	var asking sync.WaitGroup
	asking.Go(func() {
		resp, err := forwardWaiting(t.Context(), follower, leader.Addr(), "large")
		for tries := 0; tries < 5 && errors.Is(err, nodes.ErrOutcomeUnknown); tries++ { // a machine that stands still for seconds breaks a connection
			resp, err = forwardWaiting(t.Context(), follower, leader.Addr(), "large")
		}
		if err != nil || string(resp.Body()) != large {
			t.Errorf("%d bytes, %v", len(resp.Body()), err)
		}
	})
	for range 50 {
		if _, err := forwardWaiting(t.Context(), follower, leader.Addr(), "small"); err != nil {
			t.Errorf("small: %v", err)
		}
	}
	asking.Wait()
}

// The leader learns that a caller has gone, and its answer still arrives and says what was done.
func TestPort_ForwardWaiting_gone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	follower, leader := openStreamPair(t, func(ctx *fasthttp.RequestCtx) {
		cancel()
		<-callerOf(ctx).Done()
		ctx.Response.SetBodyString(context.Cause(callerOf(ctx)).Error())
	})
	if resp, err := forwardWaiting(ctx, follower, leader.Addr(), "x"); err != nil || string(resp.Body()) != errCallerGone.Error() {
		t.Errorf("%q, %v", resp.Body(), err)
	}
}

// When the connection breaks all its callers have gone; answers that it can no longer send are
// known not to have arrived.
func TestPort_ForwardWaiting_lost(t *testing.T) {
	t.Parallel()
	const count = 20
	came := make(chan struct{}, count)
	unsent := make(chan struct{}, count)
	follower, leader := openStreamPair(t, func(ctx *fasthttp.RequestCtx) {
		ctx.Conn().(interface{ OnUnsent(fn func()) }).OnUnsent(func() { unsent <- struct{}{} })
		came <- struct{}{}
		<-callerOf(ctx).Done()
	})
	var asking sync.WaitGroup
	for range count {
		asking.Go(func() {
			resp, err := forwardWaiting(t.Context(), follower, leader.Addr(), "x")
			if !errors.Is(err, nodes.ErrOutcomeUnknown) || len(resp.Body()) != 0 {
				t.Errorf("%q, %v", resp.Body(), err)
			}
		})
	}
	for range count {
		<-came
	}
	follower.mu.Lock()
	for c := range follower.conns {
		go c.Close() // it takes the lock
	}
	follower.mu.Unlock()
	asking.Wait()
	for range count {
		<-unsent
	}
	// The next request gets a new connection.
	leader.SetForwardHandler(func(*fasthttp.RequestCtx) {})
	if _, err := forwardWaiting(t.Context(), follower, leader.Addr(), "x"); err != nil {
		t.Error(err)
	}
}

// A follower that does not read is cut off, and its answers are known not to have arrived.
func TestPort_ForwardWaiting_slowReader(t *testing.T) {
	t.Parallel()
	unsent := make(chan struct{})
	leader := openTestPort(t, "n2")
	leader.SetForwardHandler(func(ctx *fasthttp.RequestCtx) {
		ctx.Conn().(interface{ OnUnsent(fn func()) }).OnUnsent(func() { close(unsent) })
		ctx.Response.SetBody(make([]byte, 30<<20)) // more than the sockets' buffers
	})
	c := dialStream(t, leader)
	if err := c.send(frameRequest, 7, rawRequest()); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case <-unsent:
			return
		case <-time.After(time.Second): // it pings, but does not read
			_ = c.send(framePing, 0, nil)
		}
	}
}

func TestPort_ForwardWaiting_errors(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	follower, leader := openStreamPair(t, func(*fasthttp.RequestCtx) {})
	if _, err := forwardWaiting(t.Context(), follower, closed.Addr().String(), "x"); !errors.Is(err, nodes.ErrNoLeader) {
		t.Errorf("nobody there: %v", err)
	}
	req, resp := peertest.Submit("x")
	if err := follower.ForwardWaiting(t.Context(), leader.Addr(), "another node", req, resp); !errors.Is(err, nodes.ErrNoLeader) || !strings.Contains(err.Error(), "identity") {
		t.Errorf("another node there: %v", err)
	}
	leader.streams.Store(streamsMax)
	if resp, err := forwardWaiting(t.Context(), follower, leader.Addr(), "x"); err != nil || resp.StatusCode() != fasthttp.StatusServiceUnavailable || !strings.Contains(string(resp.Body()), "overloaded") {
		t.Errorf("too many wait: %q, %v", resp.Body(), err)
	}
	leader.streams.Store(0)
	// An invalid answer leaves the outcome unknown.
	fake := openFakePeer(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		var header [streamHeaderSize]byte
		if _, err := io.ReadFull(r, header[:]); err == nil {
			_, _ = conn.Write(append([]byte{frameLastPart}, append(header[1:5], 0, 0, 0, 2, 'n', 'o')...))
		}
		_, _ = io.Copy(io.Discard, r)
	})
	if resp, err := forwardWaiting(t.Context(), follower, fake.addr, "x"); !errors.Is(err, nodes.ErrOutcomeUnknown) || len(resp.Body()) != 0 {
		t.Errorf("no answer: %q, %v", resp.Body(), err)
	}
	if err := follower.Close(); err != nil {
		t.Error(err)
	}
	if _, err := forwardWaiting(t.Context(), follower, leader.Addr(), "x"); !errors.Is(err, nodes.ErrShuttingDown) {
		t.Errorf("closed: %v", err)
	}
}

// A side that hears nothing gives up the connection after streamSilenceMax, even in the middle
// of a frame, but not while pings come.
func TestFrameConn_silence(t *testing.T) {
	t.Parallel()
	for name, last := range map[string][]byte{"between frames": nil, "in a frame": rawFrame(frameRequest, 5, rawRequest())[:20]} {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			defer func() { _, _ = ours.Close(), theirs.Close() }()
			other := newFrameConn(&peerConn{Conn: theirs})
			spoke := make(chan time.Time, 1)
			go func() {
				for range 10 {
					<-time.After(streamPingInterval)
					if err := other.send(framePing, 0, nil); err != nil {
						t.Error(err)
					}
				}
				if _, err := theirs.Write(last); err != nil {
					t.Error(err)
				}
				spoke <- time.Now()
			}()
			f, err := newFrameConn(&peerConn{Conn: ours}), error(nil)
			heard := -1
			for ; err == nil; heard++ {
				_, err = f.receive()
			}
			if silent := time.Since(<-spoke); !errors.Is(err, os.ErrDeadlineExceeded) || heard != 10 || silent != streamSilenceMax {
				t.Errorf("%s: %d pings heard, then after %s: %v", name, heard, silent, err)
			}
		})
	}
}

// Invalid frames of a follower end its connection.
func TestPort_streamFrames(t *testing.T) {
	t.Parallel()
	leader := openTestPort(t, "n2")
	leader.SetForwardHandler(func(ctx *fasthttp.RequestCtx) { <-callerOf(ctx).Done() })
	for name, frames := range map[string][]byte{
		"an answer":         {frameLastPart, 0, 0, 0, 1, 0, 0, 0, 0},
		"an unknown kind":   {'?', 0, 0, 0, 1, 0, 0, 0, 0},
		"too long a frame":  {frameRequest, 0, 0, 0, 1, 0xff, 0, 0, 0},
		"a number in use":   append(rawFrame(frameRequest, 5, rawRequest()), rawFrame(frameRequest, 5, rawRequest())...),
		"half a frame only": rawFrame(frameRequest, 5, rawRequest())[:20],
	} {
		c := dialStream(t, leader)
		if _, err := c.conn.Write(frames); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "half a frame only" {
			_ = c.conn.Close()
			continue
		}
		for {
			f, err := c.receive()
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isReset(err) {
				break
			}
			if err != nil || f.kind == framePing {
				t.Errorf("%s: %v, %q", name, err, f.kind)
				break
			}
		}
	}
	// Invalid HTTP within a frame ends only its own stream.
	c := dialStream(t, leader)
	if err := c.send(frameRequest, 9, []byte("no HTTP")); err != nil {
		t.Fatal(err)
	}
	if f, err := c.receive(); err != nil || f.kind != frameLastPart || f.stream != 9 || !bytes.Contains(f.payload, []byte("malformed")) {
		t.Errorf("no HTTP: %q, %v", f.payload, err)
	}
	waitUntil(t, "no stream is left", func() bool { return leader.streams.Load() == 0 })
}

// A port that is closed first has its waits answered, and leaves nothing behind.
func TestPort_CloseStreams(t *testing.T) {
	leavesNothing(t)
	came := make(chan struct{})
	ended, end := context.WithCancel(t.Context())
	follower, leader := openTestPort(t, "n1"), openTestPort(t, "n2")
	leader.SetForwardHandler(func(ctx *fasthttp.RequestCtx) {
		close(came)
		<-ended.Done()
		ctx.Response.SetBodyString("in time")
	})
	var asking sync.WaitGroup
	asking.Go(func() {
		if resp, err := forwardWaiting(t.Context(), follower, leader.Addr(), "x"); err != nil || string(resp.Body()) != "in time" {
			t.Errorf("%q, %v", resp.Body(), err)
		}
	})
	<-came
	var closing sync.WaitGroup
	closing.Go(func() { _ = leader.Close() })
	waitUntil(t, "the port closes", func() bool { leader.mu.Lock(); defer leader.mu.Unlock(); return leader.closed })
	end()
	asking.Wait()
	closing.Wait()
	if err := follower.Close(); err != nil {
		t.Error(err)
	}
}

// dialStream opens a connection for streams and shakes hands.
func dialStream(t *testing.T, to *Port) *frameConn {
	t.Helper()
	c, err := openTestPort(t, "n1").dial(t.Context(), to.Addr(), PurposeStream, to.cfg.Self().UUID)
	if err != nil {
		t.Fatal(err)
	}
	return newFrameConn(c)
}

func rawRequest() []byte {
	return []byte("POST /api/forward HTTP/1.1\r\nHost: n\r\nContent-Length: 2\r\n\r\n{}")
}

func rawFrame(kind byte, stream byte, payload []byte) []byte {
	return append([]byte{kind, 0, 0, 0, stream, 0, 0, 0, byte(len(payload))}, payload...)
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && !op.Timeout()
}
