package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/recorder"
)

// Config configures a run.
type Config struct {
	Binary string // claimq
	Worker string // built by plants.WorkerByName; with Served a claimq
	// Served are the arguments of a worker that is a claimq: work --serve -- PROGRAM, a program of the folder served.
	// Empty: the workers are in Go.
	Served  []string
	Dir     string // for data, logs and diaries; it exists
	Nodes   int
	Workers int
	Rate    int           // submitted per second
	Time    time.Duration // of load and faults
	Lease   time.Duration // of the workers' claims, up to twice that
	Seed    int64
	Out     io.Writer // for lines of progress
}

const (
	// formTimeout bounds starting the cluster, and drainTimeout ending every task once
	// everything is repaired.
	formTimeout  = time.Minute
	drainTimeout = 3 * time.Minute
	// readTimeout bounds reading the state at the end.
	readTimeout = time.Minute
	// backoffMax bounds how long a task waits after a lease that has ended. The backoff of a new cluster is doubled each
	// time, to more than drainTimeout after nine of them, as on a busy machine.
	backoffMax = 2 * time.Second
	// drainPause is the interval between checks how many tasks are left.
	drainPause = 200 * time.Millisecond
)

// run is a run under way.
type run struct {
	cfg       Config
	cluster   *procs.Cluster
	rec       *recorder.Recorder // for the nodes
	store     *store
	crew      *crew
	client    *client.Client // of the producer, which is not cut off
	submitted []submitted

	mu     sync.Mutex // guards the counts in the report
	report *Report
}

// Run exposes worker processes to all troubles. It also returns the report, if any, with an
// error.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	r := &run{cfg: cfg, rec: recorder.New(cfg.Seed), report: newReport()}
	defer r.rec.Close()
	starting, cancel := context.WithTimeout(ctx, formTimeout)
	defer cancel()
	var err error
	r.cluster, err = procs.Start(starting, procs.Config{Binary: cfg.Binary, Dir: cfg.Dir, Nodes: cfg.Nodes, Flags: []string{"--log-level", "info"}})
	if err != nil {
		return nil, err
	}
	defer r.cluster.Close()
	if r.client, err = client.New(client.Config{Endpoints: r.cluster.URLs()}); err != nil {
		return nil, err
	}
	defer func() { _ = r.client.Close() }() // all its calls have been answered
	if _, err := r.client.SetDefaults(starting, client.TypeSettings{Backoff: &client.Backoff{Initial: drainPause, Max: backoffMax}}); err != nil {
		return nil, err
	}
	r.store = newStore()
	server := httptest.NewServer(r.store)
	defer server.Close()
	r.crew = newCrew(cfg, server.URL, r.cluster.URLs())
	defer r.crew.close()
	for _, s := range r.crew.slots {
		if err := s.start(); err != nil {
			return nil, err
		}
	}
	if err = r.load(ctx); err == nil {
		err = r.drain(ctx)
	}
	if err != nil && !errors.Is(err, errStuck) {
		return nil, err
	}
	if errJudge := r.judge(ctx); errJudge != nil {
		return nil, errors.Join(err, errJudge)
	}
	return r.report, err
}

// load submits tasks and causes the workers' troubles, for the time of the run.
func (r *run) load(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end := time.Now().Add(r.cfg.Time)
	var all sync.WaitGroup
	begin := func(fn func() error) { // the first error ends them all
		all.Go(func() {
			if err := fn(); err != nil {
				cancel(err)
			}
		})
	}
	begin(func() error { return r.produce(ctx, end) })
	begin(func() error { return r.killLeaders(ctx, rand.New(rand.NewSource(r.cfg.Seed)), end) })
	for i, s := range r.crew.slots {
		begin(func() error { return r.trouble(ctx, s, rand.New(rand.NewSource(r.cfg.Seed+7919*int64(i+1))), end) })
	}
	all.Wait()
	return context.Cause(ctx)
}

// errStuck is returned when tasks do not end although nothing prevents that.
var errStuck = errors.New("tasks are stuck")

// drain waits until every task has ended, and ends the workers.
func (r *run) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, drainTimeout, errStuck)
	defer cancel()
	err := pause.Until(ctx, drainPause, func() error {
		open, err := r.rec.OpenCount(ctx, r.cluster.URLs())
		if err == nil && open > 0 {
			err = fmt.Errorf("%d tasks have not ended", open)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, s := range r.crew.slots {
		if err := s.stop(ctx); err != nil {
			return err
		}
	}
	return nil
}

// say prints a line about the run.
func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.cfg.Out, "  %s\n", strings.TrimSpace(fmt.Sprintf(format, args...)))
}
