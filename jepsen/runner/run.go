package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strconv"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/faults"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/hosts"
	"github.com/claimq/claimq/jepsen/neighbours"
	"github.com/claimq/claimq/jepsen/recorder"
	"github.com/claimq/claimq/jepsen/strangers"
	"github.com/claimq/claimq/jepsen/workload"
)

// run is a run under way.
type run struct {
	cfg     Config
	faults  []faults.Fault
	cluster *faults.Cluster
	rec     *recorder.Recorder
	started time.Time
	keys    neighbours.Keys
	beside  *neighbours.Neighbours // nil before they start
}

// Run starts a cluster, runs callers while faults come and go, heals it, drains it, reads
// what all nodes hold, and returns the recorded history. If there is a history it is also
// returned with an error: a cluster that does not recover is a finding.
func Run(ctx context.Context, cfg Config) (*history.History, error) {
	cfg.Clients, cfg.Rate = cmp.Or(cfg.Clients, defaultClients), cmp.Or(cfg.Rate, defaultRate)
	all, err := faults.ByName(cfg.Faults...)
	if err != nil {
		return nil, err
	}
	r := &run{cfg: cfg, faults: all, started: time.Now()}
	var keysFile string
	if r.keys, keysFile, err = neighbours.NewKeys(cfg.Dir); err != nil {
		return nil, fmt.Errorf("make API keys: %w", err)
	}
	hosts, disks, logs := faults.Ground(all...)
	r.cluster, err = faults.New(ctx, faults.Config{
		Binary: cfg.Binary, Dir: cfg.Dir, Nodes: cfg.Nodes, Seed: cfg.Seed, Hosts: hosts, Disks: disks, Logs: logs,
		Flags: []string{"--memory-limit", strconv.Itoa(history.MemoryLimit), "--keys-file", keysFile}, APIKey: r.keys.Operator,
		Note:   func(format string, args ...any) { r.rec.Event(format, args...) },
		Exited: func(n *procs.Node) { noteExit(n, r.rec) },
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the cluster: %w", err)
	}
	r.rec = recorder.NewDialing(cfg.Seed, r.cluster.Dial)
	r.rec.Key = r.keys.Operator
	defer r.rec.Close()
	err = r.run(ctx)
	if errClose := r.cluster.Close(); errClose != nil {
		err = errors.Join(err, fmt.Errorf("take the cluster down: %w", errClose))
	}
	h := r.rec.History()
	h.Run = &history.Run{
		Nodes: cfg.Nodes, Faults: cfg.Faults, Seconds: int(cfg.Time.Seconds()), Started: r.started.UTC().Format(time.RFC3339),
		Revision: cfg.Revision, Plant: cfg.Plant, Shared: cfg.Shared, Drained: true,
	}
	if r.beside != nil {
		h.Run.Neighbours = r.beside.Did()
	}
	return h, err
}

// ground returns the place of callers other than ours: their files next to the nodes', and
// the callers' host if there is one.
func (r *run) ground() *strangers.Ground {
	g := &strangers.Ground{Dir: r.cfg.Dir, Dial: r.cluster.Dial}
	for _, n := range r.cluster.Nodes {
		g.Nodes = append(g.Nodes, n.HTTPAddr)
	}
	if r.cluster.Net != nil {
		g.Start = r.cluster.Net.Host(hosts.Clients).Start
	}
	return g
}

func (r *run) run(ctx context.Context) (err error) {
	if err := pause.Within(ctx, startTimeout, r.cluster.StartAll); err != nil {
		return fmt.Errorf("start the cluster: %w", err)
	}
	defer watch(r.cluster, r.rec)()

	loading, stop := context.WithTimeout(ctx, r.cfg.Time)
	defer stop()
	ground := r.ground()
	defer func() { err = errors.Join(err, ground.Close()) }()
	callers, err := ground.Callers(r.cfg.Seed)
	if err != nil {
		return err
	}
	load := workload.Start(loading, r.rec, workload.Config{
		Nodes: r.cluster.URLs(), Clients: r.cfg.Clients, Rate: r.cfg.Rate, Seed: r.cfg.Seed,
		Parents: r.cfg.Parents, Steps: r.cfg.Steps, Busy: r.cfg.Tasks > 0, Strangers: callers,
	})
	defer load.Stop()
	r.beside = neighbours.Start(loading, r.rec, neighbours.Config{
		Nodes: r.cluster.URLs(), Dial: r.cluster.Dial, Keys: r.keys, Readers: r.cfg.Readers, Seed: r.cfg.Seed,
	})
	defer func() {
		stop()
		r.beside.Wait()
	}()
	n := &nemesis{run: r, rng: rand.New(rand.NewSource(r.cfg.Seed))}
	if r.cfg.Tasks > 0 {
		if err := n.spread(loading, load); err != nil {
			return err
		}
		stop()
	} else if err := n.torment(ctx, loading); err != nil {
		return err
	}
	<-loading.Done()
	if err := ctx.Err(); err != nil {
		return err
	}
	r.say("load ends, draining")
	drained := pause.Within(ctx, drainTimeout, func(ctx context.Context) error { return errors.Join(r.beside.Close(ctx), load.Drain(ctx)) })
	if drained != nil { // the remaining tasks are worth knowing
		drained = fmt.Errorf("drain: %w", drained)
	} else {
		r.rec.Mark(history.Event{Kind: history.LoadEnded, Text: "the last task has ended"})
	}
	return errors.Join(drained, r.readEnd(ctx))
}

// readEnd reads the final contents of the cluster and of each node.
func (r *run) readEnd(ctx context.Context) error {
	return pause.Within(ctx, finalTimeout, func(ctx context.Context) error {
		if err := r.rec.ReadFinal(ctx, r.cluster.URLs()); err != nil {
			return err
		}
		var names []string
		for _, n := range r.cluster.Nodes {
			names = append(names, n.ID)
		}
		return r.rec.DumpAll(ctx, r.cluster.URLs(), names)
	})
}

func (r *run) say(format string, args ...any) {
	ops, unknown := r.rec.Count()
	fmt.Fprintf(r.cfg.Out, "%6.1fs %7d calls %5d unknown  %s\n", time.Duration(r.rec.Now()).Seconds(), ops, unknown, fmt.Sprintf(format, args...))
}
