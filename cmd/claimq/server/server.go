package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api"
	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/config"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

// The node and the API know each other only by this interface.
var _ api.Node = (*cluster.Node)(nil)

const (
	// stopTimeout bounds a graceful stop, in which the leadership is handed over and requests are finished; then the
	// rest is dropped.
	stopTimeout = 10 * time.Second
	// stopMax bounds a whole stop, without drain_time, because a disk that hangs also holds up closing files.
	stopMax = 30 * time.Second
	// fileLookInterval is the interval at which files of certificates, join keys and time zones are checked.
	fileLookInterval = 10 * time.Second
)

// waits are the times for which a server waits. Tests shorten them.
type waits struct {
	stop time.Duration  // as stopTimeout
	most time.Duration  // as stopMax
	look time.Duration  // as fileLookInterval
	exit func(code int) // ends the process if its stop takes longer than most
}

func defaultWaits() waits {
	return waits{stop: stopTimeout, most: stopMax, look: fileLookInterval, exit: os.Exit}
}

// untilEnd returns a context that ends with ctx, and when in ends. Its goroutine ends with in.
func untilEnd(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx
}

// NewCommand returns the command `claimq server`.
func NewCommand(a *term.App) *cobra.Command {
	var file, profile string
	var untilStdinEnds bool
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run one node",
		Long: `Run one node until SIGTERM or Ctrl-C.

A new node needs one of --bootstrap (it is the first node of a new cluster), --join
(it joins a running cluster) or --initial-cluster (all nodes of a new cluster start
with the same list). A node that has data ignores all three. Each flag is also a
variable (--node-id is CLAIMQ_NODE_ID) and a key of the YAML file (node_id). A flag
overrides a variable, and a variable overrides the file.`,
		Example: `  claimq server --node-id n1 --data-dir /var/lib/claimq --bootstrap
  claimq server --config /etc/claimq.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				file = a.Getenv("CLAIMQ_CONFIG")
			}
			load := func() (config.Loaded, error) { return config.LoadServer(file, a.Environ, cmd.Flags()) }
			cfg, err := load()
			if err != nil {
				return term.UsageErrorf("%w", err)
			}
			if a.RelaxTimers != nil {
				a.RelaxTimers()
			}
			if profile != "" {
				stop, err := startProfile(profile)
				if err != nil {
					return err
				}
				defer stop()
			}
			cfg.Warnings = append(cfg.Warnings, config.MisspelledVariables(a.Environ, term.VariablesOf(cmd.Root()))...)
			ctx := cmd.Context()
			if untilStdinEnds {
				ctx = untilEnd(ctx, a.Stdin)
			}
			if untilStdinEnds {
				cfg.DrainTime = 0 // the parent process decides when it stops
			}
			return run(ctx, a, cfg, load, defaultWaits())
		},
	}
	config.AddServerFlags(cmd.Flags())
	cmd.Flags().StringVar(&file, "config", "", "YAML file with settings (CLAIMQ_CONFIG)")
	cmd.Flags().StringVar(&profile, "cpu-profile", "", "write a CPU profile of the whole run to this file, when it ends")
	_ = cmd.Flags().MarkHidden("cpu-profile")
	cmd.Flags().BoolVar(&untilStdinEnds, term.UntilStdinEnds, false, "stop when the standard input ends")
	_ = cmd.Flags().MarkHidden(term.UntilStdinEnds)
	return cmd
}

// startProfile profiles the process until stop is called.
func startProfile(path string) (stop func(), err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create CPU profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("start CPU profile: %w", err), f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close() // a truncated profile is noticed when it is read
	}, nil
}

// run runs a node until ctx ends. load reads its configuration again.
func run(ctx context.Context, a *term.App, loaded config.Loaded, load func() (config.Loaded, error), w waits) error {
	hangups := newHangups()
	defer hangups.stop()
	defer a.FlushStderr()
	s, err := newSetup(a, loaded, load, w)
	if err != nil {
		return err
	}
	ctx, s.stops = context.WithCancel(ctx)
	defer boundStop(ctx, s.cfg.DrainTime+w.most, func(after time.Duration) { w.exit(s.abandonStop(after)) })()
	told := newNotices(a, s.logger)
	defer told.stop()
	// Listen first: a port in use must be noticed before the node touches its data or contacts others.
	listener, err := net.Listen("tcp", s.cfg.HTTPAddr)
	if err != nil {
		return listenError("--http-addr", s.cfg.HTTPAddr, err)
	}
	defer listener.Close()
	probes := api.NewProbes(s.cfg.NodeID, s.version, s.logger)
	probes.SQS = s.cfg.SQS.Enabled
	if s.cfg.HealthAddr != "" {
		ln, err := net.Listen("tcp", s.cfg.HealthAddr)
		if err != nil {
			return listenError("--health-addr", s.cfg.HealthAddr, err)
		}
		defer probes.Serve(ln)()
	}

	nodeConfig, joinKeys, err := s.nodeConfig()
	if err != nil {
		return err
	}
	// From here on, because the node may have to wait long for others, which may reject it.
	defer watchFiles(w.look, s.certificates.look, joinKeys.look, s.lookAtZones)()
	defer tuneGC(a, nodeConfig.MemoryLimit)()
	started := probes.Meanwhile(listener, s.certificates.httpConfig())
	node, err := cluster.Open(ctx, nodeConfig)
	started()
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		s.logger.Info("stopped before the node had started", "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("start node %s: %w", s.cfg.NodeID, err)
	}
	audit, stopAudit, err := startAudit(s.cfg.AuditFile, node, s.logger)
	if err != nil {
		s.stops()
		return errors.Join(err, w.closeNode(node))
	}
	// It continues until the node has stopped. Missing events are written after the next start.
	defer stopAudit()
	server, err := s.newAPI(node, audit, nodeConfig.MemoryLimit)
	if err != nil {
		s.stops()
		return errors.Join(err, w.closeNode(node))
	}
	defer s.startBackups(node)()
	defer hangups.call(func() { told.reloading(server.HangUp) }, nil)()
	return s.serve(ctx, server, node, listener, probes, told)
}

// serve serves the node's API until ctx ends, and then stops both.
func (s *setup) serve(ctx context.Context, server *api.Server, node *cluster.Node, listener net.Listener, probes *api.Probes, told *notices) error {
	// From here on requests forwarded by other nodes are served; before, they are told that this node is not the
	// leader.
	node.SetForwardHandler(server.ForwardHandler())
	node.SetOperators(server.Operator)
	s.logger.Info("serving", "node_id", s.cfg.NodeID, "http", listener.Addr().String(), "peer", s.cfg.PeerAddr, "version", s.version, "time_zones", s.zones.Current().Version())
	warnOpen(server, s.cfg.Insecure, s.logger)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	told.await(node.Ready)
	probes.ReadyAs(node.Ready)
	select {
	case err := <-served: // it ends by itself only with an error
		s.stops()
		return errors.Join(fmt.Errorf("serve HTTP: %w", err), s.waits.closeNode(node))
	case <-lingered(ctx, node.Left()):
		s.logger.Info("this node was removed from the cluster: it ends", "told_for", removedLinger)
		s.stops()
	case <-ctx.Done():
	}
	told.stopping()
	probes.ReadyAs(func() error { return nodes.ErrShuttingDown })
	s.leave(server, node)
	return s.waits.stopServer(server, node, served, s.logger)
}

// removedLinger is how long the process of a removed node keeps running, to tell probes and people that it was removed.
// After that it ends with exit code 0, so that it is not restarted.
const removedLinger = 10 * time.Minute

// lingered returns a channel that is closed removedLinger after left is, unless ctx ends before.
func lingered(ctx context.Context, left <-chan struct{}) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		select {
		case <-left:
		case <-ctx.Done():
			return
		}
		pause.For(ctx, removedLinger)
		if ctx.Err() == nil {
			close(over)
		}
	}()
	return over
}

// leave keeps serving for drain_time while the node reports that it is not ready, so that clients are sent to others,
// and hands the leadership over.
func (s *setup) leave(server *api.Server, node *cluster.Node) {
	if s.cfg.DrainTime == 0 {
		return
	}
	s.logger.Info("not ready any more, serving on until clients have gone elsewhere", "drain_time", s.cfg.DrainTime)
	server.Leave()
	pause.For(context.Background(), s.cfg.DrainTime)
	node.HandOver(context.Background())
}

// stopServer stops listening while the node hands over the leadership and finishes its requests, and waits for both.
// New requests are told that the node is shutting down.
func (w waits) stopServer(server *api.Server, node *cluster.Node, served <-chan error, logger hclog.Logger) error {
	logger.Info("stopping")
	ctx, cancel := context.WithTimeout(context.Background(), w.stop)
	defer cancel()
	shutdown := make(chan error, 1)
	go func() { shutdown <- server.Shutdown(ctx) }()
	err := w.closeNode(node)
	unanswered := <-shutdown
	if errors.Is(unanswered, context.DeadlineExceeded) {
		// A client in the middle of a request may take any time.
		logger.Warn("requests that were under way are not answered", "waited", w.stop)
		unanswered = nil
	}
	err = errors.Join(err, unanswered, <-served)
	logger.Info("stopped")
	return err
}

func (w waits) closeNode(node *cluster.Node) error {
	ctx, cancel := context.WithTimeout(context.Background(), w.stop)
	defer cancel()
	return node.Close(ctx)
}

// boundStop calls abandon if the returned function is not called within most after the end of ctx.
func boundStop(ctx context.Context, most time.Duration, abandon func(most time.Duration)) (stopped func()) {
	done := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(most)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			abandon(most)
		}
	})
	return func() {
		unhook()
		close(done)
	}
}

// listenError explains what to do about an address that cannot be used.
func listenError(flag, addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s %s is in use by another process: stop it or choose another address: %w", flag, addr, err)
	}
	return fmt.Errorf("listen on %s %s: %w", flag, addr, err)
}
