package config

import (
	"net/netip"
	"time"
)

// Server is the configuration of one node. docs/configuration.md describes the cost of each setting; settings has
// their names.
type Server struct {
	// NodeID names the node for operators: 1 to 64 of A-Z a-z 0-9 _ . -.
	// Required. It never changes for a data folder.
	NodeID string
	// DataDir is the folder for all data of the node. Required; it is created if it does not exist. Only one process
	// at a time may use it.
	DataDir string
	// HTTPAddr is the host:port that the API listens on.
	HTTPAddr string
	// PeerAddr is the host:port that the node listens on for other nodes.
	PeerAddr string
	// HTTPAdvertise is the host:port of the API that clients and other nodes are told; empty: HTTPAddr.
	HTTPAdvertise string
	// PeerAdvertise is the host:port that other nodes dial; empty: PeerAddr.
	PeerAdvertise string
	// Bootstrap makes the node the first one of a new cluster.
	Bootstrap bool
	// Join lists peer addresses of a running cluster to join.
	Join []string
	// JoinTokenFile is a file with a join token on one line, with which the cluster of Join admits the node without
	// an operator's call. It is read when the node joins.
	JoinTokenFile string
	// InitialCluster lists all nodes of a new cluster as ID=HOST:PEERPORT, the same list on each of them. A node with
	// data ignores it, like Bootstrap and Join.
	InitialCluster []string
	// JoinKeyFile is a file with the secret by which nodes recognize each other: a line of at least 32 characters, or
	// several while it is exchanged (ReadJoinKeys). It is read again when it changes. A cluster of several nodes
	// needs it, or PeerTLS.
	JoinKeyFile string
	// Insecure permits listening beyond loopback without authentication.
	Insecure bool
	// Keys are the API keys. LoadServer adds those of KeysFile, a YAML file with a list of the same name and form;
	// SIGHUP reads both again. Without keys and without OIDC the server is open.
	Keys     []Key
	KeysFile string
	// OIDC is the issuer whose tokens are accepted in addition to keys; without Issuer no tokens are. SIGHUP reads it
	// again.
	OIDC OIDC
	// Backup says when the leader saves backups, and where.
	Backup Backup
	// SQS is the endpoint for clients of Amazon SQS.
	SQS SQS
	// AllowedOrigins are the origins, as https://host[:port], whose pages may call the API from a browser.
	AllowedOrigins []string
	// UI configures the page below /ui/.
	UI UI
	// HTTPTLS and PeerTLS are the certificates of the two ports; their files are read again when they change.
	HTTPTLS HTTPTLS
	PeerTLS PeerTLS
	// MemoryLimit bounds the bytes of tasks; beyond it submits are refused as overloaded. 0: half of the machine's or
	// the cgroup's memory.
	MemoryLimit int64
	// DiskFreeMin is the free space on the data folder's file system, in bytes, below which submits are refused as
	// overloaded. 0: a twentieth of the file system, at most 1 GiB.
	DiskFreeMin int64
	// SnapshotLogBytes is the size of the log that triggers a snapshot. Larger values make restarts slower, smaller
	// ones cause more writes.
	SnapshotLogBytes int64
	// TrailBytes and TrailAge bound the cluster's trail; the leader applies them. 0: leave the cluster's bounds
	// unchanged.
	TrailBytes int64
	TrailAge   time.Duration
	// AuditFile is a file to which every event of the trail, and every denied request with a known key, is written as
	// a line of JSON. SIGHUP closes and reopens it. Empty: none.
	AuditFile string
	// ZoneDataFile is a file of time zones that replaces those in the binary: a ZIP archive of a folder like
	// /usr/share/zoneinfo. It is read again when it changes. Empty: none.
	ZoneDataFile string
	// DrainTime is the time for which a node that is told to stop keeps serving while /readyz reports that it is not
	// ready, so that load balancers can notice.
	DrainTime time.Duration
	// HealthAddr is the host:port of an additional port that only answers /healthz and /readyz, over plain HTTP.
	// Empty: none.
	HealthAddr string
	// LogLevel is trace, debug, info, warn or error; LogFormat text or json.
	LogLevel  string
	LogFormat string
	// Limits bound requests, connections and waiting calls.
	Limits Limits
	// NoRaft serves from memory only, without a log. It is for comparisons by claimq bench, never for data.
	NoRaft bool
}

// Key is an API key, stored as the SHA-256 of the whole key.
type Key struct {
	Name      string   // 1 to 64 of A-Z a-z 0-9 _ . -, unique
	Role      string   // reader, producer, worker or operator; not together with Roles
	Roles     []string // several of these: the key may do what any of them may
	KeySHA256 string   // 64 hex digits, lower-case, unique
	// RateLimitPerMinute bounds its requests; nil: 100 a minute, 0: no bound.
	RateLimitPerMinute *int64
	// TaskTypes are the types that it may submit, claim and change; empty: all.
	TaskTypes []string
	// ExpiresAt is its expiry; zero: never.
	ExpiresAt time.Time
	// Addresses are those that it may be used from; empty: all.
	Addresses []netip.Prefix
}

// UI configures the page of a node.
type UI struct {
	Enabled  bool // the page is served, and logins are accepted
	ReadOnly bool // users of the page may only read
}

// HTTPTLS is the TLS of the API's port; without CertFile it uses plain HTTP.
type HTTPTLS struct {
	CertFile string
	KeyFile  string
	// ClientCAFile makes the server require client certificates signed by one of these authorities.
	ClientCAFile string
}

// PeerTLS is the mutual TLS of the peer port; set all three files or none.
type PeerTLS struct {
	CertFile string
	KeyFile  string
	CAFile   string
	// Mode is required, prefer or accept: TLS on all connections, on those that this node opens, or only if the other
	// node opens them with TLS. The latter two are for switching TLS on or off.
	Mode string
}

// none reports whether no file is set.
func (p PeerTLS) none() bool { return p.CertFile == "" && p.KeyFile == "" && p.CAFile == "" }

// required reports whether nodes without a certificate are rejected.
func (p PeerTLS) required() bool { return !p.none() && p.Mode == peerTLSRequired }

// The modes of PeerTLS.
const (
	peerTLSRequired = "required"
	peerTLSPrefer   = "prefer"
	peerTLSAccept   = "accept"
)

// Limits bound the work that a node accepts.
type Limits struct {
	BodyBytes   int // of a request's body
	ValueBytes  int // of each of params, payload and result
	ErrorBytes  int // where a fail's error is cut
	Depth       int // of nested JSON
	Items       int // of one request
	Connections int // open connections to the API
	// ConnectionsPerAddress bounds the connections from one address that have shown no valid key.
	ConnectionsPerAddress int
	WaitingClaims         int // waiting at the leader
	InFlight              int // commands queued at the leader
}

// DefaultServer returns the default configuration of a node.
func DefaultServer() Server {
	return Server{
		HTTPAddr:         "127.0.0.1:7400",
		PeerAddr:         "127.0.0.1:7401",
		SnapshotLogBytes: 256 << 20,
		DrainTime:        3 * time.Second,
		LogLevel:         "info",
		LogFormat:        "text",
		PeerTLS:          PeerTLS{Mode: peerTLSRequired},
		UI:               UI{Enabled: true},
		SQS:              SQS{Account: "000000000000"},
		Backup:           Backup{Keep: 24, Timeout: time.Hour},
		OIDC: OIDC{
			GroupsClaim: "groups", NameClaim: "sub", Algorithms: []string{"RS256", "ES256", "EdDSA"},
			Leeway: 30 * time.Second, LifetimeMax: 24 * time.Hour,
		},
		Limits: Limits{
			BodyBytes:             8 << 20,
			ValueBytes:            1 << 20,
			ErrorBytes:            16 << 10,
			Depth:                 64,
			Items:                 1_000,
			Connections:           16_384,
			ConnectionsPerAddress: 1_024,
			WaitingClaims:         32_768,
			InFlight:              16_384,
		},
	}
}
