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
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/procs"
	"github.com/claimq/claimq/jepsen/recorder"
)

// Readers is how many connections ask heavy reads where nothing else is said.
const Readers = 40

const (
	// retryPause is how long one waits that was not answered, or refused, and up to as long
	// again: a node may be down, or have few descriptors.
	retryPause = 250 * time.Millisecond
	// idleMax is how long a connection is kept that is of no use.
	idleMax = 2 * time.Second
	// notesMax bounds the events of each kind that are noted.
	notesMax = 100
)

// Keys are the API keys of a run: of an operator for its own callers, of the heavy readers, of
// the one that reads alone, and of each tenant.
type Keys struct {
	Operator       string
	readers, alone string
	tenants        []string // as names has them
}

// NewKeys makes keys, and writes what nodes know of them into a file in dir.
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

// Config says who lives beside whom.
type Config struct {
	Nodes   []string       // base URLs
	Dial    procs.DialFunc // nil: an ordinary dialer
	Keys    Keys
	Readers int // connections of heavy reads
	Seed    int64
}

// Neighbours are at work until they are closed.
type Neighbours struct {
	cfg    Config
	rec    *recorder.Recorder
	began  time.Time
	moving sync.WaitGroup

	readers http.RoundTripper
	large   []uint64      // large tasks that furnish has submitted, 0 = the answer is not known
	parent  atomic.Uint64 // a parent that a reader has seen, 0 = none
	tenants []*tenant
	rush    rush

	answered, refused, unanswered, looked, bytes atomic.Int64

	mu    sync.Mutex
	notes map[history.EventKind]int // guarded by mu
}

// Start has them live beside callers until ctx ends. What they do, and what is wrong with what
// they are answered, goes into rec.
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

// transport makes requests of nodes, over connections that soon end when they are of no use.
func (n *Neighbours) transport() *http.Transport {
	return &http.Transport{
		DialContext: n.cfg.Dial, DisableCompression: true, Proxy: nil,
		MaxIdleConnsPerHost: max(n.cfg.Readers, len(names)*tenantCallers), IdleConnTimeout: idleMax,
	}
}

// Wait waits until all have gone, once the context of Start has ended.
func (n *Neighbours) Wait() { n.moving.Wait() }

// Close waits until all have gone, and leaves to the run's own callers what they have left.
func (n *Neighbours) Close(ctx context.Context) error {
	n.Wait()
	return errors.Join(n.clear(ctx), n.pauseTenants(ctx, false))
}

// Did returns what they did.
func (n *Neighbours) Did() *history.Neighbours {
	return &history.Neighbours{
		Readers: n.cfg.Readers, Answered: n.answered.Load(), Refused: n.refused.Load(), Unanswered: n.unanswered.Load(),
		Tenants: len(n.tenants), Looked: n.looked.Load(), Bytes: n.bytes.Load(),
		Rushes: n.rush.said(),
	}
}

// note notes what is wrong, the first ones of each kind.
func (n *Neighbours) note(kind history.EventKind, format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.notes[kind]++; n.notes[kind] <= notesMax {
		n.rec.Mark(history.Event{Kind: kind, Text: fmt.Sprintf(format, args...)})
	}
}

// until makes a call until its outcome is known or ctx ends.
func until(ctx context.Context, call func() history.Op) history.Op {
	for {
		op := call()
		if !recorder.Again(op) || !pause.For(ctx, retryPause) {
			return op
		}
	}
}

// names are those of the tenants: what each of them sends has its own in it.
var names = []string{"z3left", "z3right"}

// typeOf is the only type of a tenant.
func typeOf(name string) string { return name + "-type" }

// pauseTenants pauses the tenants' types, or ends that: while they are paused a task of theirs is
// claimed by its id alone, so that the run's own callers, who claim any, leave it to them.
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

// errNot is returned for what could not be done.
var errNot = errors.New("not done")

// others returns the marks that a tenant must not see: those of the others, and what the run's own
// callers send, whose keys package workload names by the seed.
func others(name string, seed int64) []string {
	found := []string{fmt.Sprintf(`"s%d-k`, seed), "type-0", "type-1", "type-2", "it went wrong", "it is not good enough"}
	return append(found, slices.DeleteFunc(slices.Clone(names), func(other string) bool { return other == name })...)
}
