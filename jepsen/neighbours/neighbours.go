package neighbours

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/recorder"
)

// Readers is the default number of connections with heavy reads.
const Readers = 40

const (
	// retryPause is the shortest pause after a call that was refused or not answered; it is at most
	// twice as long. A node may be down or short of descriptors.
	retryPause = 250 * time.Millisecond
	// idleMax limits how long an idle connection is kept.
	idleMax = 2 * time.Second
	// notesMax bounds the recorded events of each kind.
	notesMax = 100
)

// Keys holds the API keys of a run: an operator's for its own callers, one for the heavy readers,
// one for the reader outside of the crowd, and one for each tenant.
type Keys struct {
	Operator       string
	readers, alone string
	tenants        []string // in the order of names
}

// NewKeys makes keys and writes the nodes' key file into dir.
func NewKeys(dir string) (k Keys, file string, err error) {
	const operator, readers, alone = "run", "readers", "alone"
	may := map[string]string{operator: "role: operator", readers: "role: reader", alone: "role: reader"}
	for _, name := range names {
		may[name] = fmt.Sprintf("roles: [producer, worker], task_types: [%s]", typeOf(name))
	}
	file = filepath.Join(dir, "keys.yaml")
	keys, err := procs.WriteKeys(file, may)
	k = Keys{Operator: keys[operator], readers: keys[readers], alone: keys[alone]}
	for _, name := range names {
		k.tenants = append(k.tenants, keys[name])
	}
	return k, file, err
}

// Config configures the neighbours of a run.
type Config struct {
	Nodes   []string       // base URLs
	Dial    procs.DialFunc // nil: an ordinary dialer
	Keys    Keys
	Readers int // number of connections with heavy reads
	Seed    int64
}

// Neighbours work until they are closed.
type Neighbours struct {
	cfg    Config
	rec    *recorder.Recorder
	began  time.Time
	moving sync.WaitGroup

	readers http.RoundTripper
	large   []uint64      // large tasks that furnish submitted, 0 if the answer is not known
	parent  atomic.Uint64 // a parent that a reader saw, 0 = none
	tenants []*tenant
	rush    rush

	answered, refused, unanswered, looked, bytes atomic.Int64

	mu    sync.Mutex
	notes map[history.EventKind]int // guarded by mu
}

// Start runs the neighbours until ctx ends. It records their calls and wrong answers in rec.
func Start(ctx context.Context, rec *recorder.Recorder, cfg Config) *Neighbours {
	n := &Neighbours{cfg: cfg, rec: rec, began: time.Now(), notes: map[history.EventKind]int{}, rush: rush{all: map[int]*history.Rush{}}}
	n.readers = n.transport()
	for i := range cfg.Readers {
		r := &reader{Neighbours: n, key: cfg.Keys.readers, at: i, rng: rand.New(rand.NewSource(cfg.Seed*7919 + int64(i)))}
		n.moving.Go(func() { r.read(ctx) })
	}
	n.moving.Go(func() { (&reader{Neighbours: n, key: cfg.Keys.alone}).readAlone(ctx) })
	n.moving.Go(func() { n.furnish(ctx) })
	for i := range names {
		n.tenants = append(n.tenants, newTenant(n, i))
	}
	n.moving.Go(func() { n.let(ctx) })
	return n
}

// transport returns a transport that soon closes idle connections.
func (n *Neighbours) transport() *http.Transport {
	return &http.Transport{
		DialContext: n.cfg.Dial, DisableCompression: true, Proxy: nil,
		MaxIdleConnsPerHost: max(n.cfg.Readers, len(names)*tenantCallers), IdleConnTimeout: idleMax,
	}
}

// Wait waits until all neighbours have stopped, after the context of Start has ended.
func (n *Neighbours) Wait() { n.moving.Wait() }

// Close waits until all neighbours have stopped, and lets the run's own callers claim their
// remaining tasks.
func (n *Neighbours) Close(ctx context.Context) error {
	n.Wait()
	return errors.Join(n.clear(ctx), n.pauseTenants(ctx, false))
}

// Did returns a summary of what the neighbours did.
func (n *Neighbours) Did() *history.Neighbours {
	return &history.Neighbours{
		Readers: n.cfg.Readers, Answered: n.answered.Load(), Refused: n.refused.Load(), Unanswered: n.unanswered.Load(),
		Tenants: len(n.tenants), Looked: n.looked.Load(), Bytes: n.bytes.Load(),
		Rushes: n.rush.said(),
	}
}

// note records a wrong answer, up to notesMax of each kind.
func (n *Neighbours) note(kind history.EventKind, format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.notes[kind]++; n.notes[kind] <= notesMax {
		n.rec.Mark(history.Event{Kind: kind, Text: fmt.Sprintf(format, args...)})
	}
}

// until repeats a call until its outcome is known or ctx ends.
func until(ctx context.Context, call func() history.Op) history.Op {
	for {
		op := call()
		if !recorder.Again(op) || !pause.For(ctx, retryPause) {
			return op
		}
	}
}

// names lists the tenants. Everything that a tenant sends contains its name.
var names = []string{"z3left", "z3right"}

// typeOf returns the only task type of a tenant.
func typeOf(name string) string { return name + "-type" }

// pauseTenants pauses or resumes the tenants' types. Tasks of a paused type can be claimed only by
// id, so that the run's own callers, who claim any task, leave them to the tenants.
func (n *Neighbours) pauseTenants(ctx context.Context, paused bool) error {
	operator := n.rec.Caller(n.cfg.Nodes, 0)
	for _, name := range names {
		op := until(ctx, func() history.Op {
			return operator.Call(ctx, history.Op{Kind: history.SetType, TaskType: typeOf(name), Paused: &paused})
		})
		if op.Outcome != history.OK {
			return fmt.Errorf("%w: pause %s, %v: %s %s", errNot, typeOf(name), paused, op.Outcome, op.Code)
		}
	}
	return nil
}

// errNot is returned if something could not be done.
var errNot = errors.New("not done")

// others returns the marks that must not appear in answers to a tenant: the other tenants' names,
// and texts that the run's own callers send. Package workload begins their keys with the seed.
func others(name string, seed int64) []string {
	found := []string{fmt.Sprintf(`"s%d-k`, seed), "type-0", "type-1", "type-2", "it went wrong", "it is not good enough"}
	return append(found, slices.DeleteFunc(slices.Clone(names), func(other string) bool { return other == name })...)
}
