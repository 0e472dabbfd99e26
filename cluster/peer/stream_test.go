package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/internal/simnet"
)

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
					if err := other.send(framePing, 0); err != nil {
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
	leader.SetForwardHandler(func(ctx *fasthttp.RequestCtx) { <-holds(ctx, time.Minute).Done() })
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
	if err := c.send(frameRequest, 9, append(make([]byte, passingSize), "no HTTP"...)...); err != nil {
		t.Fatal(err)
	}
	if f, err := c.receive(); err != nil || f.kind != frameLastPart || f.stream != 9 || !bytes.Contains(f.payload, []byte("malformed")) {
		t.Errorf("no HTTP: %q, %v", f.payload, err)
	}
	waitUntil(t, "no stream is left", func() bool { return leader.streams.Load() == 0 })
}

// A port that is closed lets the requests that wait be answered, for streamsEndTimeout, and leaves
// nothing behind: the bubble's goroutines all end.
func TestPort_CloseStreams(t *testing.T) {
	t.Parallel()
	overTLS := certificateOfAll(t) != nil // made before the bubble, for the other tests
	synctest.Test(t, func(t *testing.T) {
		const requests = 100
		var certificate Certificate
		if overTLS {
			certificate = issueToAll(t)
		}
		network := simnet.New(1, simnet.Weather{})
		at := func(addr string) func(*Config) {
			host := network.Host(addr)
			return func(c *Config) { c.Listen, c.Dial, c.Certificate = host.Listen, host.Dial, certificate }
		}
		follower, leader := openTestPort(t, "n1", at("127.0.0.1:1")), openTestPort(t, "n2", at("127.0.0.1:2"))
		var came atomic.Int64
		ended, end := context.WithCancel(t.Context())
		leader.SetForwardHandler(func(ctx *fasthttp.RequestCtx) {
			came.Add(1)
			<-ended.Done()
			ctx.Response.SetBodyString("in time")
		})
		var asking sync.WaitGroup
		for range requests {
			asking.Go(func() {
				if resp, err := forward(t.Context(), follower, leader.Addr(), "x"); err != nil || string(resp.Body()) != "in time" {
					t.Errorf("%q, %v", resp.Body(), err)
				}
			})
		}
		synctest.Wait()
		if n := came.Load(); n != requests {
			t.Fatalf("%d requests wait, want %d", n, requests)
		}
		time.AfterFunc(streamsEndTimeout-1, end)
		if err := leader.Close(); err != nil {
			t.Error(err)
		}
		asking.Wait()
		if err := follower.Close(); err != nil {
			t.Error(err)
		}
	})
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
	return append(make([]byte, passingSize), "POST /api/tasks HTTP/1.1\r\nHost: n\r\nContent-Length: 2\r\n\r\n{}"...)
}

func rawFrame(kind byte, stream byte, payload []byte) []byte {
	return append([]byte{kind, 0, 0, 0, stream, 0, 0, 0, byte(len(payload))}, payload...)
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && !op.Timeout()
}
