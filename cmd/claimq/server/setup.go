package server

import (
	"cmp"
	"errors"
	"net"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/api"
	"github.com/claimq/claimq/api/trail"
	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cmd/claimq/backup"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/config"
	"github.com/claimq/claimq/internal/gometer"
	"github.com/claimq/claimq/internal/zones"
)

// setup holds what a node and its API are made from.
type setup struct {
	cfg          config.Server
	version      string
	load         func() (config.Loaded, error) // reads the configuration again
	logger       hclog.Logger
	flushLog     func()
	files        *secretFiles
	registry     *prometheus.Registry
	certificates *serverTLS
	zones        *zones.Source

	waits           waits
	peerConnections int    // limit of the peer port
	stops           func() // notes that the process is stopping
}

// newSetup opens the log and reads the certificates.
func newSetup(a *term.App, loaded config.Loaded, load func() (config.Loaded, error), w waits) (*setup, error) {
	s := &setup{waits: w, cfg: loaded.Server, version: a.Version, load: load, flushLog: a.FlushStderr, registry: prometheus.NewRegistry()}
	var dropped func() uint64
	s.logger, dropped = newLogger(a, loaded)
	s.files = newSecretFiles(s.logger)
	s.files.look(&loaded)
	gometer.Register(s.registry)
	s.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "claimq_log_lines_dropped_total", Help: "Lines of the log that were dropped, because it was not read or is broken.",
	}, func() float64 { return float64(dropped()) }))
	err := s.boundConnections()
	if err != nil {
		return nil, err
	}
	if s.certificates, err = openTLS(s.cfg, s.logger, func() { s.files.look(&loaded) }); err != nil {
		return nil, err
	}
	if s.zones, err = zones.NewSource(s.cfg.ZoneDataFile); err != nil {
		return nil, term.UsageErrorf("zone_data_file: %w", err)
	}
	return s, s.certificates.register(s.registry)
}

// lookAtZones applies a changed file of time zones.
func (s *setup) lookAtZones(time.Time) {
	switch changed, err := s.zones.Reload(); {
	case err != nil:
		s.logger.Error("the new file of time zones is of no use: those before stay in use", "error", err)
	case changed:
		data := s.zones.Current()
		s.logger.Info("new time zones", "version", data.Version(), "sum", data.Sum())
	}
}

// newLogger returns the server's log, which begins with the configuration's warnings, and a function that returns how
// many of its lines were dropped because they were not read.
func newLogger(a *term.App, loaded config.Loaded) (logger hclog.Logger, dropped func() uint64) {
	dropped = a.DetachStderr(func(lines uint64) {
		logger.Warn("lines of the log were dropped, as it was not read", "lines", lines)
	})
	logger = hclog.New(&hclog.LoggerOptions{
		Name: "claimq", Level: hclog.LevelFromString(loaded.LogLevel), JSONFormat: loaded.LogFormat == "json", Output: a.Stderr,
	})
	for _, warning := range loaded.Warnings {
		logger.Warn(warning)
	}
	return logger, dropped
}

// fatal ends the process because of an error that continuing would make worse, after logging it.
func (s *setup) fatal(err error) {
	s.logger.Error("stopping this node: going on would do damage", "error", err)
	s.flushLog()
	os.Exit(cluster.ExitFatal)
}

// abandonStop logs that a stop takes too long, and returns the exit code for that.
func (s *setup) abandonStop(after time.Duration) (code int) {
	s.logger.Error("ending with the stop unfinished, as after a kill: a disk, of the data folder or of another file of this node, gives no answer", "after", after)
	s.flushLog()
	return cluster.ExitFatal
}

// nodeConfig returns the node's configuration, and the file of its join keys, which it reads.
func (s *setup) nodeConfig() (cluster.Config, *joinKeyFile, error) {
	cfg := &s.cfg
	initial, err := cfg.InitialClusterMap()
	if err != nil {
		return cluster.Config{}, nil, term.UsageErrorf("%w", err)
	}
	joinKeys, err := openJoinKeys(cfg.JoinKeyFile, s.logger)
	if err != nil {
		return cluster.Config{}, nil, err
	}
	c := cluster.DefaultConfig()
	c.NodeID = cfg.NodeID
	c.DataDir = cfg.DataDir
	c.PeerAddr = cfg.PeerAddr
	c.PeerAdvertise = cmp.Or(cfg.PeerAdvertise, cfg.PeerAddr)
	c.HTTPAdvertise = apiURL(*cfg)
	c.PeerCertificate, c.PeerTLSMode = s.certificates.peerCertificate(), peerTLSMode(cfg.PeerTLS.Mode)
	c.Bootstrap = cfg.Bootstrap
	c.Join = cfg.Join
	c.JoinToken = func() (string, error) { return config.ReadJoinToken(cfg.JoinTokenFile) }
	c.JoinKeys = joinKeys.keys
	c.InitialCluster = initial
	c.Insecure = cfg.Insecure
	c.Logger = s.logger
	c.Fatal = s.fatal
	c.Registerer = s.registry
	c.Version = s.version
	c.SnapshotLogBytes = cfg.SnapshotLogBytes
	c.TrailBytes = cfg.TrailBytes
	c.TrailAge = cfg.TrailAge
	c.Zones = s.zones
	c.NoRaft = cfg.NoRaft
	boundNode(&c, cfg)
	c.PeerConnections = s.peerConnections
	joinKeys.check = c.CheckJoinKeys
	return c, joinKeys, nil
}

// errKeysGone is returned when the keys were removed from the configuration while the node was starting, because it
// listens on an address that requires them.
var errKeysGone = errors.New("the API keys and oidc that were there when this node began to start are gone: it does not serve without them; put them back, or start it again without them")

// newAPI makes the node's API; tasks may use memoryLimit bytes.
func (s *setup) newAPI(node api.Node, log *trail.Audit, memoryLimit int64) (*api.Server, error) {
	c := api.Config{
		Node:            node,
		Logger:          s.logger.Named("api"),
		Registry:        s.registry,
		AdvertisedHosts: s.advertisedHosts(),
		Insecure:        s.cfg.Insecure,
		AllowedOrigins:  s.cfg.AllowedOrigins,
		Page:            api.Page{Off: !s.cfg.UI.Enabled, ReadOnly: s.cfg.UI.ReadOnly},
		Keys:            apiKeys(s.load, s.files),
		Tokens:          apiTokens(s.load),
		Audit:           log,
		Version:         s.version,
		Zones:           s.zones,
		TLS:             s.certificates.httpConfig(),
	}
	if q := &s.cfg.SQS; q.Enabled {
		c.SQS = &api.SQS{URL: q.URL, Account: q.Account, Region: q.Region}
	}
	boundAPI(&c, &s.cfg, memoryLimit)
	server, err := api.New(c)
	if err == nil && server.Open() && s.cfg.Asks() {
		err = errKeysGone
	}
	return server, err
}

// startBackups saves backups while the node leads, if the configuration says so, until stop is called.
func (s *setup) startBackups(node backup.Node) (stop func()) {
	b := &s.cfg.Backup
	if b.Every == 0 {
		return func() {}
	}
	return backup.Start(backup.Config{
		Node: node, Every: b.Every, Folder: b.To, Keep: b.Keep, Command: b.Command, Timeout: b.Timeout,
		Logger: s.logger.Named("backup"), Registry: s.registry,
	})
}

// advertisedHosts returns the names, besides loopback, by which a browser may reach the API.
func (s *setup) advertisedHosts() []string {
	var hosts []string
	for _, addr := range []string{s.cfg.HTTPAddr, s.cfg.HTTPAdvertise} {
		if host, _, err := net.SplitHostPort(addr); err == nil && host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}
