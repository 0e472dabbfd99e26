package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/lasting"
	"github.com/claimq/claimq/api/meter"
	"github.com/claimq/claimq/api/port"
	"github.com/claimq/claimq/api/presence"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/trail"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/httplog"
)

// The bounds of the HTTP protocol itself.
const (
	// idleTimeout is how long a connection may wait between requests.
	idleTimeout = 2 * time.Minute
	// headerBytes bounds a request's line and headers together. What is passed
	// on to the leader is a little longer and must fit the peer port's bound.
	headerBytes = 12 << 10
	// answerBuffer is a connection's buffer for answers.
	answerBuffer = 8 << 10
)

// Server answers the HTTP API. Its methods are safe for concurrent use.
type Server struct {
	cfg     Config
	node    Node
	logger  hclog.Logger
	metrics *meter.Metrics
	counts  [callCount]meter.Call // of the calls
	scrape  fasthttp.RequestHandler
	hosts   map[string]bool // advertised names and addresses, in lower case
	http    *fasthttp.Server
	feed    *trail.Feed     // the end of the trail, for streams
	origins map[string]bool // whose pages may call
	// keys are the API keys, nil: there are none, and the server is open.
	// reloading is held by whoever changes them.
	keys      atomic.Pointer[keyring.Ring]
	reloading sync.Mutex

	waits *deadlines
	stop  context.CancelFunc // ends the waiting of every request
	// serving ends with fsm.ErrShuttingDown when the server drains: then nobody
	// is left waiting for something to happen.
	serving  context.Context
	leave    context.CancelCauseFunc
	draining atomic.Bool
	shares   lasting.Shares
	port     *port.Port
	denials  port.Sampled // answers of 401 and 403, in the log
	requests sync.Pool    // of *request
	// description returns what /openapi.json answers; the first call makes it.
	description func() ([]byte, error)

	begun  time.Time
	atWork *presence.Board

	acting chan struct{} // one element per action on many tasks
	saving chan struct{} // one element per backup that is sent
	// uploading counts the requests whose connection was taken over.
	uploading sync.WaitGroup
}

// New returns a server that does not listen yet. It fails for a Config that is
// out of range, and when Registry holds metrics of its names already. It bounds what
// fasthttp keeps of bodies, for the whole process.
func New(cfg Config) (*Server, error) {
	cfg.setDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	origins, err := parseOrigins(cfg.AllowedOrigins)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	begun := time.Now()
	s := &Server{
		cfg: cfg, node: cfg.Node, logger: cfg.Logger, hosts: make(map[string]bool), origins: origins,
		waits: newDeadlines(ctx, cfg.Wait), stop: stop,
		begun: begun, atWork: presence.New(begun),
		acting: make(chan struct{}, actionsMax), saving: make(chan struct{}, savesMax),
	}
	if err := s.loadKeys(); err != nil {
		stop()
		return nil, err
	}
	for _, h := range cfg.AdvertisedHosts {
		s.hosts[hostName(h)] = true
	}
	s.serving, s.leave = context.WithCancelCause(ctx)
	s.feed = trail.NewFeed(s.serving, s.node, s.logger)
	s.shares.Keys = &s.keys
	s.shares.Most = lasting.Most{
		lasting.Connection: max(cfg.Connections/2, 1), lasting.Wait: cfg.WaitsPerKey, lasting.Stream: trail.StreamsMax / 2,
	}
	s.port = s.newPort()
	s.description = sync.OnceValues(func() ([]byte, error) { return describe(openAPISource, cfg.Version) })
	s.requests.New = func() any { return &request{server: s} }
	fasthttp.SetBodySizePoolLimit(keptBytes, keptBytes)
	s.http = s.newHTTP()
	if err := s.newMetrics(); err != nil {
		s.closeTokens()
		stop()
		return nil, err
	}
	return s, nil
}

func (s *Server) newMetrics() (err error) {
	s.metrics, err = meter.New(s.cfg.Registry, &meter.Sources{
		NodeID: s.node.NodeID(), Version: s.cfg.Version,
		Connections: s.port.Open, Strangers: s.port.Strangers, BodyBytes: s.port.BodyBytes, AnswerBytes: s.port.Answers.Taken, Streams: s.feed.Count,
		Keys: s.keys.Load,
		Read: func(fn func(m *fsm.Machine, now fsm.Stamp)) error {
			_, err := s.node.ReadStale(s.waits.at(time.Now()), 0, fn)
			return err
		},
	})
	if err != nil {
		return err
	}
	for c := range callCount {
		s.counts[c] = s.metrics.Call(c.String())
	}
	s.scrape = fasthttpadaptor.NewFastHTTPHandler(s.metrics.Handler)
	return nil
}

// showMetrics answers GET /metrics.
func (r *request) showMetrics() { r.server.scrape(r.http) }

func (s *Server) newPort() *port.Port {
	return port.New(port.Config{
		Connections: s.cfg.Connections, PerAddress: s.cfg.ConnectionsPerAddress, BodiesBytes: s.cfg.BodiesBytes, AnswersBytes: s.cfg.AnswersBytes,
		TLS: s.cfg.TLS, ClientAuthorities: s.cfg.ClientAuthorities,
		Logger: s.logger, Serving: s.serving, Shares: &s.shares,
		Answered:      s.answeredAlone,
		StrangerEnded: func() { s.metrics.StrangersEnded.Inc() },
		Release:       s.releaseUnsent,
	})
}

// answeredAlone counts an answer of the port, to no request, and returns an id for it.
func (s *Server) answeredAlone(f *refuse.Refusal) (id []byte) {
	s.counts[callNone].Count(string(f.Code))
	if f.Code == wire.CodeOverloaded {
		s.metrics.Overload(f.Reason)
	}
	return requestID(nil, nil, time.Now())
}

func (s *Server) newHTTP() *fasthttp.Server {
	return &fasthttp.Server{
		Handler:            func(ctx *fasthttp.RequestCtx) { s.handle(ctx, false) },
		ErrorHandler:       s.malformed,
		HeaderReceived:     s.headRead,
		Logger:             httplog.Logger{Log: s.logger, Message: "http connection"},
		ReadTimeout:        port.ReadTimeout,
		WriteTimeout:       port.WriteTimeout,
		IdleTimeout:        idleTimeout,
		ReadBufferSize:     headerBytes,
		WriteBufferSize:    answerBuffer,
		MaxRequestBodySize: s.cfg.Limits.BodyBytes,
		// The listener refuses what is over Connections in JSON; this is the
		// bound behind it. One that was closed to make room may still be served
		// for a moment.
		Concurrency:                  2*s.cfg.Connections + 1,
		TCPKeepalive:                 true,
		CloseOnShutdown:              true,
		DisablePreParseMultipartForm: true, // a body is JSON whatever its type
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true,
	}
}

// Serve answers the connections of ln until Shutdown, then returns nil. It
// closes ln. It may be called once.
func (s *Server) Serve(ln net.Listener) error {
	defer s.port.CloseUncovered()()
	err := s.http.Serve(s.port.Listen(ln))
	if s.draining.Load() && (err == nil || errors.Is(err, net.ErrClosed)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("serve http: %w", err)
	}
	return nil
}

// Drain makes the server refuse new requests with shutting_down, so that what
// is in flight can finish, and tells the same to those that wait for something
// to happen. Liveness is still answered. It is safe twice.
func (s *Server) Drain() {
	s.draining.Store(true)
	s.leave(fsm.ErrShuttingDown)
}

// Shutdown drains, stops listening and returns when every request has been
// answered; when ctx ends first, it ends their waiting and returns ctx's
// error. It is safe twice, and without Serve.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	err := s.http.ShutdownWithContext(ctx)
	s.stop()
	s.closeTokens()
	s.feed.Wait()
	s.uploading.Wait()
	if err != nil {
		return fmt.Errorf("shut http down: %w", err)
	}
	return nil
}

// ForwardHandler answers requests that another node passed on. They come over
// the authenticated peer port, were guarded where they arrived, and are never
// passed on again: if this node does not lead, the answer is no_leader.
func (s *Server) ForwardHandler() fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) { s.handle(ctx, true) }
}
