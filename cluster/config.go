package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/cluster/batch"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/internal/memory"
	"github.com/claimq/claimq/internal/zones"
)

// Config is the configuration of a node. Start from DefaultConfig; Open validates it.
type Config struct {
	// NodeID is the operator's name for the node: 1 to 64 of A-Z a-z 0-9 _ . - It is recorded in
	// the data folder, which later refuses another one.
	NodeID string
	// DataDir is the folder for everything the node stores. It is created if it does not exist.
	// Only one process may use it.
	DataDir string
	// PeerAddr is the host:port that the peer port listens on.
	PeerAddr string
	// PeerAdvertise is the host:port at which other nodes reach the peer port. "" means the
	// address listened on.
	PeerAdvertise string
	// HTTPAdvertise is the URL of the node's API, as http://host:port, to which clients are
	// redirected.
	HTTPAdvertise string

	// Bootstrap, Join and InitialCluster say how an empty node finds its cluster; at most one
	// may be set. A node with data ignores all three.

	// Bootstrap makes the node the first one of a new cluster.
	Bootstrap bool
	// Join lists peer addresses of a running cluster that the node asks to join: with JoinToken,
	// or else it waits for an operator's JoinNode.
	Join []string
	// JoinToken returns the secret with which new nodes may join the cluster, "" for none. It is
	// called when the node joins. nil = none.
	JoinToken func() (string, error)
	// InitialCluster maps the node ids of a new cluster, including this one, to their peer
	// addresses. Every node is started with the same list.
	InitialCluster map[string]string

	// JoinKeys returns the secrets with which nodes authenticate to each other on the peer port.
	// This node proves the first one and accepts all; an empty key allows peers without one. It
	// is called for each connection, concurrently; the result is not changed. nil or no keys
	// mean no authentication, which is allowed only with PeerCertificate and TLSRequired, on
	// loopback, or with Insecure. See CheckJoinKeys.
	JoinKeys func() [][]byte
	// PeerCertificate enables mutual TLS on the peer port. nil means none.
	PeerCertificate PeerCertificate
	// PeerTLSMode says which connections use TLS if there is a PeerCertificate.
	PeerTLSMode TLSMode
	// Insecure allows a peer port beyond loopback without a join key or TLS.
	Insecure bool

	// Logger takes the log lines of the node and of Raft. nil discards them.
	Logger hclog.Logger
	// Registerer takes the node's metrics. nil leaves them unregistered.
	Registerer prometheus.Registerer
	// Version is the binary's version, shown to other nodes.
	Version string

	// MemoryLimit is the size of the state in bytes, by its own estimate, above which the node
	// refuses submits; claims and settles go on. 0 means half the memory of the machine or
	// cgroup. Too low refuses work early, too high leaves no room to restore a snapshot.
	MemoryLimit int64
	// DiskFreeMin is the free space in bytes on the file system of the data folder below which
	// submits are refused. If it is 0, a twentieth of the file system is kept free, at most
	// 1 GiB. Too low leaves no room for what goes on: claims, settles, a snapshot.
	DiskFreeMin uint64
	// DiskSpace returns the bytes available to this process on the disk, and the disk's size.
	// nil asks the data folder's file system; tests use their own.
	DiskSpace func() (free, size uint64, err error)
	// DiskInodes is DiskSpace for inodes; a size of 0 means no bound.
	DiskInodes func() (free, size uint64, err error)
	// InFlightMax bounds the commands that wait to be written on the leader. Submits may not use
	// the last quarter. 0 means 16,384.
	InFlightMax int
	// WaitingClaimsMax bounds the waiting claims on the leader. 0 means 32,768.
	WaitingClaimsMax int
	// PeerConnections bounds the connections of the peer port in both directions. 0 means
	// PeerConnectionsMax.
	PeerConnections int

	// SnapshotLogBytes and SnapshotLogCommands are the amounts of log since the last snapshot
	// that trigger the next one. Lower values cost more writing, higher ones a longer replay at
	// start and a larger log.
	SnapshotLogBytes    int64
	SnapshotLogCommands uint64

	// TrailBytes and TrailAge bound the trail of events that the cluster keeps. The leader sets
	// them if they differ from the cluster's. 0 keeps the cluster's.
	TrailBytes int64
	TrailAge   time.Duration

	// Zones are the time zones for the slots of schedules; nil: those in the binary.
	Zones *zones.Source

	// NoRaft runs the state machine without log, peers and disk, only to measure the cost of
	// replication. Everything is lost at exit.
	NoRaft bool

	// Fatal ends the process because going on would do damage: the disk failed, the log holds
	// something that this binary does not know, or the state differs from the others'. It must
	// not return; if it does, the goroutine that called it blocks forever. nil logs the error
	// and exits with code 70.
	Fatal func(error)

	// segmentBytes is the size of the log's segments; 0: 16 MiB. Tests start many nodes, each of
	// which fills two with zeros.
	segmentBytes int
	// haste divides the intervals at which a node looks after itself and others, so that tests
	// wait less; 0: 1.
	haste int
}

// The defaults for fields of Config that are 0.
const (
	defaultInFlight      = 16_384
	defaultWaitingClaims = 32_768
)

// The memory for waiting claims: this part of the memory limit, up to this bound.
const (
	waitingPart = 8
	waitingMax  = 256 << 20
)

// waitingBytes bounds the memory of waiting claims. It is enough for WaitingClaimsMax claims
// with a type or two.
func (c *Config) waitingBytes() int64 {
	return max(min(c.MemoryLimit/waitingPart, waitingMax), int64(c.WaitingClaimsMax)*batch.WaiterBytes)
}

const (
	// joinKeysMax bounds the keys of a node; replacing a key needs two.
	joinKeysMax = 4
	// joinKeyBytesMin is the size of the shortest join key.
	joinKeyBytesMin = 32
)

// ExitFatal is the exit code of a node that stopped itself (EX_SOFTWARE).
const ExitFatal = 70

// DefaultConfig returns the defaults. NodeID, DataDir and PeerAddr have none.
func DefaultConfig() Config {
	return Config{
		SnapshotLogBytes:    256 << 20,
		SnapshotLogCommands: 4_000_000,
		Version:             "dev",
	}
}

// PeerConnectionsMax is the maximum number of peer connections if the process may open enough
// files.
const PeerConnectionsMax = peer.ConnsMax

// The types that configure the peer port's certificates and TLS.
type (
	// PeerCertificate returns this node's certificate and the authorities that it trusts.
	PeerCertificate = peer.Certificate
	// TLSMode says which connections of the peer port use TLS.
	TLSMode = peer.TLSMode
)

// The modes; see peer.TLSMode.
const (
	TLSRequired = peer.TLSRequired
	TLSPrefer   = peer.TLSPrefer
	TLSAccept   = peer.TLSAccept
)

var nodeIDPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// Validate returns an error that names the first invalid field and its flag.
func (c *Config) Validate() error {
	if !nodeIDPattern.MatchString(c.NodeID) {
		return fmt.Errorf("node id %q: 1 to 64 of A-Z a-z 0-9 _ . - (--node-id)", c.NodeID)
	}
	if c.SnapshotLogBytes < 1<<20 || c.SnapshotLogCommands < 1 {
		return fmt.Errorf("snapshots after %d bytes or %d commands: at least 1 MiB and 1", c.SnapshotLogBytes, c.SnapshotLogCommands)
	}
	if c.MemoryLimit < 0 {
		return fmt.Errorf("memory limit %d: must not be negative", c.MemoryLimit)
	}
	if c.InFlightMax < 0 || c.WaitingClaimsMax < 0 {
		return fmt.Errorf("%d commands in flight, %d waiting claims: must not be negative", c.InFlightMax, c.WaitingClaimsMax)
	}
	if c.NoRaft {
		return nil
	}
	if c.DataDir == "" {
		return errors.New("no data folder (--data-dir)")
	}
	if _, _, err := net.SplitHostPort(c.PeerAddr); err != nil {
		return fmt.Errorf("peer address %q: want host:port (--peer-addr): %w", c.PeerAddr, err)
	}
	return c.validateMeeting()
}

func (c *Config) validateMeeting() error {
	ways := 0
	for _, set := range []bool{c.Bootstrap, len(c.Join) > 0, len(c.InitialCluster) > 0} {
		if set {
			ways++
		}
	}
	if ways > 1 {
		return errors.New("only one of --bootstrap, --join and --initial-cluster")
	}
	if len(c.InitialCluster) > 0 && c.InitialCluster[c.NodeID] == "" {
		return fmt.Errorf("--initial-cluster does not list this node, %q", c.NodeID)
	}
	return c.CheckJoinKeys(c.joinKeys())
}

// joinKeys returns the current keys.
func (c *Config) joinKeys() peer.JoinKeys {
	if c.JoinKeys == nil {
		return nil
	}
	return c.JoinKeys()
}

// CheckJoinKeys returns an error if a node cannot use these join keys: there are too many, one
// is too short, or peers without a key would be accepted beyond loopback without a required
// PeerCertificate or Insecure.
func (c *Config) CheckJoinKeys(keys [][]byte) error {
	if len(keys) > joinKeysMax {
		return fmt.Errorf("there are %d join keys, %d are allowed", len(keys), joinKeysMax)
	}
	for _, key := range keys {
		if len(key) > 0 && len(key) < joinKeyBytesMin {
			return fmt.Errorf("the join key has %d characters, it must have %d or more", len(key), joinKeyBytesMin)
		}
	}
	tlsRequired := c.PeerCertificate != nil && c.PeerTLSMode == TLSRequired
	if !peer.JoinKeys(keys).TakesNone() || tlsRequired || c.Insecure || isLoopback(hostOf(c.PeerAddr)) {
		return nil
	}
	if peer.JoinKeys(keys).TakesSome() {
		return errors.New("a line `none` among the join keys lets in who has none, and peer address " + c.PeerAddr + " is not a loopback address: it needs mutual TLS that is required, or --insecure")
	}
	if c.PeerCertificate != nil {
		return fmt.Errorf("peer address %s is not a loopback address, and connections without TLS are taken there (--peer-tls-mode): give --join-key-file, or --insecure", c.PeerAddr)
	}
	return fmt.Errorf("peer address %s is not a loopback address, and there is neither mutual TLS nor a join key: give --peer-tls-cert-file and the rest, or --join-key-file, or --insecure", c.PeerAddr)
}

// hostOf returns the host of a host:port.
func hostOf(addr string) string {
	host, _, _ := net.SplitHostPort(addr)
	return host
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// interval returns a period at which the node checks something, shortened by haste.
func (c *Config) interval(period time.Duration) time.Duration {
	return period / time.Duration(max(c.haste, 1))
}

// withDefaults fills in the defaults.
func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.MemoryLimit == 0 {
		c.MemoryLimit = DefaultMemoryLimit()
	}
	if c.InFlightMax == 0 {
		c.InFlightMax = defaultInFlight
	}
	if c.WaitingClaimsMax == 0 {
		c.WaitingClaimsMax = defaultWaitingClaims
	}
	if c.Fatal == nil {
		logger := c.Logger
		c.Fatal = func(err error) {
			logger.Error("stopping this node: going on would do damage", "error", err)
			os.Exit(ExitFatal)
		}
	}
	return c
}

// Raft's timing. A leader that is cut off stops leading after its leader lease; the others elect
// a new one in about a second (docs/architecture.md). The lease is four heartbeats long, because
// heartbeats are up to 100 ms apart and are all that an idle leader hears of its followers; so a
// process that is held up for 300 ms does not lose its leadership.
const (
	heartbeatTimeout   = 500 * time.Millisecond
	electionTimeout    = 500 * time.Millisecond
	leaderLeaseTimeout = 400 * time.Millisecond
	// commitTimeout is the interval at which Raft contacts a follower when there is nothing to
	// send, and retries what failed. It is most of an idle leader's work, so it is long;
	// followers learn of commits sooner (package confirm).
	commitTimeout = 200 * time.Millisecond
	// appendEntriesMax bounds a call to a follower: 16 entries of at most 1 MiB, or larger ones
	// with a single command. As one entry is in flight, more is not needed.
	appendEntriesMax = 16

	// trailingLogsMax and trailingLogsMin bound the entries kept below a snapshot's index
	// for followers that lag a little; trailingBytes lowers them when entries are large.
	// The minimum is far above what can be in flight: a deposed leader's tail, if it
	// reaches that index, begins among them (docs/adr/0008-install-snapshot-livelock.md).
	trailingLogsMax = 10_240
	trailingLogsMin = 1_024
	trailingBytes   = 64 << 20
)

// DefaultMemoryLimit returns the MemoryLimit for 0, in bytes: half of the memory that this
// process may use, because restoring a snapshot needs room besides the state.
func DefaultMemoryLimit() int64 { return int64(memory.Total() / 2) }
