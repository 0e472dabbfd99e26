package operations

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/recorder"
	"github.com/claimq/claimq/jepsen/workload"
)

// Config configures a run.
type Config struct {
	Binary  string
	Dir     string // for the nodes; it exists
	Seed    int64
	Clients int           // callers of the load
	Rate    int           // calls per second in all, roughly
	Pause   time.Duration // of load between two acts
	// Patient accepts pauses of writes that are too long, because on a machine that has
	// other work they say nothing about the nodes.
	Patient bool
	Out     io.Writer
}

const (
	// The nodes of the first cluster: n1 to n3 form it, n4 and n5 let it grow, n6 replaces
	// a dead one.
	firstNodes = 3
	grownNodes = 5
	allNodes   = 6
	// loadsMax bounds the loads of a run, each of which has a different seed.
	loadsMax = 10
	// actTimeout bounds one act, until the cluster is as it should be.
	actTimeout = 2 * time.Minute
	// drainTimeout bounds the wait until all tasks have ended.
	drainTimeout = 3 * time.Minute
	pollPause    = 50 * time.Millisecond
)

// PauseMax bounds the time without an answered write while nodes are restarted one after
// the other.
const PauseMax = 3 * time.Second

// run is a Run under way.
type run struct {
	cfg          Config
	cluster      *procs.Cluster // the current one, for load and operator
	rec          *recorder.Recorder
	load         *workload.Workload
	endLoad      context.CancelFunc
	loads        int // begun
	report       *Report
	readers      []*reader                     // of the trail, since before the loss
	now          atomic.Pointer[procs.Cluster] // for those that follow the trail
	following    sync.WaitGroup
	endFollowing func()
	old          string // for an upgrade: the binary of the first feature level
}

// Run performs the whole run. It also returns the report with an error. An error means that
// something could not be done, which is a finding as well.
func Run(ctx context.Context, cfg Config) (*Report, error) { return conduct(ctx, cfg, (*run).all) }

// conduct performs the run that all describes, and judges it.
func conduct(ctx context.Context, cfg Config, all func(*run, context.Context) error) (*Report, error) {
	r := &run{
		cfg: cfg, rec: recorder.New(cfg.Seed),
		report: &Report{Part: check.Part{Name: "operations"}}, endLoad: func() {}, endFollowing: func() {},
	}
	defer r.rec.Close()
	err := all(r, ctx)
	r.stopLoad()
	r.endFollowing()
	if r.cluster != nil {
		r.cluster.Close()
	}
	r.report.measure(r.rec.History(), cfg)
	return r.report, err
}

// all is the run, from the first node to the last check.
func (r *run) all(ctx context.Context) error {
	if err := r.form(ctx); err != nil {
		return fmt.Errorf("form the cluster: %w", err)
	}
	r.startLoad(ctx)
	if err := r.acts(ctx, []act{
		{"load alone", r.pause},
		{"grow from 3 nodes to 5", r.grow},
		{"hand the leadership over", r.transfer},
		{"restart each node, SIGTERM", r.restartEach},
		{"restart each node, kill -9", r.killEach},
		{"shrink to 3 nodes, the leader first", r.shrink},
		{"replace a dead node", r.replace},
	}); err != nil {
		return err
	}
	h, err := r.settleAll(ctx)
	if err != nil {
		return err
	}
	r.report.judge("before the loss", h)
	return r.loseAndRestore(ctx)
}

// act is an act of operators.
type act struct {
	name string
	do   func(context.Context) error
}

// acts performs one act after the other.
func (r *run) acts(ctx context.Context, acts []act) error {
	for _, a := range acts {
		if err := r.act(ctx, a.name, a.do); err != nil {
			return err
		}
	}
	return nil
}

// act performs one act, followed by some load, and records its time.
func (r *run) act(ctx context.Context, name string, do func(context.Context) error) error {
	fmt.Fprintf(r.cfg.Out, "\n== %s\n", name)
	r.rec.Event("%s", name)
	s := stage{name: name, from: r.rec.Now()}
	ctx, cancel := context.WithTimeoutCause(ctx, actTimeout+10*r.cfg.Pause, fmt.Errorf("%s took too long", name))
	defer cancel()
	err := do(ctx)
	if err == nil {
		err = r.pause(ctx)
	}
	s.to = r.rec.Now()
	r.report.stages = append(r.report.stages, s)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return r.noExit()
}

// noExit checks that no node has ended by itself.
func (r *run) noExit() error {
	for _, n := range r.cluster.Nodes {
		if code := n.ExitCode(); code > 0 && code != 128+int(syscall.SIGKILL) {
			return fmt.Errorf("%s ended by itself with exit code %d:\n%s", n.ID, code, n.LogTail(20))
		}
	}
	return nil
}

// pause lets the load go on for a while.
func (r *run) pause(ctx context.Context) error {
	pause.For(ctx, r.cfg.Pause)
	return context.Cause(ctx)
}

// startLoad starts callers at all present and future nodes.
func (r *run) startLoad(ctx context.Context) {
	ctx, r.endLoad = context.WithCancel(ctx)
	r.loads++
	r.load = workload.Start(ctx, r.rec, workload.Config{
		Nodes: r.cluster.URLs(), Clients: r.cfg.Clients, Rate: r.cfg.Rate, Seed: r.cfg.Seed*loadsMax + int64(r.loads), Busy: true,
	})
}

// stopLoad ends the load.
func (r *run) stopLoad() {
	r.endLoad()
	if r.load != nil {
		r.load.Stop()
	}
}

// settleAll lets the workers end every task, reads the final state and the trail, and
// returns them with all answers.
func (r *run) settleAll(ctx context.Context) (*history.History, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, drainTimeout, errors.New("not all tasks ended in time"))
	defer cancel()
	r.endLoad()
	if err := r.load.Drain(ctx); err != nil {
		return nil, fmt.Errorf("end the load: %w", err)
	}
	if err := r.rec.ReadFinal(ctx, r.cluster.URLs()); err != nil {
		return nil, err
	}
	h := r.rec.History()
	var err error
	h.Trail, err = r.rec.Trail(ctx, r.cluster.URLs())
	return h, err
}

// form starts the first three nodes.
func (r *run) form(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	var err error
	r.cluster, err = procs.New(procs.Config{Binary: r.cfg.Binary, Dir: r.cfg.Dir, Nodes: allNodes, Joining: allNodes - firstNodes, Flags: nodeFlags()})
	if err != nil {
		return err
	}
	if err := r.startAll(ctx); err != nil {
		return err
	}
	_, err = r.claimq(ctx, "cluster", "status")
	return err
}

// startAll starts the nodes of a cluster, which write audit files.
func (r *run) startAll(ctx context.Context) error {
	for _, n := range r.cluster.Nodes {
		n.SetFlag("--audit-file", r.auditFile(n))
	}
	r.now.Store(r.cluster)
	return r.cluster.StartAll(ctx)
}

func nodeFlags() []string { return []string{"--log-level", "info"} }

// node returns the node n1, n2, ...
func (r *run) node(number int) *procs.Node { return r.cluster.Nodes[number-1] }

// backupFile returns the path of the backup.
func (r *run) backupFile() string { return filepath.Join(r.cfg.Dir, "backup.claimq") }
