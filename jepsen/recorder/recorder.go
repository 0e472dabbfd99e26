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
	// Key is the API key of all requests, "" = none. Set it before the first.
	Key string

	seed    int64
	started time.Time
	http    *http.Client

	mu      sync.Mutex // guards what follows
	callers int
	history history.History
}

// connectionsMax bounds the idle connections that are kept to each node.
const connectionsMax = 256

// New returns an empty recorder. seed is written into the history.
func New(seed int64) *Recorder { return NewDialing(seed, nil) }

// NewDialing is New for nodes that are reached by dial, nil for an ordinary
// dialer.
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

// note changes what is recorded.
func (r *Recorder) note(change func(h *history.History)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.history)
}

// Event notes something that was done to the cluster.
func (r *Recorder) Event(format string, args ...any) {
	r.Mark(history.Event{Text: fmt.Sprintf(format, args...)})
}

// Mark notes e as of now.
func (r *Recorder) Mark(e history.Event) {
	r.note(func(h *history.History) {
		e.At = r.Now()
		h.Events = append(h.Events, e)
	})
}

// Sample notes what a node said of itself.
func (r *Recorder) Sample(s history.Sample) {
	r.note(func(h *history.History) { h.Samples = append(h.Samples, s) })
}

// add notes the ops of a call that has returned.
func (r *Recorder) add(ops ...history.Op) {
	r.note(func(h *history.History) { h.Ops = append(h.Ops, ops...) })
}

// Count returns how many ops there are, and how many of them have an unknown
// outcome.
func (r *Recorder) Count() (ops, unknown int) {
	h := r.History()
	return len(h.Ops), h.UnknownCount()
}

// History returns what is recorded so far.
func (r *Recorder) History() *history.History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.history
	return &h
}

// Close closes the connections.
func (r *Recorder) Close() { r.http.CloseIdleConnections() }
