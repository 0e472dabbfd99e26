package top

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/certs"
)

const (
	// looksTimeouts is how many times Config.Timeout a whole look may take.
	looksTimeouts = 3
	// putOff is for how long a node is not scraped that did not answer.
	putOff = 10 * time.Second
	// requestsMax is how many requests a look makes at most while all is well:
	// cluster, types, workers, and the metrics of the leader and of one other node.
	requestsMax = 5
	// learnedMax bounds the nodes' addresses that are kept beside the endpoints.
	learnedMax = 100
)

// Config says whom to ask.
type Config struct {
	Endpoints []string       // base URLs without a slash at the end; at least one
	APIKey    func() string  // what it returns is sent; nil, or "": none
	TLS       *certs.Renewed // the zero value: the system's
	Timeout   time.Duration  // of one request; positive
}

// Source asks the nodes. It is for one goroutine.
type Source struct {
	cfg  Config
	http *http.Client

	current string   // the base URL that answered last
	learned []string // what the nodes call themselves, beside the endpoints
	bases   map[string]string

	perMinute int       // requests that the key may make, 0: as many as it likes
	quiet     time.Time // nothing is asked before: the key had made too many

	types, workers, metrics pace
	unwell                  map[string]time.Time // nodes that are not scraped before
	turn                    int                  // whose metrics come next, beside the leader's
	last                    Look
	seen                    bool // something was answered before
}

// NewSource returns a source. The caller calls Close.
func NewSource(cfg Config) *Source {
	return &Source{
		cfg: cfg, current: cfg.Endpoints[0], bases: map[string]string{}, unwell: map[string]time.Time{},
		http: &http.Client{
			Transport: cfg.TLS.Transport(func(c *tls.Config) *http.Transport {
				return &http.Transport{
					Proxy:               http.ProxyFromEnvironment, // never for loopback
					DialContext:         (&net.Dialer{Timeout: cfg.Timeout}).DialContext,
					TLSHandshakeTimeout: cfg.Timeout,
					TLSClientConfig:     c.Clone(),
					MaxConnsPerHost:     1,
					IdleConnTimeout:     30 * time.Second,
					DisableCompression:  true, // the node's processor is dearer than its network
				}
			}),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Close closes the connections.
func (s *Source) Close() { s.http.CloseIdleConnections() }

// Interval returns how long a look should come after the one before: what is
// asked for, or longer if the key may not make so many requests.
func (s *Source) Interval(asked time.Duration) time.Duration {
	if s.perMinute == 0 {
		return asked
	}
	return max(asked, requestsMax*time.Minute/time.Duration(s.perMinute))
}

// Look asks once. It takes three times Config.Timeout at most.
func (s *Source) Look(ctx context.Context) Look {
	ctx, cancel := context.WithTimeout(ctx, looksTimeouts*s.cfg.Timeout)
	defer cancel()
	l := Look{At: time.Now(), Types: s.last.Types, Workers: s.last.Workers, Metrics: map[string]Metrics{}}
	if wait := s.quiet.Sub(l.At); wait > 0 {
		l.Cluster, l.NoLeader = s.last.Cluster, s.last.NoLeader
		l.Problems = []string{"this key has made its requests of the minute"}
		return l
	}
	answered := s.askCluster(ctx, &l)
	// Without a leader nothing changes: what was is truer than what a node says that
	// may have just been started. Nobody is asked again who does not answer.
	if l.NoLeader && s.seen || l.Err != nil && !isRefusal(l.Err) {
		s.last = l
		return l
	}
	for _, part := range []struct {
		pace *pace
		ask  func(context.Context, *Look) bool
	}{{&s.metrics, s.askMetrics}, {&s.types, s.askTypes}, {&s.workers, s.askWorkers}} {
		if now := time.Now(); part.pace.due(now) && !now.Before(s.quiet) {
			answered = part.ask(ctx, &l) || answered
		}
	}
	if answered {
		l.Err = nil
		s.seen = true
	}
	s.last = l
	return l
}

// failed notes what was not answered.
func (s *Source) failed(l *Look, what string, err error) {
	l.Err = err
	var r *Refusal
	if errors.As(err, &r) && r.Status == http.StatusTooManyRequests {
		s.quiet = time.Now().Add(max(r.RetryAfter, time.Second))
	}
	if errors.As(err, &r) && r.Code == wire.CodeNoLeader {
		l.NoLeader = true
		return // it is said once, for all
	}
	l.Problems = append(l.Problems, what+": "+err.Error())
}

// askCluster asks the leader, and without one any node for what it sees itself.
func (s *Source) askCluster(ctx context.Context, l *Look) bool {
	var c wire.Cluster
	_, err := s.ask(ctx, "/api/cluster", &c)
	if err != nil && !refused(err, http.StatusForbidden) && !refused(err, http.StatusUnauthorized) && !refused(err, http.StatusTooManyRequests) {
		// Whoever leads, or did: a read cannot be passed on.
		if _, stale := s.ask(ctx, "/api/cluster?consistency=stale", &c); stale == nil {
			l.NoLeader, err = true, nil
		}
	}
	if err != nil {
		s.failed(l, "the cluster", err)
		return false
	}
	l.Cluster = &c
	l.NoLeader = l.NoLeader || c.Leader == ""
	s.learn(&c)
	return true
}

func (s *Source) askTypes(ctx context.Context, l *Look) bool {
	var answer wire.Types
	sent := time.Now()
	path := "/api/types?order=pending" // the first 1,000
	if l.NoLeader {
		path += "&consistency=stale"
	}
	size, err := s.ask(ctx, path, &answer)
	s.types.took(sent, size)
	if err != nil {
		s.failed(l, "the types", err)
		return false
	}
	l.Types = &Types{At: sent, Rows: answer.Types}
	return true
}

func (s *Source) askWorkers(ctx context.Context, l *Look) bool {
	var answer wire.Workers
	sent := time.Now()
	size, err := s.ask(ctx, "/api/workers"+consistency(l), &answer)
	s.workers.took(sent, size)
	if err != nil {
		s.failed(l, "the workers", err)
		return false
	}
	l.Workers = &Workers{At: sent, Rows: answer.Workers}
	return true
}

// consistency is how to ask: without a leader what a node has is better than
// nothing.
func consistency(l *Look) string {
	if l.NoLeader {
		return "?consistency=stale"
	}
	return ""
}

// ask asks one node after the other until one answers, or all have refused. size is
// how many bytes came, even if they were too many.
func (s *Source) ask(ctx context.Context, path string, into any) (size int, err error) {
	for _, base := range s.order() {
		var body []byte
		body, err = s.get(ctx, base, path)
		size += len(body)
		if err == nil {
			if err = json.Unmarshal(body, into); err == nil {
				s.current = base
				return size, nil
			}
			err = fmt.Errorf("%s: decode answer: %w", base, err)
		}
		var r *Refusal
		if ctx.Err() != nil || errors.As(err, &r) && !r.elsewhere() {
			break
		}
	}
	return size, err
}

// order returns whom to ask: who answered last, the endpoints, the other nodes.
func (s *Source) order() []string {
	order := []string{s.current}
	for _, base := range slices.Concat(s.cfg.Endpoints, s.learned) {
		if !slices.Contains(order, base) {
			order = append(order, base)
		}
	}
	return order
}

// learn keeps the addresses that the nodes have given themselves. A key that was
// sent encrypted is not sent in the clear.
func (s *Source) learn(c *wire.Cluster) {
	s.learned = s.learned[:0]
	for i := range c.Nodes {
		addr := strings.TrimRight(c.Nodes[i].HTTPAddr, "/")
		if s.safe(addr) && len(s.learned) < learnedMax {
			s.learned = append(s.learned, addr)
		}
	}
}

func (s *Source) safe(addr string) bool {
	if strings.HasPrefix(addr, "https://") {
		return true
	}
	return strings.HasPrefix(addr, "http://") && strings.HasPrefix(s.cfg.Endpoints[0], "http://")
}
