package config

import (
	"net/netip"
	"time"
)

// Server is the configuration of one node. docs/configuration.md tells for
// each setting what it costs; settings has their names.
type Server struct {
	// NodeID names the node for operators: 1 to 64 of A-Z a-z 0-9 _ . -.
	// Required. It never changes for a data folder.
	NodeID string
	// DataDir is the folder that the node keeps everything in. Required; made
	// if it does not exist. One process at a time may use it.
	DataDir string
	// HTTPAddr is the host:port that the API listens on.
	HTTPAddr string
	// PeerAddr is the host:port that the other nodes reach this one on.
	PeerAddr string
	// HTTPAdvertise is the host:port of the API that others are told; empty:
	// HTTPAddr.
	HTTPAdvertise string
	// PeerAdvertise is the host:port that other nodes dial; empty: PeerAddr.
	PeerAdvertise string
	// Bootstrap makes the node the first one of a new cluster.
	Bootstrap bool
	// Join lists peer addresses of a running cluster to join.
	Join []string
	// JoinTokenFile is a file with one line: a join token, by which the cluster of
	// Join lets the node in without an operator's call. It is read when the node
	// joins.
	JoinTokenFile string
	// InitialCluster lists all nodes of a new cluster as ID=HOST:PEERPORT; all
	// of them start with the same list. A node with data ignores it, as it
	// ignores Bootstrap and Join.
	InitialCluster []string
	// JoinKeyFile is a file with the secret that lets nodes meet, a line of at least
	// 32 characters, or several while it is exchanged (ReadJoinKeys); it is read again
	// when it changes. Several nodes need it, or PeerTLS.
	JoinKeyFile string
	// Insecure allows listening beyond loopback without authentication.
	Insecure bool
	// Keys are the API keys. LoadServer adds those of KeysFile, a YAML file
	// with a list of the same form under the same name; SIGHUP reads both again.
	// Without any, and without OIDC, the server is open.
	Keys     []Key
	KeysFile string
	// OIDC is the issuer whose tokens are taken beside keys; without Issuer nobody's are.
	// SIGHUP reads it again.
	OIDC OIDC
	// AllowedOrigins are the origins, as https://host[:port], whose pages may
	// call the API from a browser.
	AllowedOrigins []string
	// UI is what is served of the page below /ui/.
	UI UI
	// HTTPTLS and PeerTLS are the certificates of the two ports; they are read
	// again when the files change.
	HTTPTLS HTTPTLS
	PeerTLS PeerTLS
	// MemoryLimit bounds the bytes that tasks may hold before submits are
	// refused as overloaded; 0: half of the machine's or the cgroup's memory.
	MemoryLimit int64
	// DiskFreeMin is how many bytes the data folder's file system keeps free
	// before submits are refused as overloaded; 0: a twentieth of the file
	// system, at most 1 GiB.
	DiskFreeMin int64
	// SnapshotLogBytes is how many bytes of log make a snapshot due. More
	// makes restarts slower, less writes more.
	SnapshotLogBytes int64
	// LogStore is how a new data folder keeps its log, wal or boltdb; a folder
	// that has data must have been made with the same. Empty: what the folder
	// has, or the default.
	LogStore string
	// TrailBytes and TrailAge bound the cluster's trail: the node that leads sets
	// them. 0: what the cluster has.
	TrailBytes int64
	TrailAge   time.Duration
	// AuditFile is a file that every event of the trail is written to, and every
	// denied request with a known key, as a line of JSON. SIGHUP closes and reopens
	// it. Empty: none.
	AuditFile string
	// ZoneDataFile is a file of time zones that stands in for those in the binary, a ZIP
	// archive of a folder as /usr/share/zoneinfo; it is read again when it changes. Empty:
	// none.
	ZoneDataFile string
	// DrainTime is how long a node that is told to stop still serves, while /readyz says that
	// it is not ready: those that send it clients take as long to notice.
	DrainTime time.Duration
	// HealthAddr is the host:port of a port that answers /healthz and /readyz alone,
	// over plain HTTP. Empty: none.
	HealthAddr string
	// LogLevel is trace, debug, info, warn or error; LogFormat text or json.
	LogLevel  string
	LogFormat string
	// Limits bound requests, connections and what waits.
	Limits Limits
	// NoRaft serves from memory alone, without a log: for comparisons by
	// claimq bench, never for data.
	NoRaft bool
}

// Key is an API key, by the SHA-256 of the whole key.
type Key struct {
	Name      string   // 1 to 64 of A-Z a-z 0-9 _ . -, once
	Role      string   // reader, producer, worker or operator; or
	Roles     []string // several of them: the key may do what any of them may
	KeySHA256 string   // 64 hex digits, lower-case, once
	// RateLimitPerMinute bounds its requests; nil: 100 a minute, 0: no bound.
	RateLimitPerMinute *int64
	// TaskTypes are those that it may submit, claim and change; none: all.
	TaskTypes []string
	// ExpiresAt is from when on it is refused; zero: never.
	ExpiresAt time.Time
	// Addresses are those that it may be used from; none: all.
	Addresses []netip.Prefix
}

// UI is what a node serves of the page.
type UI struct {
	Enabled  bool // it is served, and who has logged in there is known
	ReadOnly bool // whoever comes by it may read alone
}

// HTTPTLS is the TLS of the API's port; without CertFile it speaks plain HTTP.
type HTTPTLS struct {
	CertFile string
	KeyFile  string
	// ClientCAFile makes the server ask clients for a certificate that one of
	// these authorities signed, and refuse those that have none.
	ClientCAFile string
}

// PeerTLS is the mutual TLS of the peer port; all three files or none.
type PeerTLS struct {
	CertFile string
	KeyFile  string
	CAFile   string
	// Mode is required, prefer or accept: TLS on all connections, on those that the
	// node opens, or only if others open them with it. The latter two are there to
	// switch it on or off.
	Mode string
}

// none reports whether no file is named.
func (p PeerTLS) none() bool { return p.CertFile == "" && p.KeyFile == "" && p.CAFile == "" }

// required reports whether who has no certificate is kept out.
func (p PeerTLS) required() bool { return !p.none() && p.Mode == peerTLSRequired }

// The modes of PeerTLS.
const (
	peerTLSRequired = "required"
	peerTLSPrefer   = "prefer"
	peerTLSAccept   = "accept"
)

// Limits bound what a node takes on.
type Limits struct {
	BodyBytes   int // of a request's body
	ValueBytes  int // of params, payload and result each
	ErrorBytes  int // of a fail's error, cut there
	Depth       int // of nested JSON
	Items       int // of one request
	Connections int // open to the API
	// ConnectionsPerAddress are those of one address that have shown no valid key.
	ConnectionsPerAddress int
	WaitingClaims         int // parked at the leader
	InFlight              int // commands queued at the leader
}

// DefaultServer returns the configuration of a node that sets nothing.
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
