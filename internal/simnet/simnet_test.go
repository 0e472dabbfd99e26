package simnet_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/internal/simnet"
)

// pair is two hosts, a and b, and b listens.
type pair struct {
	t        *testing.T
	network  *simnet.Network
	a, b     *simnet.Host
	listener net.Listener
}

func newPair(t *testing.T, w simnet.Weather) *pair {
	t.Helper()
	n := simnet.New(1, w)
	p := &pair{t: t, network: n, a: n.Host("a"), b: n.Host("b")}
	p.listen()
	return p
}

func (p *pair) listen() {
	p.t.Helper()
	var err error
	if p.listener, err = p.b.Listen("ignored"); err != nil {
		p.t.Fatal(err)
	}
}

// connect opens a connection from a to b.
func (p *pair) connect() (near, far net.Conn) {
	p.t.Helper()
	near, err := p.a.Dial(p.t.Context(), "b")
	if err != nil {
		p.t.Fatal(err)
	}
	if far, err = p.listener.Accept(); err != nil {
		p.t.Fatal(err)
	}
	return near, far
}

func (p *pair) write(c net.Conn, text string) {
	p.t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

// want reads text from c, and checks how long that took.
func (p *pair) want(c net.Conn, text string, atLeast, atMost time.Duration) {
	p.t.Helper()
	start := time.Now()
	b := make([]byte, len(text))
	_, err := io.ReadFull(c, b)
	if err != nil || string(b) != text {
		p.t.Fatalf("read %q, %v; want %q", b, err, text)
	}
	if took := time.Since(start); took < atLeast || took > atMost {
		p.t.Errorf("%q took %s, want %s to %s", text, took, atLeast, atMost)
	}
}

func TestConn_ordered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, simnet.Weather{Delay: time.Second})
		near, far := p.connect()
		var sent []byte
		for i := range 100 {
			sent = append(sent, byte(i))
			p.write(near, string(rune(i)))
		}
		_ = near.Close()
		got, err := io.ReadAll(far)
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

// Delays of one connection do not affect another.
func TestStallSome_othersPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, simnet.Weather{})
		near, far := p.connect()
		p.network.StallSome(1)
		p.write(near, "late")
		other, otherFar := p.connect()
		p.write(other, "early")
		p.want(otherFar, "early", 0, 0)
		go func() {
			<-time.After(time.Minute)
			p.network.Release()
		}()
		p.want(far, "late", time.Minute, time.Minute)
	})
}

// Data sent over a held link arrives after its release, even if the sender has given up and
// closed.
func TestHold_arrivesLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, simnet.Weather{})
		near, far := p.connect()
		p.network.Hold(simnet.Link{From: "a", To: "b"})
		p.write(near, "question")
		p.write(far, "the other direction")
		p.want(near, "the other direction", 0, 0)
		_ = near.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		_ = near.Close()
		go func() {
			<-time.After(time.Minute)
			p.network.Release(simnet.Link{From: "a", To: "b"})
		}()
		p.want(far, "question", time.Minute, time.Minute)
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("read: %v", err)
		}
	})
}

func TestDial_waitsForAHeldLink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, simnet.Weather{})
		p.network.Hold(simnet.Link{From: "b", To: "a"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.a.Dial(ctx, "b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial: %v", err)
		}
		go func() {
			<-time.After(time.Second)
			p.network.Release()
		}()
		p.connect()
	})
}

func TestCut_breaks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, simnet.Weather{})
		near, far := p.connect()
		p.write(near, "lost")
		p.network.Cut(simnet.Link{From: "b", To: "a"})
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read: %v", err)
		}
		if _, err := near.Write([]byte{1}); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write: %v", err)
		}
		if _, err := p.a.Dial(t.Context(), "b"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial: %v", err)
		}
	})
}

// Peers do not notice that a host lost its power until it is back; they notice at once that
// a process was killed. Neither does anything more itself.
func TestHost_ends(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*simnet.Host){"kill": (*simnet.Host).Kill, "power off": (*simnet.Host).PowerOff} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, simnet.Weather{})
				near, far := p.connect()
				p.write(far, "last words")
				end(p.b)
				p.want(near, "last words", 0, 0)
				if _, err := far.Write([]byte{1}); !errors.Is(err, net.ErrClosed) {
					t.Errorf("the dead write: %v", err)
				}
				if _, err := p.b.Dial(t.Context(), "a"); !errors.Is(err, net.ErrClosed) {
					t.Errorf("the dead dial: %v", err)
				}
				if _, err := p.listener.Accept(); !errors.Is(err, net.ErrClosed) {
					t.Errorf("the dead accept: %v", err)
				}
				_ = near.SetReadDeadline(time.Now().Add(time.Minute))
				_, err := near.Read(make([]byte, 1))
				if silent := errors.Is(err, os.ErrDeadlineExceeded); silent != (name == "power off") {
					t.Errorf("read: %v", err)
				}
				_ = near.SetReadDeadline(time.Time{})
				p.b = p.network.Host("b")
				p.listen()
				if _, err := near.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("read after it is back: %v", err)
				}
				p.connect()
			})
		})
	}
}

// A writer waits for the reader, or its deadline, when too much is under way.
func TestConn_bounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, simnet.Weather{})
		near, far := p.connect()
		_ = near.SetWriteDeadline(time.Now().Add(time.Second))
		sent, err := near.Write(make([]byte, 1<<20))
		if !errors.Is(err, os.ErrDeadlineExceeded) || sent == 0 || sent == 1<<20 {
			t.Errorf("sent %d, %v", sent, err)
		}
		_ = near.SetWriteDeadline(time.Time{})
		done := make(chan error, 1)
		go func() {
			_, err := near.Write(make([]byte, 1<<20))
			done <- err
		}()
		if _, err := io.ReadFull(far, make([]byte, sent+1<<20)); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A torn connection is broken for the sender at once; the message may arrive.
func TestWeather_torn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, simnet.Weather{Delay: time.Second, Torn: 1000})
		arrived := 0
		const tries = 100
		for range tries {
			near, far := p.connect()
			start := time.Now()
			p.write(near, "question")
			if _, err := near.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) || time.Since(start) > 0 {
				t.Errorf("read: %v after %s", err, time.Since(start))
			}
			if _, err := near.Write([]byte{1}); !errors.Is(err, syscall.EPIPE) {
				t.Errorf("write: %v", err)
			}
			got, err := io.ReadAll(far)
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("read at the other end: %v", err)
			}
			if string(got) == "question" {
				arrived++
			}
		}
		if arrived == 0 || arrived == tries {
			t.Errorf("%d of %d arrived", arrived, tries)
		}
	})
}
