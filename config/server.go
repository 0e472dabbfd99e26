package config

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"
)

// Server is the configuration of one node.
type Server struct {
	// NodeID names the node for operators: 1 to 64 of A-Z a-z 0-9 _ . -.
	// Required. It never changes for a data folder.
	NodeID string `koanf:"node_id"`
	// DataDir is the folder that the node keeps everything in. Required; made
	// if it does not exist. One process at a time may use it.
	DataDir string `koanf:"data_dir"`
	// HTTPAddr is the host:port that the API listens on.
	HTTPAddr string `koanf:"http_addr"`
	// PeerAddr is the host:port that the other nodes reach this one on.
	PeerAddr string `koanf:"peer_addr"`
	// HTTPAdvertise is the host:port of the API that others are told; empty:
	// HTTPAddr.
	HTTPAdvertise string `koanf:"http_advertise"`
	// PeerAdvertise is the host:port that other nodes dial; empty: PeerAddr.
	PeerAdvertise string `koanf:"peer_advertise"`
	// Bootstrap makes the node the first one of a new cluster.
	Bootstrap bool `koanf:"bootstrap"`
	// Join lists peer addresses of a running cluster to join.
	Join []string `koanf:"join"`
	// InitialCluster lists all nodes of a new cluster as ID=HOST:PEERPORT; all
	// of them start with the same list. A node with data ignores it, as it
	// ignores Bootstrap and Join.
	InitialCluster []string `koanf:"initial_cluster"`
	// JoinKeyFile is a file with one line, at least 32 characters: the secret
	// that lets nodes meet. Needed for several nodes.
	JoinKeyFile string `koanf:"join_key_file"`
	// Insecure allows listening beyond loopback although there is no
	// authentication.
	Insecure bool `koanf:"insecure"`
	// MemoryLimit bounds the bytes that tasks may hold before submits are
	// refused as overloaded; 0: half of the machine's or the cgroup's memory.
	MemoryLimit int64 `koanf:"memory_limit"`
	// SnapshotLogBytes is how many bytes of log make a snapshot due. More
	// makes restarts slower, less writes more.
	SnapshotLogBytes int64 `koanf:"snapshot_log_bytes"`
	// LogStore is how a new data folder keeps its log, wal or boltdb; a folder
	// that has data must have been made with the same. Empty: what the folder
	// has, or the default.
	LogStore string `koanf:"log_store"`
	// AuditFile is a file that every event of the trail is written to, as a line
	// of JSON. SIGHUP opens it anew. Empty: none.
	AuditFile string `koanf:"audit_file"`
	// TrailBytes and TrailAge bound the cluster's trail: the node that leads sets
	// them. 0: what the cluster has.
	TrailBytes int64         `koanf:"trail_bytes"`
	TrailAge   time.Duration `koanf:"trail_age"`
	// LogLevel is trace, debug, info, warn or error.
	LogLevel string `koanf:"log_level"`
	// Keys are the API keys, KeysFile a YAML file with more of them under the
	// same name; both are read again by SIGHUP. Without any the server is open.
	Keys     []Key  `koanf:"keys"`
	KeysFile string `koanf:"keys_file"`
	// AllowedOrigins are the origins, as https://host[:port], whose pages may
	// call the API from a browser.
	AllowedOrigins []string `koanf:"allowed_origins"`
	// HTTPTLS and PeerTLS are the certificates of the two ports; they are read
	// again when the files change.
	HTTPTLS HTTPTLS `koanf:"http_tls"`
	PeerTLS PeerTLS `koanf:"peer_tls"`
	// DiskFreeMin is how many bytes the data folder's file system keeps free
	// before submits are refused.
	DiskFreeMin int64 `koanf:"disk_free_min"`
	// Limits bound requests, connections and what waits.
	Limits Limits `koanf:"limits"`
	// NoRaft serves from memory alone, without a log: for comparisons by
	// claimq bench, never for data.
	NoRaft bool `koanf:"no_raft"`
}

// Key is an API key, by the SHA-256 of the whole key.
type Key struct {
	Name      string `koanf:"name"`       // 1 to 64 of A-Z a-z 0-9 _ . -, once
	Role      string `koanf:"role"`       // reader, producer, worker or operator
	KeySHA256 string `koanf:"key_sha256"` // 64 hex digits
	// RateLimitPerMinute bounds its requests; nil: 100 a minute, 0: no bound.
	RateLimitPerMinute *int64 `koanf:"rate_limit_per_minute"`
	// TaskTypes are those that it may submit, claim and change; none: all.
	TaskTypes []string `koanf:"task_types"`
}

// HTTPTLS is the TLS of the API's port; without CertFile it speaks plain HTTP.
type HTTPTLS struct {
	CertFile string `koanf:"cert_file"`
	KeyFile  string `koanf:"key_file"`
	// ClientCAFile makes the server ask clients for a certificate that one of
	// these authorities signed, and refuse those that have none.
	ClientCAFile string `koanf:"client_ca_file"`
}

// PeerTLS is the mutual TLS of the peer port; all three or none.
type PeerTLS struct {
	CertFile string `koanf:"cert_file"`
	KeyFile  string `koanf:"key_file"`
	CAFile   string `koanf:"ca_file"`
}

// Limits bound what a node takes on. 0 is the default that each names.
type Limits struct {
	BodyBytes     int `koanf:"body_bytes"`     // of a request's body; 8 MiB
	ValueBytes    int `koanf:"value_bytes"`    // of params, payload and result each; 1 MiB
	ErrorBytes    int `koanf:"error_bytes"`    // of a fail's error, cut there; 16 KiB
	Depth         int `koanf:"depth"`          // of nested JSON; 64
	Items         int `koanf:"items"`          // of one request; 1,000
	Connections   int `koanf:"connections"`    // open to the API; 16,384
	WaitingClaims int `koanf:"waiting_claims"` // parked at the leader; 32,768
	InFlight      int `koanf:"in_flight"`      // commands queued at the leader; 16,384
}

// DefaultServer returns the configuration of a node that sets nothing.
func DefaultServer() Server {
	return Server{
		HTTPAddr:         "127.0.0.1:7400",
		PeerAddr:         "127.0.0.1:7401",
		SnapshotLogBytes: 256 << 20,
		LogLevel:         "info",
	}
}

var nodeIDPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// Validate returns every mistake in s, each naming the setting and what is
// allowed.
func (s *Server) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if !nodeIDPattern.MatchString(s.NodeID) {
		add("node_id is %q: it must be 1 to 64 of A-Z a-z 0-9 _ . - (--node-id n1)", s.NodeID)
	}
	if s.DataDir == "" && !s.NoRaft {
		add("data_dir is not set: name the folder for the node's data (--data-dir DIR)")
	}
	s.validateAddresses(add)
	s.validateStart(add)
	if s.MemoryLimit < 0 {
		add("memory_limit is %d: it must be 0 (half of the memory) or a number of bytes", s.MemoryLimit)
	}
	if s.SnapshotLogBytes < 1<<20 {
		add("snapshot_log_bytes is %d: it must be at least %d (1 MiB)", s.SnapshotLogBytes, 1<<20)
	}
	if s.TrailBytes != 0 && (s.TrailBytes < 1<<20 || s.TrailBytes > 64<<30) {
		add("trail_bytes is %d: it must be 0 (what the cluster has) or from %d (1 MiB) to %d (64 GiB)", s.TrailBytes, 1<<20, 64<<30)
	}
	if s.TrailAge != 0 && s.TrailAge < time.Minute {
		add("trail_age is %s: it must be 0 (what the cluster has) or at least 1m", s.TrailAge)
	}
	switch s.LogStore {
	case "", "wal", "boltdb":
	default:
		add("log_store is %q: it must be wal or boltdb", s.LogStore)
	}
	switch s.LogLevel {
	case "trace", "debug", "info", "warn", "error":
	default:
		add("log_level is %q: it must be trace, debug, info, warn or error", s.LogLevel)
	}
	return errors.Join(errs...)
}

func (s *Server) validateAddresses(add func(string, ...any)) {
	for _, a := range []struct {
		name, value string
		optional    bool
	}{
		{"http_addr", s.HTTPAddr, false},
		{"peer_addr", s.PeerAddr, false},
		{"http_advertise", s.HTTPAdvertise, true},
		{"peer_advertise", s.PeerAdvertise, true},
	} {
		if a.value == "" && a.optional {
			continue
		}
		host, _, err := net.SplitHostPort(a.value)
		if err != nil {
			add("%s is %q: it must be host:port", a.name, a.value)
			continue
		}
		if !a.optional && !s.Insecure && !IsLoopback(host) {
			add("%s is %q: without authentication a node listens on loopback only; --insecure allows more, for a network that you trust", a.name, a.value)
		}
	}
	for _, a := range []struct{ name, listen, advertise string }{
		{"http", s.HTTPAddr, s.HTTPAdvertise},
		{"peer", s.PeerAddr, s.PeerAdvertise},
	} {
		host, _, err := net.SplitHostPort(a.listen)
		if err == nil && a.advertise == "" && (host == "" || net.ParseIP(host).IsUnspecified()) {
			add("%s_addr is %q, which others cannot dial: set %s_advertise to the address that they reach this node on", a.name, a.listen, a.name)
		}
	}
}

func (s *Server) validateStart(add func(string, ...any)) {
	ways := 0
	for _, set := range []bool{s.Bootstrap, len(s.Join) > 0, len(s.InitialCluster) > 0} {
		if set {
			ways++
		}
	}
	if ways > 1 {
		add("bootstrap, join and initial_cluster: give only one of them")
	}
	if s.NoRaft && ways > 0 {
		add("no_raft goes with none of bootstrap, join and initial_cluster: it is one node without a log")
	}
	if (len(s.Join) > 0 || len(s.InitialCluster) > 1) && s.JoinKeyFile == "" && !s.Insecure {
		add("join_key_file is not set: several nodes need a shared secret to meet (--join-key-file FILE, one line of at least 32 characters, the same on all)")
	}
	if _, err := s.InitialClusterMap(); err != nil {
		add("%w", err)
	}
}

// InitialClusterMap returns InitialCluster as peer addresses by node id, nil
// if it is empty. A malformed or repeated element is an error, and so is a
// list without this node.
func (s *Server) InitialClusterMap() (map[string]string, error) {
	if len(s.InitialCluster) == 0 {
		return nil, nil
	}
	m := make(map[string]string, len(s.InitialCluster))
	for _, e := range s.InitialCluster {
		id, addr, _ := strings.Cut(e, "=")
		if _, _, err := net.SplitHostPort(addr); err != nil || !nodeIDPattern.MatchString(id) {
			return nil, fmt.Errorf("initial_cluster has %q: each element must be NODE_ID=HOST:PEERPORT", e)
		}
		if _, ok := m[id]; ok {
			return nil, fmt.Errorf("initial_cluster names %q twice", id)
		}
		m[id] = addr
	}
	if _, ok := m[s.NodeID]; !ok {
		return nil, fmt.Errorf("initial_cluster does not name this node, %q", s.NodeID)
	}
	return m, nil
}

// IsLoopback reports whether host is a name or address of this machine alone.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
