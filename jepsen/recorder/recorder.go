package recorder

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/claimq/claimq/jepsen/history"
)

// Recorder collects the ops of all callers. It is safe for concurrent use.
type Recorder struct {
	// Key is the API key of all requests, "" = none. It must be set before the first.
	Key string

	seed    int64
	started time.Time
	http    *http.Client

	mu      sync.Mutex // guards the fields below
	callers int
	history history.History
}

// connectionsMax bounds the idle connections to each node.
const connectionsMax = 256

// New returns an empty recorder. seed is recorded in the history.
func New(seed int64) *Recorder { return NewDialing(seed, nil) }

// NewDialing is New for nodes that are reached with dial; nil means an ordinary dialer.
func NewDialing(seed int64, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *Recorder {
	return &Recorder{
		seed:    seed,
		started: time.Now(),
		history: history.History{Seed: seed},
		http: &http.Client{Transport: &http.Transport{
			DialContext:         dial,
			MaxIdleConnsPerHost: connectionsMax,
			DisableCompression:  true,
			Proxy:               nil,
		}},
	}
}

// Now returns nanoseconds of the recorder's monotonic clock.
func (r *Recorder) Now() int64 { return int64(time.Since(r.started)) }

// note changes the recorded history.
func (r *Recorder) note(change func(h *history.History)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.history)
}

// Event records something that was done to the cluster.
func (r *Recorder) Event(format string, args ...any) {
	r.Mark(history.Event{Text: fmt.Sprintf(format, args...)})
}

// Mark records e at the current time.
func (r *Recorder) Mark(e history.Event) {
	r.note(func(h *history.History) {
		e.At = r.Now()
		h.Events = append(h.Events, e)
	})
}

// Sample records a node's figures about itself.
func (r *Recorder) Sample(s history.Sample) {
	r.note(func(h *history.History) { h.Samples = append(h.Samples, s) })
}

// add records the ops of a call that has returned.
func (r *Recorder) add(ops ...history.Op) {
	r.note(func(h *history.History) { h.Ops = append(h.Ops, ops...) })
}

// Count returns the number of ops, and of those with an unknown outcome.
func (r *Recorder) Count() (ops, unknown int) {
	h := r.History()
	return len(h.Ops), h.UnknownCount()
}

// History returns the history so far.
func (r *Recorder) History() *history.History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.history
	return &h
}

// Close closes the connections.
func (r *Recorder) Close() { r.http.CloseIdleConnections() }
