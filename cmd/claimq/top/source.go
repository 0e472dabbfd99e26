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
	// looksTimeouts times Config.Timeout is the longest time for a whole look.
	looksTimeouts = 3
	// putOff is the pause before a node that did not answer is scraped again.
	putOff = 10 * time.Second
	// requestsMax bounds the requests of a look if all goes well: cluster, types, workers, and the metrics of the
	// leader and of one other node.
	requestsMax = 5
	// learnedMax bounds the addresses kept in addition to the endpoints.
	learnedMax = 100
)

// Config says which nodes to ask.
type Config struct {
	Endpoints []string       // base URLs without a final slash; at least one
	APIKey    func() string  // returns the key to send; nil, or "": no key
	TLS       *certs.Renewed // the zero value: the system's
	Timeout   time.Duration  // for one request; positive
}

// Source asks the nodes. One goroutine may use it.
type Source struct {
	cfg  Config
	http *http.Client

	current string   // the base URL that answered last
	learned []string // addresses that the nodes reported, in addition to the endpoints
	bases   map[string]string

	perMinute int       // requests that the key may make; 0: no limit
	quiet     time.Time // no request before this: the key had made too many

	types, workers, metrics pace
	unwell                  map[string]time.Time // nodes that are not scraped before these times
	turn                    int                  // the turn of the next node to scrape in addition to the leader
	last                    Look
	seen                    bool // a request was answered before
}

// NewSource returns a source. The caller must call Close.
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
					DisableCompression:  true, // the node's processor costs more than its network
				}
			}),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Close closes the connections.
func (s *Source) Close() { s.http.CloseIdleConnections() }

// Interval returns the time from one look to the next. It is asked, or longer if the key may not make so frequent
// requests.
func (s *Source) Interval(asked time.Duration) time.Duration {
	if s.perMinute == 0 {
		return asked
	}
	return max(asked, requestsMax*time.Minute/time.Duration(s.perMinute))
}

// Look asks the nodes once. It takes at most three times Config.Timeout.
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
	// Without a leader nothing changes, and a node that has just started may know less than the last look. Nodes that
	// do not answer are not asked again.
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

// failed records what was not answered.
func (s *Source) failed(l *Look, what string, err error) {
	l.Err = err
	var r *Refusal
	if errors.As(err, &r) && r.Status == http.StatusTooManyRequests {
		s.quiet = time.Now().Add(max(r.RetryAfter, time.Second))
	}
	if errors.As(err, &r) && r.Code == wire.CodeNoLeader {
		l.NoLeader = true
		return // one message is enough for all requests
	}
	l.Problems = append(l.Problems, what+": "+err.Error())
}

// askCluster asks the leader, or without one any node for its own view.
func (s *Source) askCluster(ctx context.Context, l *Look) bool {
	var c wire.Cluster
	_, err := s.ask(ctx, "/api/cluster", &c)
	if err != nil && !refused(err, http.StatusForbidden) && !refused(err, http.StatusUnauthorized) && !refused(err, http.StatusTooManyRequests) {
		// The leader is gone or unreachable, because the read cannot be passed on.
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

// consistency returns the query parameter for reads. Without a leader a node's own state is better than no answer.
func consistency(l *Look) string {
	if l.NoLeader {
		return "?consistency=stale"
	}
	return ""
}

// ask asks one node after another until one answers or all have refused. size counts all bytes received, even of an
// answer that was too large.
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

// order returns the nodes to ask: the one that answered last, the endpoints, then other nodes.
func (s *Source) order() []string {
	order := []string{s.current}
	for _, base := range slices.Concat(s.cfg.Endpoints, s.learned) {
		if !slices.Contains(order, base) {
			order = append(order, base)
		}
	}
	return order
}

// learn keeps the addresses that the nodes report for themselves. It skips plain HTTP addresses if the key was sent
// encrypted.
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
