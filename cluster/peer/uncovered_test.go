package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/cluster/peer/peertest"
	"github.com/claimq/claimq/internal/certs/certstest"
)

// trusting holds a node's TLS files, which may change.
type trusting struct {
	own     tls.Certificate
	trusted *x509.CertPool
}

// twoTrusting are two nodes over TLS whose files can be changed.
type twoTrusting struct {
	before, after    *certstest.Authority
	n1, n2           atomic.Pointer[trusting]
	dialer, acceptor *Port
}

func newTwoTrusting(t *testing.T) *twoTrusting {
	t.Helper()
	w := &twoTrusting{before: certstest.NewAuthority(t, "before"), after: certstest.NewAuthority(t, "after")}
	for _, n := range []*atomic.Pointer[trusting]{&w.n1, &w.n2} {
		n.Store(&trusting{w.before.Issue([]string{"127.0.0.1"}).TLS(t), w.before.Pool()})
	}
	open := func(id string, n *atomic.Pointer[trusting]) *Port {
		return openTestPort(t, id, func(c *Config) {
			c.Certificate = func() (tls.Certificate, *x509.CertPool) { has := n.Load(); return has.own, has.trusted }
		})
	}
	w.dialer, w.acceptor = open("n1", &w.n1), open("n2", &w.n2)
	w.acceptor.Handle("echo", echoCall)
	return w
}

func trust(n *atomic.Pointer[trusting], by *x509.CertPool) { n.Store(&trusting{n.Load().own, by}) }

// A connection of any purpose, in either direction, is closed soon after no authority
// vouches for the certificate of its other side any more.
func TestPort_uncoveredIsClosed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*twoTrusting){
		"at the acceptor": func(w *twoTrusting) { trust(&w.n2, w.after.Pool()) },
		"at the dialer":   func(w *twoTrusting) { trust(&w.n1, w.after.Pool()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwoTrusting(t)
			var conns []*peerConn
			for _, purpose := range []Purpose{PurposeHTTP, PurposeStream, PurposeMeet} {
				c, err := w.dialer.dial(t.Context(), w.acceptor.Addr(), purpose, peertest.UUID("n2"))
				if err != nil {
					t.Fatal(err)
				}
				conns = append(conns, c)
			}
			layer := w.acceptor.StreamLayer()
			t.Cleanup(func() { _ = layer.Close() })
			over, err := w.dialer.StreamLayer().Dial(raft.ServerAddress(w.acceptor.Addr()), testWait)
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, over.(*peerConn))
			side := map[bool]*Port{true: w.acceptor, false: w.dialer}[name == "at the acceptor"]
			waitUntil(t, "the port has noted what all have shown", func() bool { return len(side.shownConns()) == len(conns) })
			change(w)
			waitUntil(t, "the port has looked", func() bool {
				return !slices.ContainsFunc(side.shownConns(), func(c *peerConn) bool { return !c.retired.Load() })
			})
			side.endUncovered(time.Now().Add(uncoveredGrace))
			if open := len(side.shownConns()); open > 0 {
				t.Errorf("%d connections are not closed", open)
			}
			end := time.Now().Add(testWait)
			for _, c := range conns {
				_ = c.SetReadDeadline(end)
				if _, err := io.Copy(io.Discard, c); isTimeout(err) {
					t.Errorf("the connection for %s is not closed", c.purpose)
				}
			}
		})
	}
}

// Requests under way on a connection that is no longer covered get a moment, and no new
// ones are sent over it; if it is covered again, it stays.
func TestPort_uncoveredHasAMoment(t *testing.T) {
	t.Parallel()
	w := newTwoTrusting(t)
	both := w.before.Pool()
	both.AppendCertsFromPEM(w.after.PEM())
	c, err := w.dialer.dial(t.Context(), w.acceptor.Addr(), PurposeHTTP, peertest.UUID("n2"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	isOpen := func() bool {
		w.dialer.mu.Lock()
		defer w.dialer.mu.Unlock()
		_, open := w.dialer.conns[c]
		return open
	}
	now := time.Now().Add(time.Hour) // the port's own checks come earlier
	trust(&w.n1, both)
	w.dialer.endUncovered(now)
	if c.retired.Load() || !isOpen() {
		t.Error("beside another authority it is retired")
	}
	trust(&w.n1, w.after.Pool())
	w.dialer.endUncovered(now)
	if !c.retired.Load() || !isOpen() {
		t.Error("it is not retired, or has no moment")
	}
	w.dialer.endUncovered(now.Add(uncoveredGrace))
	if isOpen() {
		t.Error("it is not closed")
	}
}

// An exchange of the authority in three rounds interrupts nothing: a node with a new
// certificate makes its requests over new connections before its old one's authority goes.
func TestPort_exchangedAuthority(t *testing.T) {
	t.Parallel()
	w := newTwoTrusting(t)
	both := w.before.Pool()
	both.AppendCertsFromPEM(w.after.PEM())
	release := make(chan struct{})
	w.acceptor.Handle("wait", func(context.Context, Hello, []byte) ([]byte, error) { <-release; return nil, nil })
	w.acceptor.SetForwardHandler(func(ctx *fasthttp.RequestCtx) { <-release; ctx.SetBodyString("done") })
	var waiting sync.WaitGroup
	var failed errorList
	waiting.Go(func() {
		_, err := w.dialer.Call(t.Context(), w.acceptor.Addr(), "wait", nil)
		failed.add(err)
	})
	wait := func() {
		waiting.Go(func() {
			_, err := forward(t.Context(), w.dialer, w.acceptor.Addr(), "x")
			failed.add(err)
		})
	}
	wait()
	open := func() (conns []*peerConn) {
		w.dialer.mu.Lock()
		defer w.dialer.mu.Unlock()
		for c := range w.dialer.conns {
			conns = append(conns, c)
		}
		return conns
	}
	waitUntil(t, "both are under way", func() bool { return len(open()) == 2 && w.acceptor.streams.Load() == 1 })
	if _, err := w.dialer.Call(t.Context(), w.acceptor.Addr(), "echo", nil); err != nil { // it leaves one idle
		t.Fatal(err)
	}
	old := open()
	trust(&w.n1, both)
	trust(&w.n2, both)
	w.n1.Store(&trusting{w.after.Issue([]string{"127.0.0.1"}).TLS(t), both})
	w.dialer.endUncovered(time.Now())
	if now := open(); len(now) != 2 {
		t.Errorf("%d connections are open, want the two that are in use", len(now))
	}
	if _, err := w.dialer.Call(t.Context(), w.acceptor.Addr(), "echo", nil); err != nil {
		t.Error(err)
	}
	wait()
	waitUntil(t, "another one waits", func() bool { return w.acceptor.streams.Load() == 2 })
	again := slices.DeleteFunc(open(), func(c *peerConn) bool { return slices.Contains(old, c) })
	if now := open(); len(again) != 2 || len(now) != 4 {
		t.Errorf("%d connections are open, %d of them new, want the two that are in use and two new ones", len(now), len(again))
	}
	close(release)
	waiting.Wait()
	if err := failed.all(); err != nil {
		t.Errorf("what was under way: %v", err)
	}
	waitUntil(t, "the old connections are closed", func() bool {
		return !slices.ContainsFunc(open(), func(c *peerConn) bool { return slices.Contains(old, c) })
	})
	w.n2.Store(&trusting{w.after.Issue([]string{"127.0.0.1"}).TLS(t), w.after.Pool()})
	w.acceptor.endUncovered(time.Now().Add(time.Hour))
	w.acceptor.endUncovered(time.Now().Add(2 * time.Hour))
	if _, err := w.dialer.Call(t.Context(), w.acceptor.Addr(), "echo", nil); err != nil {
		t.Errorf("in the last round: %v", err)
	}
}

// errorList collects errors of several goroutines.
type errorList struct {
	mu   sync.Mutex
	errs []error
}

func (l *errorList) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

func (l *errorList) all() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.errs...)
}
