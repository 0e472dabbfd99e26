package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/history"
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/lasting"
	"github.com/claimq/claimq/api/meter"
	"github.com/claimq/claimq/api/port"
	"github.com/claimq/claimq/api/trail"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/httplog"
)

// Bounds of HTTP itself.
const (
	// idleTimeout limits how long a connection may wait between requests.
	idleTimeout = 2 * time.Minute
	// answerBuffer is the size of a connection's buffer for answers.
	answerBuffer = 8 << 10
)

// Server answers the HTTP API. Its methods are safe for concurrent use.
type Server struct {
	cfg  Config
	host *exchange.Host
	http *fasthttp.Server

	actions *Actions
	backups *Backups
	streams *Streams
	feed    *trail.Feed    // the end of the trail, for streams
	tries   *keyring.Tries // attempts to log in
	history *history.History

	reloading sync.Mutex // held while the keys change
	readings  readings   // of the keys
	scrape    fasthttp.RequestHandler
	// description returns the answer of /openapi.json; the first call makes it.
	description func() ([]byte, error)
}

// New returns a server that does not listen yet. It fails if the Config is out of range, or if Registry already holds
// metrics of its names. It sets fasthttp's process-wide limit for pooled bodies.
func New(cfg Config) (*Server, error) {
	cfg.setDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	h, err := exchange.New(exchange.Config{
		Node: cfg.Node, Logger: cfg.Logger, Limits: cfg.Limits, Wait: cfg.Wait,
		Insecure: cfg.Insecure, AdvertisedHosts: cfg.AdvertisedHosts, AllowedOrigins: cfg.AllowedOrigins, Page: cfg.Page, Audit: cfg.Audit, Zones: cfg.Zones,
		Most: lasting.Most{lasting.Connection: max(cfg.Connections/2, 1), lasting.Wait: cfg.WaitsPerKey, lasting.Stream: trail.StreamsMax / 2},
	})
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	s := &Server{cfg: cfg, host: h, actions: NewActions(), backups: NewBackups(), tries: keyring.NewTries()}
	s.history = history.New(cfg.Node, cfg.HistoryBytes)
	if err := s.loadKeys(); err != nil {
		h.Stop()
		return nil, err
	}
	s.feed = trail.NewFeed(h.Serving, cfg.Node, cfg.Logger)
	s.streams = NewStreams(s.feed)
	s.description = sync.OnceValues(func() ([]byte, error) { return describe(openAPISource, cfg.Version) })
	fasthttp.SetBodySizePoolLimit(exchange.KeptBodyBytes, exchange.KeptBytes)
	s.http = s.newHTTP()
	p := s.newPort()
	metrics, err := s.newMetrics(p)
	if err != nil {
		s.closeTokens()
		h.Stop()
		return nil, err
	}
	s.scrape = fasthttpadaptor.NewFastHTTPHandler(metrics.Handler)
	h.Begin(p, metrics, s.calls())
	return s, nil
}

func (s *Server) newMetrics(p *port.Port) (*meter.Metrics, error) {
	h := s.host
	return meter.New(s.cfg.Registry, &meter.Sources{
		NodeID: s.cfg.Node.NodeID(), Version: s.cfg.Version, Zones: s.cfg.Zones.Current,
		Connections: p.Open, Strangers: p.Strangers, BodyBytes: p.BodyBytes, AnswerBytes: p.Answers.Taken, Streams: s.feed.Count,
		Keys: h.Keys.Load,
		Read: func(fn func(m *fsm.Machine, now fsm.Stamp)) error {
			began := time.Now()
			_, err := s.cfg.Node.ReadStale(h.Waits.At(began), 0, fn)
			<-time.After(time.Since(began)) // leave the cores to Raft for as long
			return err
		},
	})
}

// showMetrics answers GET /metrics.
func (s *Server) showMetrics(r *exchange.Request) {
	if r.TakeTurn() {
		s.scrape(r.HTTP)
	}
}

func (s *Server) newPort() *port.Port {
	h := s.host
	return port.New(port.Config{
		Connections: s.cfg.Connections, PerAddress: s.cfg.ConnectionsPerAddress, BodiesBytes: s.cfg.BodiesBytes, AnswersBytes: s.cfg.AnswersBytes,
		TLS: s.cfg.TLS, ClientAuthorities: s.cfg.ClientAuthorities,
		Logger: s.cfg.Logger, Serving: h.Serving, Shares: &h.Shares,
		Answered:      h.AnsweredAlone,
		StrangerEnded: func() { h.Metrics.StrangersEnded.Inc() },
		Release:       h.ReleaseUnsent,
	})
}

func (s *Server) newHTTP() *fasthttp.Server {
	return &fasthttp.Server{
		Handler:            func(ctx *fasthttp.RequestCtx) { s.host.Handle(ctx, false) },
		ErrorHandler:       s.host.Malformed,
		HeaderReceived:     s.headRead,
		ExpectHandler:      s.host.Expected,
		Logger:             httplog.Logger{Log: s.cfg.Logger, Message: "http connection"},
		ReadTimeout:        port.ReadTimeout,
		WriteTimeout:       port.WriteTimeout,
		IdleTimeout:        idleTimeout,
		ReadBufferSize:     exchange.HeaderBytes,
		WriteBufferSize:    answerBuffer,
		MaxRequestBodySize: s.cfg.Limits.BodyBytes,
		// The listener refuses connections beyond Connections in JSON; this bound is behind that. A connection that
		// was closed to make room may still be served for a moment.
		Concurrency:                  2*s.cfg.Connections + 1,
		TCPKeepalive:                 true,
		CloseOnShutdown:              true,
		DisablePreParseMultipartForm: true, // a body is JSON, whatever its content type
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true,
	}
}

// headRead is called with the header of each request before its body is read.
func (s *Server) headRead(head *fasthttp.RequestHeader) fasthttp.RequestConfig {
	HideUpload(head)
	return s.host.HeadRead(head)
}

// Serve answers the connections of ln until Shutdown, then returns nil. It closes ln. It may be called only once.
func (s *Server) Serve(ln net.Listener) error {
	defer s.host.Port.CloseUncovered()()
	defer s.remember()()
	err := s.http.Serve(s.host.Port.Listen(ln))
	if s.host.Draining.Load() && (err == nil || errors.Is(err, net.ErrClosed)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("serve http: %w", err)
	}
	return nil
}

// remember records the history until the server drains, or end is called, which waits.
func (s *Server) remember() (end func()) {
	if s.cfg.HistoryBytes == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(s.host.Serving)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.history.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// Leave makes readiness fail and closes each connection after its answer, so that clients move to other nodes before
// Drain.
func (s *Server) Leave() { s.host.Leaving.Store(true) }

// Drain makes the server refuse new requests with shutting_down and ends waiting requests the same way, so that those
// in flight can finish. Liveness is still answered. It may be called twice.
func (s *Server) Drain() {
	s.host.Drain()
}

// Shutdown drains, stops listening and returns when every request has been answered. If ctx ends first, it aborts
// waiting requests and returns ctx's error. It may be called twice, and without Serve.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	err := s.http.ShutdownWithContext(ctx)
	s.host.Stop()
	s.closeTokens()
	s.feed.Wait()
	s.backups.Wait()
	if err != nil {
		return fmt.Errorf("shut http down: %w", err)
	}
	return nil
}

// ForwardHandler answers requests that another node forwarded. They come over the authenticated peer port, were
// checked by that node, and are never forwarded again: if this node does not lead, the answer is no_leader.
func (s *Server) ForwardHandler() fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) { s.host.Handle(ctx, true) }
}
