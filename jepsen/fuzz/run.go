package fuzz

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/check"
)

// Config says what to send to which nodes.
type Config struct {
	Nodes    []Node
	Requests int // in all, including those to the peer ports
	Seed     int64
	Senders  int // concurrent senders
	// Keys are the API keys that the nodes know, and others; Key is an operator's. Both are
	// empty in open mode.
	Keys []string
	Key  string
	// FoeKey is a reader's key that some of the foes have: one key has its share of the
	// connections and no more.
	FoeKey string
	// TLS, if not nil, is used for their APIs.
	TLS *tls.Config
	// JoinKey is the nodes' secret.
	JoinKey []byte
	// Foes is the number of connections in each siege after the requests, and Hold its
	// length. Foes should be about twice the connections that a node accepts. 0: no sieges.
	Foes int
	Hold time.Duration
	// ResidentMaxMB bounds a node's memory during a siege.
	ResidentMaxMB float64
	// Running reports whether the node is still the same process.
	Running func(node int) error
}

// Node is one of the nodes, as the others know it.
type Node struct {
	*procs.Node
	UUID string
	Key  ed25519.PrivateKey // of its UUID
}

// Report holds the results.
type Report struct {
	check.Part // the problems
	Seed       int64
	Requests   map[string]int // by kind
	Operations int            // in the description
	Statuses   map[int]int    // 0: no answer
	Done       map[string]int // successful answers, by operation
	PassedOn   int            // requests to the peer ports that were done
	Sieges     []Siege
	Before     []Usage // by node
	After      []Usage
	Seconds    float64
}

// The rules that may be broken.
const (
	ruleAnswer  check.Rule = "answer"  // each answer is allowed by the contract
	rulePeer    check.Rule = "peer"    // a node without a member's key is never accepted as that member
	ruleGuest   check.Rule = "guest"   // during a siege a caller with a key is answered
	ruleProcess check.Rule = "process" // no node ends, and nothing panics
	ruleUsage   check.Rule = "usage"   // all resources are given back
)

const (
	// warmShare of the requests are sent before the first measurement, so that buffers and
	// connections that stay have been made.
	warmShare = 5
	// settleTimeout bounds the wait until nodes use no more than before: idle connections
	// between nodes stay open for a while.
	settleTimeout = 3 * time.Minute
	settlePause   = 500 * time.Millisecond
	postTimeout   = time.Minute
	forwardsMax   = 100 // valid requests that are forwarded until one is done
	// longHold is the length of a siege after which the resources must be given back: idle
	// goroutines of a server stay for 10 s.
	longHold = 5 * time.Second
)

// run is a Run under way.
type run struct {
	cfg  Config
	ops  []operation
	seen *seen
	sent atomic.Int64

	mu     sync.Mutex // guards the fields below
	report Report
}

// Run sends the requests and reports the results. An error means that it could not run, not
// that something was wrong.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	r := &run{cfg: cfg, seen: &seen{}}
	r.report = Report{Part: check.Part{Name: "fuzz"}, Seed: cfg.Seed, Requests: map[string]int{}, Statuses: map[int]int{}, Done: map[string]int{}}
	began := time.Now()
	var err error
	if r.ops, err = describe(ctx, cfg.Nodes[0]); err != nil {
		return nil, err
	}
	r.ops = append(r.ops, sqsOperations()...)
	r.report.Operations = len(r.ops)
	for i := range r.ops {
		r.report.Done[r.ops[i].name] = 0
	}
	warm := cfg.Requests / warmShare
	r.send(ctx, 0, warm)
	if r.report.Before, err = r.usage(ctx); err != nil {
		return nil, err
	}
	r.send(ctx, 1, cfg.Requests-warm)
	r.forward(ctx)
	err = r.settle(ctx)
	if err == nil && cfg.Foes > 0 && r.report.OK() {
		if err = r.besiege(ctx); err == nil && cfg.Hold >= longHold {
			err = r.settle(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	r.report.Seconds = time.Since(began).Seconds()
	return &r.report, ctx.Err()
}

func (r *run) violate(rule check.Rule, format string, args ...any) {
	r.locked(func() { r.report.Violate(rule, 0, nil, format, args...) })
}

// send sends count requests with all senders.
func (r *run) send(ctx context.Context, part, count int) {
	r.sent.Store(0)
	var sending sync.WaitGroup
	for i := range r.cfg.Senders {
		sending.Go(func() {
			s := r.sender(int64(part*r.cfg.Senders + i))
			defer s.close()
			for r.sent.Add(1) <= int64(count) && ctx.Err() == nil {
				s.next(ctx)
			}
		})
	}
	sending.Wait()
	r.checkRunning()
}

// forward has members forward valid requests until one is done, because whether one of those that
// are drawn is done depends on chance.
func (r *run) forward(ctx context.Context) {
	s := r.sender(int64(2 * r.cfg.Senders))
	defer s.close()
	for try := 0; try < forwardsMax && s.foe.done == 0 && ctx.Err() == nil; try++ {
		node := try % len(r.cfg.Nodes)
		s.foe.addr = r.cfg.Nodes[node].PeerAddr
		if wrong := s.foe.forwardAsMember(ctx); wrong != "" {
			r.violate(rulePeer, "peer port of node %d: %s", node+1, wrong)
		}
	}
}

func (r *run) checkRunning() {
	for i := range r.cfg.Nodes {
		if err := r.cfg.Running(i); err != nil {
			r.violate(ruleProcess, "node %d: %v", i+1, err)
		}
	}
}

// sender is one goroutine that sends.
type sender struct {
	r     *run
	rng   *rand.Rand
	make  *maker
	conns []*conn
	foe   foe
}

func (r *run) sender(stream int64) *sender {
	rng := rand.New(rand.NewSource(r.cfg.Seed*1_000_003 + stream))
	s := &sender{r: r, rng: rng, make: &maker{rng: rng, ops: r.ops, keys: r.cfg.Keys, seen: r.seen}}
	for _, n := range r.cfg.Nodes {
		s.conns = append(s.conns, &conn{addr: n.HTTPAddr, tls: r.cfg.TLS})
	}
	s.foe = foe{rng: rng, make: s.make, members: r.cfg.Nodes, joinKey: r.cfg.JoinKey}
	return s
}

func (s *sender) close() {
	s.r.locked(func() { s.r.report.PassedOn += s.foe.done })
	for _, c := range s.conns {
		c.close()
	}
}

// next sends one request.
func (s *sender) next(ctx context.Context) {
	k, node := pick(s.rng), s.rng.Intn(len(s.conns))
	if k == kindPeer {
		s.foe.addr = s.r.cfg.Nodes[node].PeerAddr
		if wrong := s.foe.attack(ctx); wrong != "" {
			s.r.violate(rulePeer, "peer port of node %d: %s", node+1, wrong)
		}
		s.r.count(k, -1)
		return
	}
	req := s.make.make(k)
	to := s.conns[node]
	if k == kindRaw && s.r.cfg.TLS != nil && s.rng.Intn(2) == 0 {
		to = &conn{addr: to.addr} // not even TLS
		defer to.close()
	}
	a := to.exchange(ctx, &req)
	if ctx.Err() != nil {
		return
	}
	if a.status/100 == 2 {
		s.r.seen.note(a.body)
	}
	if wrong := judge(&req, &a); wrong != "" {
		s.r.violate(ruleAnswer, "node %d: %s to %s\n    answer: %.500q", node+1, wrong, show(&req), a.body)
	}
	s.r.count(k, a.status)
	if a.status/100 == 2 {
		s.r.locked(func() { s.r.report.Done[req.op]++ })
	}
}

func (r *run) locked(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}

func (r *run) count(k kind, status int) {
	r.locked(func() {
		r.report.Requests[kindNames[k]]++
		if status >= 0 {
			r.report.Statuses[status]++
		}
	})
}

// empty deletes everything in the state, so that the nodes' resources can be compared.
func (r *run) empty(ctx context.Context) error {
	for _, body := range []string{`{"action":"cancel","all":true}`, `{"action":"delete","filter":{"status":"cancelled"}}`, `{"action":"delete","filter":{"status":"completed"}}`, `{"action":"delete","filter":{"status":"failed"}}`} {
		if err := r.post(ctx, "/api/tasks/actions", body); err != nil {
			return err
		}
	}
	return nil
}

// post tries the nodes one after the other until one succeeds.
func (r *run) post(ctx context.Context, path, body string) error {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	return pause.Until(ctx, settlePause, func() (err error) {
		for i := range r.cfg.Nodes {
			if err = r.cfg.Nodes[i].Ask(ctx, http.MethodPost, path, json.RawMessage(body), nil); err == nil {
				break
			}
		}
		return err
	})
}

// usage empties the state and returns the resources of each node.
func (r *run) usage(ctx context.Context) ([]Usage, error) {
	if err := r.empty(ctx); err != nil {
		return nil, fmt.Errorf("empty the state: %w", err)
	}
	all := make([]Usage, len(r.cfg.Nodes))
	for i := range all {
		var err error
		if all[i], err = r.cfg.Nodes[i].Metrics(ctx); err != nil {
			return nil, fmt.Errorf("node %d: %w", i+1, err)
		}
	}
	return all, nil
}

// errGrown is returned while a node uses more than before.
var errGrown = errors.New("it uses more than before")

// settle waits until each node uses no more than before, and reports nodes that do not, and
// panics.
func (r *run) settle(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	err := pause.Until(waiting, settlePause, func() error {
		after, err := r.usage(ctx)
		if err != nil {
			return err
		}
		r.report.After = after
		return r.grown()
	})
	if errors.Is(err, errGrown) {
		r.violate(ruleUsage, "%v", err)
		err = nil
	}
	for i, u := range r.report.After {
		if u[panics] > 0 {
			r.violate(ruleProcess, "node %d: %.0f panics while answering", i+1, u[panics])
		}
	}
	return err
}

// grown compares the nodes' resources with the earlier ones. Errors: errGrown.
func (r *run) grown() error {
	var errs []error
	for i, u := range r.report.After {
		most := 0.0
		if len(r.report.Sieges) > 0 { // memory of large lists is collected late
			most = r.cfg.ResidentMaxMB
		}
		if what := u.grown(r.report.Before[i], most); what != "" {
			errs = append(errs, fmt.Errorf("node %d: %w: %s", i+1, errGrown, what))
		}
	}
	return errors.Join(errs...)
}
