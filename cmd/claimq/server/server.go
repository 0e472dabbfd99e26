package server

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api"
	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/config"
)

// The node and the API know each other by this interface alone.
var _ api.Node = (*cluster.Node)(nil)

// stopTimeout bounds a graceful stop: leadership is handed over and what is
// under way is finished; then the rest is dropped.
const stopTimeout = 10 * time.Second

// untilEnd returns a context that ends with ctx, and when in ends. Its goroutine ends
// with in.
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

A new node starts with one of --bootstrap (the first node of a new cluster),
--join (a running one) or --initial-cluster (all nodes start with the same list).
A node that has data ignores all three. Each flag is also a variable (--node-id is
CLAIMQ_NODE_ID) and a key of the YAML file (node_id); a flag beats a variable, a
variable beats the file.`,
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
			return run(ctx, a, cfg, load)
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
		_ = f.Close() // a profile that is cut short shows when it is read
	}, nil
}

// run runs a node until ctx ends. load reads its configuration again.
func run(ctx context.Context, a *term.App, loaded config.Loaded, load func() (config.Loaded, error)) error {
	cfg := loaded.Server
	hangups := newHangups()
	defer hangups.stop()
	logger := newLogger(a, loaded)
	files := newSecretFiles(logger)
	files.look(&loaded)
	told := newNotices(a, logger)
	defer told.stop()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	certificates, err := openTLS(cfg, logger, func() { files.look(&loaded) })
	if err != nil {
		return err
	}
	if err := certificates.register(registry); err != nil {
		return err
	}
	// The API's address first: a port in use must be known before the node
	// touches its data or meets others.
	listener, err := net.Listen("tcp", cfg.HTTPAddr)
	if err != nil {
		return listenError("--http-addr", cfg.HTTPAddr, err)
	}
	defer listener.Close()

	nodeConfig, err := newNodeConfig(cfg, logger, registry)
	if err != nil {
		return err
	}
	nodeConfig.Version = a.Version
	nodeConfig.PeerCertificate, nodeConfig.PeerTLSMode = certificates.peerCertificate(), peerTLSMode(cfg.PeerTLS.Mode)
	joinKeys, err := openJoinKeys(cfg.JoinKeyFile, logger)
	if err != nil {
		return err
	}
	nodeConfig.JoinKeys, joinKeys.check = joinKeys.keys, nodeConfig.CheckJoinKeys
	// From here on, for the node may wait long for others, who refuse it perhaps.
	defer watchFiles(certificates.look, joinKeys.look)()
	defer tuneGC(a, nodeConfig.MemoryLimit)()
	node, err := cluster.Open(ctx, nodeConfig)
	if err != nil {
		return fmt.Errorf("start node %s: %w", cfg.NodeID, err)
	}
	audit, stopAudit, err := startAudit(cfg.AuditFile, node, logger)
	if err != nil {
		return errors.Join(err, closeNode(node))
	}
	// It goes on until the node has stopped, and finds what is missing then when
	// it is started again.
	defer stopAudit()
	apiConfig := api.Config{
		Node:            node,
		Logger:          logger.Named("api"),
		Registry:        registry,
		AdvertisedHosts: advertisedHosts(cfg),
		Insecure:        cfg.Insecure,
		AllowedOrigins:  cfg.AllowedOrigins,
		Page:            api.Page{Off: !cfg.UI.Enabled, ReadOnly: cfg.UI.ReadOnly},
		Keys:            apiKeys(load, files),
		Tokens:          apiTokens(load),
		Audit:           audit,
		Version:         a.Version,
		TLS:             certificates.httpConfig(),
	}
	if certificates.http != nil {
		apiConfig.ClientAuthorities = func() *x509.CertPool { return certificates.http.store.Current().Authorities }
	}
	boundAPI(&apiConfig, &cfg, nodeConfig.MemoryLimit)
	server, err := api.New(apiConfig)
	if err == nil && server.Open() && cfg.Asks() {
		err = errKeysGone
	}
	if err != nil {
		return errors.Join(err, closeNode(node))
	}
	// What other nodes pass on is served from here on; before, they are told
	// that there is no leader here.
	node.SetForwardHandler(server.ForwardHandler())
	node.SetOperators(server.Operator)

	logger.Info("serving", "node_id", cfg.NodeID, "http", listener.Addr().String(), "peer", cfg.PeerAddr, "version", a.Version)
	warnOpen(server, cfg.Insecure, logger)
	defer hangups.call(func() { told.reloading(server.HangUp) }, nil)()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	told.await(node.Ready)

	select {
	case err = <-served: // it never ends by itself but for an error
		return errors.Join(fmt.Errorf("serve HTTP: %w", err), closeNode(node))
	case <-ctx.Done():
	}
	told.stopping()
	return stopServer(server, node, served, logger)
}

// errKeysGone is returned when the keys were taken out of the file while the node began:
// it listens as one that asks for them.
var errKeysGone = errors.New("the API keys and oidc that were there when this node began to start are gone: it does not serve whoever comes; put them back, or start it again without them")

// newLogger returns the server's log, which begins with what the
// configuration warns of.
func newLogger(a *term.App, loaded config.Loaded) hclog.Logger {
	logger := hclog.New(&hclog.LoggerOptions{
		Name: "claimq", Level: hclog.LevelFromString(loaded.LogLevel), JSONFormat: loaded.LogFormat == "json", Output: a.Stderr,
	})
	for _, warning := range loaded.Warnings {
		logger.Warn(warning)
	}
	return logger
}

// stopServer stops listening, while the node hands leadership over and
// finishes what is under way, and waits for both. What is asked meanwhile is
// told that the node is shutting down.
func stopServer(server *api.Server, node *cluster.Node, served <-chan error, logger hclog.Logger) error {
	logger.Info("stopping")
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	shutdown := make(chan error, 1)
	go func() { shutdown <- server.Shutdown(ctx) }()
	err := errors.Join(closeNode(node), <-shutdown, <-served)
	logger.Info("stopped")
	return err
}

func closeNode(node *cluster.Node) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return node.Close(ctx)
}

// listenError says what to do about a port that cannot be had.
func listenError(flag, addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s %s is in use by another process: stop it or choose another address: %w", flag, addr, err)
	}
	return fmt.Errorf("listen on %s %s: %w", flag, addr, err)
}

func newNodeConfig(cfg config.Server, logger hclog.Logger, registry *prometheus.Registry) (cluster.Config, error) {
	initial, err := cfg.InitialClusterMap()
	if err != nil {
		return cluster.Config{}, term.UsageErrorf("%w", err)
	}
	c := cluster.DefaultConfig()
	c.NodeID = cfg.NodeID
	c.DataDir = cfg.DataDir
	c.PeerAddr = cfg.PeerAddr
	c.PeerAdvertise = cmp.Or(cfg.PeerAdvertise, cfg.PeerAddr)
	c.HTTPAdvertise = apiURL(cfg)
	c.Bootstrap = cfg.Bootstrap
	c.Join = cfg.Join
	c.JoinToken = func() (string, error) { return config.ReadJoinToken(cfg.JoinTokenFile) }
	c.InitialCluster = initial
	c.Insecure = cfg.Insecure
	c.Logger = logger
	c.Registerer = registry
	c.SnapshotLogBytes = cfg.SnapshotLogBytes
	c.LogStore = cfg.LogStore
	c.TrailBytes = cfg.TrailBytes
	c.TrailAge = cfg.TrailAge
	c.NoRaft = cfg.NoRaft
	boundNode(&c, &cfg)
	return c, nil
}

// advertisedHosts are the names that a browser may reach the API under beside
// those of loopback.
func advertisedHosts(cfg config.Server) []string {
	var hosts []string
	for _, addr := range []string{cfg.HTTPAddr, cfg.HTTPAdvertise} {
		if host, _, err := net.SplitHostPort(addr); err == nil && host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}
