package exchange

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
	"github.com/claimq/claimq/api/turn"
	"github.com/claimq/claimq/internal/zones"
	"github.com/claimq/claimq/nodes"
)

// Config configures a host. Only Audit is optional; lists may be empty.
type Config struct {
	Node            Node
	Logger          hclog.Logger
	Limits          bound.Limits
	Wait            time.Duration // bounds how long a request waits for the node
	Insecure        bool          // accept any IP address as the Host
	AdvertisedHosts []string      // accepted as the Host, too
	AllowedOrigins  []string      // whose pages may call the API
	Page            Page          // configures the page
	Audit           *audit.Writer // nil: denials are not recorded
	Most            lasting.Most  // limits per key for waits and streams
	Zones           *zones.Source // nil: those in the binary
}

// Host holds what all requests of a server share. It is safe for concurrent use.
type Host struct {
	Cfg     Config
	Node    Node
	Logger  hclog.Logger
	hosts   map[string]bool // advertised names and addresses, in lower case
	Origins map[string]bool // whose pages may call the API
	// Keys are the API keys; nil: there are none, and the server is open.
	Keys   atomic.Pointer[keyring.Ring]
	Shares lasting.Shares // of the keys
	AtWork *presence.Board
	Begun  time.Time

	Waits *deadlines
	Stop  context.CancelFunc // ends the waiting of every request
	// Serving ends with nodes.ErrShuttingDown when the server drains, so that no request keeps waiting.
	Serving  context.Context
	Leave    context.CancelCauseFunc
	Draining atomic.Bool
	Leaving  atomic.Bool // set before Draining; until then everything is served

	// Turns for reads: for those that may read much, and for the others.
	Long, Short *turn.Line

	denials  port.Sampled // samples answers of 401 and 403 for the log
	requests sync.Pool    // of *Request

	// Set by Begin.
	Port    *port.Port
	Metrics *meter.Metrics
	Calls   *table
}

// New returns a host, which serves nothing before Begin. It fails for an invalid origin.
func New(cfg Config) (*Host, error) {
	origins, err := parseOrigins(cfg.AllowedOrigins)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	begun := time.Now()
	h := &Host{
		Cfg: cfg, Node: cfg.Node, Logger: cfg.Logger, hosts: make(map[string]bool), Origins: origins,
		Waits: newDeadlines(ctx, cfg.Wait), Stop: stop, Begun: begun, AtWork: presence.New(begun),
		Long: newLong(), Short: newShort(),
	}
	for _, name := range cfg.AdvertisedHosts {
		h.hosts[hostName(name)] = true
	}
	h.Serving, h.Leave = context.WithCancelCause(ctx)
	h.Shares.Keys, h.Shares.Most = &h.Keys, cfg.Most
	h.requests.New = func() any { return &Request{Server: h} }
	return h, nil
}

// Begin sets the host's calls, its port, and its metrics.
func (s *Host) Begin(p *port.Port, metrics *meter.Metrics, calls []Call) {
	s.Port, s.Metrics, s.Calls = p, metrics, newTable(calls, metrics)
}

// Drain makes the host refuse new requests with shutting_down, and ends waiting ones the same way. It may be called
// twice.
func (s *Host) Drain() {
	s.Draining.Store(true)
	s.Leave(nodes.ErrShuttingDown)
}

// Open reports whether there are no keys and no tokens.
func (s *Host) Open() bool { return s.Keys.Load() == nil }
