package api

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
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/sqs"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/nodes"
)

// health answers GET /healthz: the process is running.
func (s *Server) health(r *request) { s.sendState(r, "alive") }

// ready answers GET /readyz: the node knows a leader and has caught up.
func (s *Server) ready(r *request) {
	if s.core.leaving.Load() || s.core.draining.Load() {
		r.refuse(refuse.Because(wire.CodeShuttingDown))
		return
	}
	if err := s.cfg.Node.Ready(); err != nil {
		r.refuse(refuseUnready(err))
		return
	}
	s.sendState(r, "ready")
}

func refuseUnready(err error) *refuse.Refusal {
	return refuse.New(wire.CodeNoLeader, "The node is not ready: "+err.Error(), "Wait until the node knows a leader and has caught up with it")
}

func (s *Server) sendState(r *request, state string) {
	b := jsonout.WordField(r.buffer(), `{"success":true,"status":`, state)
	b = jsonout.StringField(b, `,"node_id":`, s.cfg.Node.NodeID())
	b = jsonout.StringField(b, `,"version":`, s.cfg.Version)
	r.send(fasthttp.StatusOK, append(b, '}'))
}

const (
	// probeConnsMax bounds the connections of probes; further ones wait.
	probeConnsMax = 64
	// probeTimeout bounds a request of a probe, and its handshake.
	probeTimeout = 5 * time.Second
	// probeEndTimeout limits how long stopping waits for requests under way.
	probeEndTimeout = 250 * time.Millisecond
)

// errStarting is the reason why a node that does not serve yet is not ready.
var errStarting = errors.New("it is starting, or waits for other nodes or to be let in")

// Probes answers GET /healthz and GET /readyz where the API does not: while a node starts, and on a separate port whose
// clients need neither certificate nor key. Its methods are safe for concurrent use.
type Probes struct {
	// SQS says that clients of SQS are told in their protocol that the node is starting.
	SQS bool

	nodeID, version string
	logger          hclog.Logger
	ready           atomic.Pointer[func() error]
}

// NewProbes returns the Probes of a node that is starting.
func NewProbes(nodeID, version string, logger hclog.Logger) *Probes {
	p := &Probes{nodeID: nodeID, version: version, logger: logger}
	p.ReadyAs(func() error { return errStarting })
	return p
}

// ReadyAs replaces the function that says why the node is not ready, or nil.
func (p *Probes) ReadyAs(ready func() error) { p.ready.Store(&ready) }

// Meanwhile answers on the API's listener until over is called, which leaves the listener open.
func (p *Probes) Meanwhile(ln net.Listener, cfg *tls.Config) (over func()) {
	lent := &lentListener{Listener: ln}
	var shown net.Listener = lent
	if cfg != nil {
		shown = tls.NewListener(lent, cfg)
	}
	stop := p.Serve(shown)
	return func() {
		stop()
		lent.setDeadline(time.Time{})
	}
}

// Serve answers the connections of ln until stop is called.
func (p *Probes) Serve(ln net.Listener) (stop func()) {
	server := &http.Server{
		Handler: p, ReadTimeout: probeTimeout, WriteTimeout: probeTimeout, MaxHeaderBytes: 16 << 10,
		ErrorLog: hclog.NewNullLogger().StandardLogger(nil), // broken connections are not worth a log line
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
		ctx, cancel := context.WithTimeout(context.Background(), probeEndTimeout)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // connections without a request, or in the middle of one
		}
		<-ended
	}
}

// ServeHTTP answers as the API does.
func (p *Probes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	head, ok := sqs.HeadOf(r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get(amzTarget), nil)
	if ok && p.SQS {
		bad := sqs.Unavailable(f.Text)
		w.Header().Set("Content-Type", head.ContentType())
		w.Header().Set("X-Amzn-Requestid", string(id))
		w.Header().Set("X-Amzn-Query-Error", bad.QueryError())
		w.Header().Set("X-Amz-Retry-After", retryAfterMS)
		w.WriteHeader(bad.Status)
		_, _ = w.Write(bad.Append(nil, head.Query, id))
		return
	}
	w.Header().Set("X-Request-Id", string(id))
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write(refuse.Append(nil, f, id))
}

// lentListener is a listener whose Close only ends its Accept.
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

// boundedListener accepts a bounded number of connections at a time.
type boundedListener struct {
	net.Listener
	slots chan struct{}
}

// Accept waits for a slot, which the connection returns when it is closed.
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

// Close returns the slot, once.
func (c *boundedConn) Close() error {
	if !c.gone.Swap(true) {
		defer func() { <-c.slots }()
	}
	return c.Conn.Close()
}
