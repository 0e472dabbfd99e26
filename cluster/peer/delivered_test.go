package peer

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/nodes"
)

// The leader learns whether an answer was delivered if it wants to, also of one that is no longer
// wanted when it comes.
func TestPort_Forward_delivered(t *testing.T) {
	t.Parallel()
	for _, want := range []bool{true, false} {
		told := make(chan bool, 1)
		late, answer := make(chan struct{}), make(chan struct{})
		follower, leader := openStreamPair(t, func(ctx *fasthttp.RequestCtx) {
			callOf(ctx).Passed().Delivered = func(ok bool) { told <- ok }
			if string(ctx.Request.Body()) == "late" {
				close(late)
				<-answer
			}
		})
		_, passed, err := forwardWaiting(t.Context(), follower, leader.Addr(), "x")
		if err != nil || passed.Delivered == nil {
			t.Fatalf("%+v, %v", passed, err)
		}
		if n := leader.streams.Load(); n != 1 {
			t.Errorf("%d requests are counted before the leader knows", n)
		}
		passed.Delivered(want)
		if got := <-told; got != want {
			t.Errorf("delivered %v was told as %v", want, got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-late; cancel() }()
		if _, err := forward(ctx, follower, leader.Addr(), "late"); !errors.Is(err, nodes.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		close(answer)
		if <-told {
			t.Error("an answer that was no longer wanted was told to be delivered")
		}
		waitUntil(t, "no stream is left", func() bool { return leader.streams.Load() == 0 })
	}
}

// When the connection breaks all its callers have gone; answers that it can no longer send are
// known not to have arrived.
func TestPort_Forward_lost(t *testing.T) {
	t.Parallel()
	const count = 20
	came := make(chan struct{}, count)
	unsent := make(chan bool, count)
	follower, leader := openStreamPair(t, func(ctx *fasthttp.RequestCtx) {
		callOf(ctx).Passed().Delivered = func(ok bool) { unsent <- !ok }
		wanted := holds(ctx, time.Minute)
		came <- struct{}{}
		<-wanted.Done()
	})
	var asking sync.WaitGroup
	for range count {
		asking.Go(func() {
			resp, err := forward(t.Context(), follower, leader.Addr(), "x")
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
		if !<-unsent {
			t.Error("an answer was told to be delivered over a lost connection")
		}
	}
	// The next request gets a new connection.
	leader.SetForwardHandler(func(*fasthttp.RequestCtx) {})
	if _, err := forward(t.Context(), follower, leader.Addr(), "x"); err != nil {
		t.Error(err)
	}
}

// A connection that breaks before the leader learns whether its answer was delivered releases
// nothing: the client may have it.
func TestPort_Forward_lostUntold(t *testing.T) {
	t.Parallel()
	follower, leader := openStreamPair(t, func(ctx *fasthttp.RequestCtx) {
		callOf(ctx).Passed().Delivered = func(ok bool) { t.Errorf("told %v", ok) }
	})
	if _, passed, err := forwardWaiting(t.Context(), follower, leader.Addr(), "x"); err != nil || passed.Delivered == nil {
		t.Fatalf("%+v, %v", passed, err)
	}
	_ = follower.Close()
	waitUntil(t, "no stream is left", func() bool { return leader.streams.Load() == 0 })
}

// A large answer of which a part was sent when the connection broke is known not to have arrived.
func TestPort_Forward_lostMidway(t *testing.T) {
	t.Parallel()
	told := make(chan bool, 1)
	leader := openTestPort(t, "n2")
	leader.SetForwardHandler(func(ctx *fasthttp.RequestCtx) {
		callOf(ctx).Passed().Delivered = func(ok bool) { told <- ok }
		ctx.Response.SetBody(make([]byte, 3*streamPartMax))
	})
	c := dialStream(t, leader)
	if err := c.send(frameRequest, 7, rawRequest()...); err != nil {
		t.Fatal(err)
	}
	if f, err := c.receive(); err != nil || f.kind != framePart {
		t.Fatalf("%q, %v", f.kind, err)
	}
	_ = c.conn.Close()
	if <-told {
		t.Error("half an answer was told to be delivered")
	}
	waitUntil(t, "no stream is left", func() bool { return leader.streams.Load() == 0 })
}

// A caller that leaves while the rest of a large answer is on its way was not given it, and the leader
// learns that, although only the first part says that it wants to.
func TestPort_Forward_leftMidway(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	told := make(chan byte, 1)
	leader := openFakePeer(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		defer close(told)
		if readRequest(r) != nil {
			return
		}
		head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", streamPartMax)
		if _, err := conn.Write(rawFrame(framePart, 0, append([]byte{flagTell}, head...))); err != nil {
			return
		}
		for {
			kind, err := readKind(r)
			switch {
			case err != nil:
				return
			case kind == frameMore:
				leave()
			case kind == frameCancel: // the last part begins with a byte that says nothing
				_, _ = conn.Write(rawFrame(frameLastPart, 0, []byte{0}))
			case kind == frameDelivered || kind == frameUndelivered:
				told <- kind
				return
			}
		}
	})
	if _, err := forward(ctx, openTestPort(t, "n1"), leader.addr, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if kind := <-told; kind != frameUndelivered {
		t.Errorf("told %q", kind)
	}
}

// readKind reads a frame and returns its kind.
func readKind(r *bufio.Reader) (byte, error) {
	var header [streamHeaderSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, err
	}
	_, err := io.CopyN(io.Discard, r, int64(binary.BigEndian.Uint32(header[5:])))
	return header[0], err
}

// A follower that does not read is cut off, and its answers are known not to have arrived.
func TestPort_Forward_slowReader(t *testing.T) {
	t.Parallel()
	unsent := make(chan struct{})
	leader := openTestPort(t, "n2")
	leader.SetForwardHandler(func(ctx *fasthttp.RequestCtx) {
		callOf(ctx).Passed().Delivered = func(bool) { close(unsent) }
		ctx.Response.SetBody(make([]byte, 30<<20)) // more than the sockets' buffers
	})
	c := dialStream(t, leader)
	if err := errors.Join(c.send(frameRequest, 7, rawRequest()...), c.send(frameMore, 7)); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case <-unsent:
			return
		case <-time.After(time.Second): // it pings, but does not read
			_ = c.send(framePing, 0)
			_ = c.send(frameMore, 7)
		}
	}
}
