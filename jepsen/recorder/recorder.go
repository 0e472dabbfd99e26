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
	seed    int64
	started time.Time
	http    *http.Client

	mu      sync.Mutex // guards what follows
	callers int
	ops     []history.Op
	events  []history.Event
	samples []history.Sample
	dumps   []history.Dump
	trail   []history.Told
	tick    *history.Schedule
	final   *history.Final
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

// Event notes something that was done to the cluster.
func (r *Recorder) Event(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, history.Event{At: r.Now(), Text: fmt.Sprintf(format, args...)})
}

// Mark notes e as of now.
func (r *Recorder) Mark(e history.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.At = r.Now()
	r.events = append(r.events, e)
}

// add notes the ops of a call that has returned.
func (r *Recorder) add(ops ...history.Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, ops...)
}

// Count returns how many ops there are, and how many of them have an unknown
// outcome.
func (r *Recorder) Count() (ops, unknown int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := history.History{Ops: r.ops}
	return len(r.ops), h.UnknownCount()
}

// History returns what was recorded. No caller may be at work any more.
func (r *Recorder) History() *history.History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &history.History{Seed: r.seed, Ops: r.ops, Events: r.events, Samples: r.samples, Dumps: r.dumps, Trail: r.trail, Schedule: r.tick, Final: r.final}
}

// Close closes the connections.
func (r *Recorder) Close() { r.http.CloseIdleConnections() }
