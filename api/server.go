package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/meter"
	"github.com/claimq/claimq/api/trail"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/httplog"
	"github.com/claimq/claimq/internal/zones"
)

// Page configures the page that a server serves.
type Page struct {
	// Off disables everything below /ui/.
	Off bool
	// ReadOnly restricts every user of the page to reading.
	ReadOnly bool
}

// Config configures a server. Only Node is required; each zero field has the default that it names.
type Config struct {
	// Node performs the calls.
	Node Node
	// Logger gets a line for each internal error and change of state, never for each request. nil: none.
	Logger hclog.Logger
	// Registry is shown by /metrics; the server registers its own metrics in it. nil: a registry with only those.
	Registry *prometheus.Registry
	// Insecure says that the server listens beyond loopback without keys. Then any IP address is accepted as the
	// Host, because the check of Host is only against names that an attacker points at the server.
	Insecure bool
	// AdvertisedHosts are the names and addresses, optionally with scheme and port, that clients may use as the Host
	// in addition to loopback.
	AdvertisedHosts []string
	// Keys returns the configured API keys; New and every reload call it. If it is nil or returns none, and there are
	// no Tokens, the server is open to everyone.
	Keys func() ([]door.Key, error)
	// Tokens returns how tokens are checked, which are accepted in addition to keys; it is called together with Keys.
	// If it is nil or returns nil, no tokens are accepted.
	Tokens func() (*door.Tokens, error)
	// Audit records every denied request with a known key. nil: none are recorded.
	Audit *trail.Audit
	// AllowedOrigins are the origins, as https://host[:port], whose pages may call the API from a browser.
	AllowedOrigins []string
	// Page configures the page below /ui/.
	Page Page
	// Version is the binary's version, shown by /healthz.
	Version string
	// Zones are the time zones for schedules; nil: those built into the binary.
	Zones *zones.Source
	// SQS enables the endpoint for clients of Amazon SQS; nil: it is off.
	SQS *SQS
	// Limits bound what a request may ask for.
	Limits codec.Limits
	// Wait bounds how long a request waits for the node. After that a mutation answers outcome_unknown, and a read
	// overloaded. 0: 10 s. The actual wait may be up to half a second shorter.
	Wait time.Duration
	// TLS makes the server use HTTPS. Its certificates should come from one of its functions, so that they can be
	// renewed. nil: plain HTTP.
	TLS *tls.Config
	// ConnAge bounds how long a client with a certificate may use one connection. The answer to the first request
	// after that says that the connection is closed, and streams end. 0: 5 min.
	ConnAge time.Duration
	// handshakeTimeout bounds a TLS handshake; 0: 10 s. Tests set it.
	handshakeTimeout time.Duration
	// Connections bounds the open connections; further ones are answered overloaded and closed. 0: 16,384.
	Connections int
	// ConnectionsPerAddress bounds the connections from one address that have not shown a valid key yet. If there is
	// one more, the one that has waited longest is closed. An IPv6 address counts as its /64. 0: 1,024.
	ConnectionsPerAddress int
	// WaitsPerKey bounds the waiting claims and GETs (wait_ms) of one key, including those that other nodes forwarded
	// to this one as leader. Further ones are answered overloaded. 0: 16,384.
	WaitsPerKey int
	// BodiesBytes bounds the memory for the bodies of requests that are being received and answered; further ones are
	// answered overloaded. Each counts three times, because of what is made of it; bodies of up to 32 KiB do not
	// count. It must permit at least one body of Limits.BodyBytes. 0: 768 MiB.
	BodiesBytes int64
	// AnswersBytes bounds the memory for answers that are not written yet, except those of up to 32 KiB. Further
	// requests are answered overloaded; an answer about something that was done waits instead. 0: 256 MiB.
	AnswersBytes int64
}

const (
	defaultWait        = 10 * time.Second
	defaultConnAge     = 5 * time.Minute
	defaultHandshake   = 10 * time.Second
	defaultConnections = 16_384
	defaultPerAddress  = 1_024
	defaultKeyWaits    = 16_384
	defaultBodiesBytes = 768 << 20
	defaultAnswerBytes = 256 << 20
)

func (c *Config) setDefaults() {
	c.Limits.SetDefaults()
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	c.Wait = cmp.Or(c.Wait, defaultWait)
	c.BodiesBytes = cmp.Or(c.BodiesBytes, defaultBodiesBytes)
	c.AnswersBytes = cmp.Or(c.AnswersBytes, defaultAnswerBytes)
	c.ConnAge = cmp.Or(c.ConnAge, defaultConnAge)
	c.handshakeTimeout = cmp.Or(c.handshakeTimeout, defaultHandshake)
	c.Connections = cmp.Or(c.Connections, defaultConnections)
	c.ConnectionsPerAddress = cmp.Or(c.ConnectionsPerAddress, defaultPerAddress)
	c.WaitsPerKey = cmp.Or(c.WaitsPerKey, defaultKeyWaits)
}

func (c *Config) validate() error {
	if c.Node == nil {
		return errors.New("api: Config.Node is missing")
	}
	if !c.Limits.Valid() {
		return fmt.Errorf("api: Config.Limits out of range: %+v", c.Limits)
	}
	if least := door.BodyCopies * int64(c.Limits.BodyBytes+headerBytes); c.BodiesBytes < least {
		return fmt.Errorf("api: Config.BodiesBytes is %d, less than what one body and its headers take, %d", c.BodiesBytes, least)
	}
	if c.WaitsPerKey < 1 {
		return fmt.Errorf("api: Config.WaitsPerKey is %d", c.WaitsPerKey)
	}
	if c.AnswersBytes < 0 {
		return fmt.Errorf("api: Config.AnswersBytes is %d", c.AnswersBytes)
	}
	if c.Wait < 0 || c.Connections < 1 || c.ConnectionsPerAddress < 1 {
		return fmt.Errorf("api: Config.Wait (%s), Config.Connections (%d) or Config.ConnectionsPerAddress (%d) out of range", c.Wait, c.Connections, c.ConnectionsPerAddress)
	}
	return nil
}

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
	core *core
	http *fasthttp.Server
	// shut ends, by endServe, once Shutdown has closed what http serves.
	shut     context.Context
	endServe context.CancelFunc

	actions *actions
	backups *backups
	streams *streams
	feed    *trail.Feed // the end of the trail, for streams
	tries   *door.Tries // attempts to log in

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
	s := &Server{cfg: cfg, actions: newActions(), backups: newBackups(), tries: door.NewTries()}
	h, err := newCore(&s.cfg)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	s.core = h
	s.shut, s.endServe = context.WithCancel(context.Background())
	if err := s.loadKeys(); err != nil {
		h.stop()
		return nil, err
	}
	s.feed = trail.NewFeed(h.serving, cfg.Node, cfg.Logger)
	s.streams = newStreams(s.feed)
	s.description = sync.OnceValues(func() ([]byte, error) { return describe(openAPISource, cfg.Version) })
	fasthttp.SetBodySizePoolLimit(keptBodyBytes, keptBytes)
	s.http = s.newHTTP()
	p := s.newPort()
	metrics, err := s.newMetrics(p)
	if err != nil {
		s.closeTokens()
		h.stop()
		return nil, err
	}
	s.scrape = fasthttpadaptor.NewFastHTTPHandler(metrics.Handler)
	var rows []call
	h.sqs, rows = newQueues(s)
	h.begin(p, metrics, append(s.calls(), rows...))
	h.sqs.bind(h.calls)
	return s, nil
}

func (s *Server) newMetrics(p *door.Port) (*meter.Metrics, error) {
	h := s.core
	return meter.New(s.cfg.Registry, &meter.Sources{
		NodeID: s.cfg.Node.NodeID(), Version: s.cfg.Version, Zones: s.cfg.Zones.Current,
		Connections: p.Open, Strangers: p.Strangers, BodyBytes: p.BodyBytes, AnswerBytes: p.Answers.Reserved, Streams: s.feed.Count,
		Keys: h.keys.Load,
		Read: func(fn func(m *fsm.Machine, now fsm.Stamp)) error {
			began := time.Now()
			_, err := s.cfg.Node.ReadStale(h.waits.at(began), 0, fn)
			<-time.After(time.Since(began)) // leave the cores to Raft for as long
			return err
		},
	})
}

// showMetrics answers GET /metrics.
func (s *Server) showMetrics(r *request) {
	if r.takeTurn() {
		s.scrape(r.http)
	}
}

func (s *Server) newPort() *door.Port {
	h := s.core
	return door.New(door.Config{
		Connections: s.cfg.Connections, PerAddress: s.cfg.ConnectionsPerAddress, BodiesBytes: s.cfg.BodiesBytes, AnswersBytes: s.cfg.AnswersBytes,
		TLS: s.cfg.TLS, ConnAge: s.cfg.ConnAge, HandshakeTimeout: s.cfg.handshakeTimeout,
		Logger: s.cfg.Logger, Serving: h.serving, Shares: &h.shares,
		Answered:      h.answeredAlone,
		StrangerEnded: func() { h.metrics.StrangersEnded.Inc() },
	})
}

func (s *Server) newHTTP() *fasthttp.Server {
	return &fasthttp.Server{
		Handler:            func(ctx *fasthttp.RequestCtx) { s.core.handle(ctx, false) },
		ErrorHandler:       s.core.malformed,
		HeaderReceived:     s.headRead,
		ExpectHandler:      s.core.expected,
		Logger:             httplog.Logger{Log: s.cfg.Logger, Message: "http connection"},
		ReadTimeout:        door.ReadTimeout,
		WriteTimeout:       door.WriteTimeout,
		IdleTimeout:        idleTimeout,
		ReadBufferSize:     headerBytes,
		WriteBufferSize:    answerBuffer,
		MaxRequestBodySize: s.cfg.Limits.BodyBytes,
		// The port bounds the connections and answers in JSON those beyond. This bound must never be reached, and a
		// goroutine ends a moment after its connection.
		Concurrency:                  2 * door.ServedMost(s.cfg.Connections),
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
	hideUpload(head)
	return s.core.headRead(head)
}

// Serve answers the connections of ln until Shutdown, then returns nil. It closes ln. It may be called only once, also
// after Shutdown.
func (s *Server) Serve(ln net.Listener) error {
	// Shutdown closes only what http has begun to serve.
	end := context.AfterFunc(s.shut, func() { ln.Close() }) //nolint:errcheck // it is closed for http then
	defer end()
	err := s.http.Serve(s.core.port.Listen(ln))
	if s.core.draining.Load() && (err == nil || errors.Is(err, net.ErrClosed)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("serve http: %w", err)
	}
	return nil
}

// Leave makes readiness fail and closes each connection after its answer, so that clients move to other nodes before
// Drain.
func (s *Server) Leave() { s.core.leaving.Store(true) }

// Drain makes the server refuse new requests with shutting_down and ends waiting requests the same way, so that those
// in flight can finish. Liveness is still answered. It may be called twice.
func (s *Server) Drain() {
	s.core.drain()
}

// Shutdown drains, stops listening and returns when every request has been answered. If ctx ends first, it aborts
// waiting requests and returns ctx's error. It may be called twice, and without Serve.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	err := s.http.ShutdownWithContext(ctx)
	s.endServe()
	s.core.stop()
	s.closeTokens()
	s.feed.Wait()
	s.backups.wait()
	if err != nil && !errors.Is(err, net.ErrClosed) { // a late Serve or an earlier Shutdown has closed it
		return fmt.Errorf("shut http down: %w", err)
	}
	return nil
}

// ForwardHandler answers requests that another node forwarded. They come over the authenticated peer port, were
// checked by that node, and are never forwarded again: if this node does not lead, the answer is no_leader.
func (s *Server) ForwardHandler() fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) { s.core.handle(ctx, true) }
}
