package api

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/api/audit"
	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/lasting"
	"github.com/claimq/claimq/api/meter"
	"github.com/claimq/claimq/api/port"
	"github.com/claimq/claimq/api/presence"
	"github.com/claimq/claimq/fsm"
)

// hostConfig is what a host is made of. All of it is needed but Audit, and what is
// empty when there is none of it.
type hostConfig struct {
	Node            Node
	Logger          hclog.Logger
	Limits          bound.Limits
	Wait            time.Duration // bounds how long a request waits for the node
	Insecure        bool          // a Host that is any IP address is let in
	AdvertisedHosts []string      // that are let in, too
	AllowedOrigins  []string      // whose pages may call
	Page            Page          // what is served of it
	Audit           *audit.Writer // nil: nobody is told of denials
	Most            lasting.Most  // of what lasts, for one key
}

// host is what all requests of a server share. It is safe for concurrent use.
type host struct {
	cfg     hostConfig
	node    Node
	logger  hclog.Logger
	hosts   map[string]bool // advertised names and addresses, in lower case
	origins map[string]bool // whose pages may call
	// keys are the API keys, nil: there are none, and the server is open.
	keys   atomic.Pointer[keyring.Ring]
	shares lasting.Shares // of the keys
	atWork *presence.Board
	begun  time.Time

	waits *deadlines
	stop  context.CancelFunc // ends the waiting of every request
	// serving ends with fsm.ErrShuttingDown when the server drains: then nobody
	// is left waiting for something to happen.
	serving  context.Context
	leave    context.CancelCauseFunc
	draining atomic.Bool

	denials  port.Sampled // answers of 401 and 403, in the log
	requests sync.Pool    // of *request

	// What begin sets.
	port    *port.Port
	metrics *meter.Metrics
	calls   *table
}

// newHost returns a host, which serves nothing before begin. It fails for an origin that
// is none.
func newHost(cfg hostConfig) (*host, error) {
	origins, err := parseOrigins(cfg.AllowedOrigins)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	begun := time.Now()
	h := &host{
		cfg: cfg, node: cfg.Node, logger: cfg.Logger, hosts: make(map[string]bool), origins: origins,
		waits: newDeadlines(ctx, cfg.Wait), stop: stop, begun: begun, atWork: presence.New(begun),
	}
	for _, name := range cfg.AdvertisedHosts {
		h.hosts[hostName(name)] = true
	}
	h.serving, h.leave = context.WithCancelCause(ctx)
	h.shares.Keys, h.shares.Most = &h.keys, cfg.Most
	h.requests.New = func() any { return &request{server: h} }
	return h, nil
}

// begin gives the host its calls, the port that they come to, and what counts them.
func (s *host) begin(p *port.Port, metrics *meter.Metrics, calls []call) {
	s.port, s.metrics, s.calls = p, metrics, newTable(calls, metrics)
}

// drain makes the host refuse new requests with shutting_down, and tells the same to those
// that wait for something to happen. It is safe twice.
func (s *host) drain() {
	s.draining.Store(true)
	s.leave(fsm.ErrShuttingDown)
}

// open reports whether there are no keys and no tokens.
func (s *host) open() bool { return s.keys.Load() == nil }
