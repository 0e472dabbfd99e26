package server

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/nodes"
)

const (
	// probeConnsMax bounds the connections of probes; one more waits for its turn.
	probeConnsMax = 64
	// probeTimeout bounds a request of a probe, and its handshake.
	probeTimeout = 5 * time.Second
	// probesEndTimeout is how long those under way are waited for at the end.
	probesEndTimeout = 250 * time.Millisecond
)

// errStarting is why a node is not ready that does not serve yet.
var errStarting = errors.New("it is starting, or waits for other nodes or to be let in")

// probes answers /healthz and /readyz where the API does not: while the node starts, and at
// health_addr, where those that ask need neither certificate nor key.
type probes struct {
	nodeID, version string
	logger          hclog.Logger
	ready           atomic.Pointer[func() error]
}

func newProbes(nodeID, version string, logger hclog.Logger) *probes {
	p := &probes{nodeID: nodeID, version: version, logger: logger}
	p.readyAs(func() error { return errStarting })
	return p
}

// readyAs has ready say from here on why the node is not ready, nil if it is.
func (p *probes) readyAs(ready func() error) { p.ready.Store(&ready) }

// listen answers at addr until stop is called; "" is nowhere.
func (p *probes) listen(addr string) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, listenError("--health-addr", addr, err)
	}
	return p.serve(ln), nil
}

// meanwhile answers at the API's listener until over is called, which leaves it open.
func (p *probes) meanwhile(ln net.Listener, cfg *tls.Config) (over func()) {
	lent := &lentListener{Listener: ln}
	var shown net.Listener = lent
	if cfg != nil {
		shown = tls.NewListener(lent, cfg)
	}
	stop := p.serve(shown)
	return func() {
		stop()
		lent.setDeadline(time.Time{})
	}
}

// serve answers the connections of ln until stop is called.
func (p *probes) serve(ln net.Listener) (stop func()) {
	server := &http.Server{
		Handler: p, ReadTimeout: probeTimeout, WriteTimeout: probeTimeout, MaxHeaderBytes: 16 << 10,
		ErrorLog: hclog.NewNullLogger().StandardLogger(nil), // what ends a connection is no news
	}
	server.SetKeepAlivesEnabled(false)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(&boundedListener{ln, make(chan struct{}, probeConnsMax)}); !errors.Is(err, http.ErrServerClosed) {
			p.logger.Error("probes are not answered any more", "error", err)
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), probesEndTimeout)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // connections without a request, or in the midst of one
		}
		<-ended
	}
}

// ServeHTTP answers as the API does.
func (p *probes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	state, unready := "alive", error(nil)
	if r.URL.Path != "/healthz" {
		if unready = errStarting; r.URL.Path == "/readyz" {
			state, unready = "ready", (*p.ready.Load())()
		}
	}
	if unready == nil {
		b := jsonout.WordField(nil, `{"success":true,"status":`, state)
		b = jsonout.StringField(b, `,"node_id":`, p.nodeID)
		_, _ = w.Write(append(jsonout.StringField(b, `,"version":`, p.version), '}'))
		return
	}
	f := refuse.New(wire.CodeNoLeader, "The node is not ready: "+unready.Error(), "Wait until the node knows a leader and has caught up with it")
	if errors.Is(unready, nodes.ErrShuttingDown) {
		f = refuse.Because(wire.CodeShuttingDown)
	}
	id := []byte(rand.Text())
	w.Header().Set("Retry-After", refuse.RetryAfterS)
	w.Header().Set("X-Request-Id", string(id))
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write(refuse.Append(nil, f, id))
}

// lentListener is a listener that is closed by an end of its Accept alone.
type lentListener struct{ net.Listener }

// Close ends Accept.
func (l *lentListener) Close() error {
	l.setDeadline(time.Unix(1, 0))
	return nil
}

func (l *lentListener) setDeadline(at time.Time) {
	if d, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); ok {
		_ = d.SetDeadline(at)
	}
}

// boundedListener accepts so many connections at a time.
type boundedListener struct {
	net.Listener
	slots chan struct{}
}

// Accept waits for a slot, which a connection gives back when it is closed.
func (l *boundedListener) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &boundedConn{Conn: conn, slots: l.slots}, nil
}

type boundedConn struct {
	net.Conn
	slots chan struct{}
	gone  atomic.Bool
}

// Close gives the slot back, once.
func (c *boundedConn) Close() error {
	if !c.gone.Swap(true) {
		defer func() { <-c.slots }()
	}
	return c.Conn.Close()
}
