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
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/internal/memory"
	"github.com/claimq/claimq/internal/zones"
)

// Config is what a node is opened with. Fill DefaultConfig's value and Open
// validates it.
type Config struct {
	// NodeID is the operator's name for the node: 1 to 64 of A-Z a-z 0-9 _ . -
	// It is recorded in the data folder; another one is refused there later.
	NodeID string
	// DataDir is the folder that holds everything the node keeps. It is made
	// if it is not there. Only one process may use it.
	DataDir string
	// PeerAddr is the host:port that the peer port listens on.
	PeerAddr string
	// PeerAdvertise is the host:port that other nodes reach the peer port at.
	// "" means the address listened on.
	PeerAdvertise string
	// HTTPAdvertise is the URL of the node's API, as http://host:port, told to
	// clients that are redirected.
	HTTPAdvertise string

	// Bootstrap, Join and InitialCluster say how an empty node finds its
	// cluster; at most one is set. A node with data ignores all three.

	// Bootstrap makes the node the first one of a new cluster.
	Bootstrap bool
	// Join names peer addresses of a running cluster that the node asks to be
	// let in: by JoinToken, else it waits for an operator's JoinNode.
	Join []string
	// JoinToken returns a secret that the cluster lets new nodes in by, "" for none.
	// It is asked when the node joins. nil = none.
	JoinToken func() (string, error)
	// InitialCluster maps the node ids of a new cluster, this one included, to
	// their peer addresses. Every one of them is started with the same list.
	InitialCluster map[string]string

	// JoinKeys returns the secrets that nodes prove to each other on the peer port:
	// the first is what this node proves that with, all are taken from others, and
	// an empty one stands for none. It is asked for each connection, by several
	// goroutines; what it returns is not changed. nil, and no key, mean none: allowed
	// with PeerCertificate and TLSRequired, on loopback, or by Insecure. See CheckJoinKeys.
	JoinKeys func() [][]byte
	// PeerCertificate makes the peer port speak mutual TLS. nil means none.
	PeerCertificate PeerCertificate
	// PeerTLSMode says on which connections, with a PeerCertificate.
	PeerTLSMode TLSMode
	// Insecure allows a peer port without a join key or TLS beyond loopback.
	Insecure bool

	// Logger takes the log lines of the node and of Raft. nil discards them.
	Logger hclog.Logger
	// Registerer takes the node's metrics. nil keeps them unregistered.
	Registerer prometheus.Registerer
	// Version is the binary's version, shown to the other nodes.
	Version string

	// MemoryLimit is how many bytes of state, by its own estimate, make the
	// node refuse submits; claims and settles go on. 0 means half of what the
	// machine or the cgroup has. Too low refuses work early, too high leaves no
	// room to restore a snapshot.
	MemoryLimit int64
	// DiskFreeMin is how many bytes the data folder's file system keeps free
	// before submits are refused. 0 means a twentieth of the file system, 1 GiB at
	// most. Too low leaves no room for what goes on: claims, settles, a snapshot.
	DiskFreeMin uint64
	// DiskSpace tells how many bytes are free for this process on the disk, and how
	// many that has. nil asks the data folder's file system; tests give their own.
	DiskSpace func() (free, size uint64, err error)
	// DiskInodes tells the same of inodes; a size of 0 is no bound.
	DiskInodes func() (free, size uint64, err error)
	// InFlightMax bounds the commands that wait to be written on the leader; the
	// last quarter of it is not for submits. 0 means 16,384.
	InFlightMax int
	// WaitingClaimsMax bounds the claims that wait on the leader. 0 means 32,768.
	WaitingClaimsMax int
	// PeerConnections bounds the connections of the peer port, in both directions. 0 means
	// PeerConnectionsMax.
	PeerConnections int

	// SnapshotLogBytes and SnapshotLogCommands are how much log since the last
	// snapshot makes the next one due. Lower ones cost more writing, higher
	// ones a longer replay at start and a larger log.
	SnapshotLogBytes    int64
	SnapshotLogCommands uint64

	// LogStore is the kind of log store of a new data folder, wal or boltdb, and
	// must be that of one that is there. "" is the one it has, or the default.
	LogStore string

	// TrailBytes and TrailAge bound the trail of events that the cluster keeps. The
	// node that leads sets them where they differ from what the cluster has. 0
	// leaves that alone.
	TrailBytes int64
	TrailAge   time.Duration

	// Zones are the time zones by which the slots of schedules are computed; nil: those in
	// the binary.
	Zones *zones.Source

	// NoRaft runs the state machine without log, peers and disk: for measuring
	// what replication costs, and for nothing else. Everything is lost at exit.
	NoRaft bool

	// Fatal ends the process because going on would do damage: the disk failed,
	// the log holds what this binary does not know, or the state differs from
	// the others'. It must not return; if it does, the goroutine that called it
	// blocks for ever. nil logs the error and exits with code 70.
	Fatal func(error)
}

// What 0 stands for in Config.
const (
	defaultInFlight      = 16_384
	defaultWaitingClaims = 32_768
)

// What claims that wait may take together: this part of the memory limit, up to this bound.
const (
	waitingPart = 8
	waitingMax  = 256 << 20
)

// waitingBytes bounds what claims that wait take together. As many as may wait have room if they
// list a type or two.
func (c *Config) waitingBytes() int64 {
	return max(min(c.MemoryLimit/waitingPart, waitingMax), int64(c.WaitingClaimsMax)*batch.WaiterBytes)
}

const (
	// joinKeysMax bounds the keys that a node has at once: an exchange needs two.
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

// PeerConnectionsMax is how many connections the peer port may have where the process may open
// files enough.
const PeerConnectionsMax = peer.ConnsMax

// What the peer port is told of its certificates and of TLS.
type (
	// PeerCertificate returns this node's certificate and the authorities that it trusts.
	PeerCertificate = peer.Certificate
	// TLSMode says which connections of the peer port speak TLS.
	TLSMode = peer.TLSMode
)

// The modes; see peer.TLSMode.
const (
	TLSRequired = peer.TLSRequired
	TLSPrefer   = peer.TLSPrefer
	TLSAccept   = peer.TLSAccept
)

var nodeIDPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// Validate reports what is wrong with the config, naming the field and the
// flag that sets it.
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
	switch c.LogStore {
	case "", storage.KindWAL, storage.KindBoltDB:
	default:
		return fmt.Errorf("log store %q: wal or boltdb (--log-store)", c.LogStore)
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

// joinKeys returns the keys of now.
func (c *Config) joinKeys() peer.JoinKeys {
	if c.JoinKeys == nil {
		return nil
	}
	return c.JoinKeys()
}

// CheckJoinKeys says why a node cannot have these join keys: there are too many, one is
// too short or, beyond loopback, somebody without one is taken, and neither
// a PeerCertificate that is required of all nor Insecure allows that.
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

// withDefaults fills what may be left out.
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

// Raft's times. A leader that is cut off stops leading after its leader lease;
// the others elect a new one in about a second (docs/architecture.md). The lease is
// four heartbeats long, which are up to 100 ms apart and all that an idle leader hears
// of its followers, so that a processor that is held up for 300 ms costs no leadership.
const (
	heartbeatTimeout   = 500 * time.Millisecond
	electionTimeout    = 500 * time.Millisecond
	leaderLeaseTimeout = 400 * time.Millisecond
	// commitTimeout is how soon Raft sends something to a follower when there is nothing to
	// send, and tries again what failed. Most of what an idle leader does is that; followers
	// learn sooner of what is committed (package confirm).
	commitTimeout = 200 * time.Millisecond
	// appendEntriesMax bounds a call to a follower: 16 entries, which are at most
	// 1 MiB each unless a single command was larger. One entry in flight needs no
	// more.
	appendEntriesMax = 16
)

// DefaultMemoryLimit returns the MemoryLimit that 0 stands for, in bytes: half
// of what this process may use, for restoring a snapshot needs room beside the
// state.
func DefaultMemoryLimit() int64 { return int64(memory.Total() / 2) }
