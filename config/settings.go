package config

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// setting is one setting of Server: http_tls.cert_file in the file, CLAIMQ_HTTP_TLS__CERT_FILE in the environment,
// --http-tls-cert-file as a flag.
type setting struct {
	name   string
	usage  string              // of the flag
	value  func(*Server) value // reads and writes the field
	hidden bool                // for our own comparisons; not shown
}

// flag returns the name of the setting's flag.
func (d *setting) flag() string { return strings.NewReplacer("_", "-", ".", "-").Replace(d.name) }

// variable returns the name of the setting's environment variable.
func (d *setting) variable() string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(d.name, ".", "__"))
}

// keysName is a setting that has neither flag nor variable, because it is a list of mappings.
const keysName = "keys"

// rolesName is another one.
const rolesName = "oidc.roles"

// variablePrefix is the beginning of the names of all our environment variables.
const variablePrefix = "CLAIMQ_"

// drainTimeMax bounds drain_time; supervisors wait longer than that.
const drainTimeMax = 5 * time.Minute

// settings returns all settings except keys and oidc.roles, in the order in which they are shown.
func settings() []setting {
	return slices.Concat(nodeSettings(), accessSettings(), sqsSettings(), storageSettings(), backupSettings(), limitSettings())
}

func nodeSettings() []setting {
	return []setting{
		{name: "node_id", usage: "name of this node; never changes for a data folder", value: func(s *Server) value { return &text{p: &s.NodeID} }},
		{name: "data_dir", usage: "folder for the node's data", value: func(s *Server) value { return &text{p: &s.DataDir} }},
		{name: "http_addr", usage: "host:port that the API listens on", value: func(s *Server) value { return &text{p: &s.HTTPAddr} }},
		{name: "peer_addr", usage: "host:port for the other nodes", value: func(s *Server) value { return &text{p: &s.PeerAddr} }},
		{name: "http_advertise", usage: "host:port of the API that others are told (default: --http-addr)", value: func(s *Server) value { return &text{p: &s.HTTPAdvertise} }},
		{name: "peer_advertise", usage: "host:port that other nodes dial (default: --peer-addr)", value: func(s *Server) value { return &text{p: &s.PeerAdvertise} }},
		{name: "health_addr", usage: "host:port that answers /healthz and /readyz alone, over plain HTTP, for probes without a certificate (default: none)", value: func(s *Server) value { return &text{p: &s.HealthAddr} }},
		{name: "drain_time", usage: "how long a node that is told to stop still serves, while /readyz says that it is not ready", value: func(s *Server) value {
			return &duration{p: &s.DrainTime, min: 0, max: drainTimeMax}
		}},
		{name: "bootstrap", usage: "be the first node of a new cluster", value: func(s *Server) value { return &toggle{&s.Bootstrap} }},
		{name: "join", usage: "peer addresses of a running cluster to join", value: func(s *Server) value { return &list{p: &s.Join} }},
		{name: "join_token_file", usage: "file with a join token, by which a node that joins needs no operator's call: one line", value: func(s *Server) value { return &text{p: &s.JoinTokenFile} }},
		{name: "initial_cluster", usage: "all nodes of a new cluster, as n1=HOST:PEERPORT,n2=...; the same list on all", value: func(s *Server) value { return &list{p: &s.InitialCluster} }},
		{name: "zone_data_file", usage: "ZIP archive of /usr/share/zoneinfo whose time zones replace those of the binary; must be the same on all nodes; reloaded when it changes", value: func(s *Server) value { return &text{p: &s.ZoneDataFile} }},
		{name: "log_level", usage: "trace, debug, info, warn or error", value: func(s *Server) value { return &text{&s.LogLevel, []string{"trace", "debug", "info", "warn", "error"}} }},
		{name: "log_format", usage: "text or json: a line of JSON each", value: func(s *Server) value { return &text{&s.LogFormat, []string{"text", "json"}} }},
		{name: "no_raft", usage: "serve from memory alone: for comparisons, never for data", value: func(s *Server) value { return &toggle{&s.NoRaft} }, hidden: true},
	}
}

func accessSettings() []setting {
	return []setting{
		{name: "join_key_file", usage: "file with the secret that lets nodes meet: a line of at least 32 characters, or several while it is exchanged; read again when it changes", value: func(s *Server) value { return &text{p: &s.JoinKeyFile} }},
		{name: "insecure", usage: "allow listening beyond loopback without authentication", value: func(s *Server) value { return &toggle{&s.Insecure} }},
		{name: "keys_file", usage: "YAML file with API keys, in addition to those of the configuration file; SIGHUP reloads it", value: func(s *Server) value { return &text{p: &s.KeysFile} }},
		{name: "oidc.issuer", usage: "URL of the OpenID Connect issuer whose tokens are accepted in addition to keys", value: func(s *Server) value { return &text{p: &s.OIDC.Issuer} }},
		{name: "oidc.audience", usage: "audience that its tokens must be made for", value: func(s *Server) value { return &text{p: &s.OIDC.Audience} }},
		{name: "oidc.groups_claim", usage: "claim with the groups that oidc.roles go by; dots lead through objects", value: func(s *Server) value { return &text{p: &s.OIDC.GroupsClaim} }},
		{name: "oidc.name_claim", usage: "claim with the name for trail and log", value: func(s *Server) value { return &text{p: &s.OIDC.NameClaim} }},
		{name: "oidc.algorithms", usage: "algorithms that tokens may be signed by", value: func(s *Server) value { return &list{p: &s.OIDC.Algorithms} }},
		{name: "oidc.leeway", usage: "how far the issuer's clock may be off", value: func(s *Server) value {
			return &duration{p: &s.OIDC.Leeway, min: 0, max: oidcLeewayMax}
		}},
		{name: "oidc.lifetime_max", usage: "how long a token may be valid", value: func(s *Server) value {
			return &duration{p: &s.OIDC.LifetimeMax, min: time.Minute, max: oidcLifetimeMax, zero: "no bound"}
		}},
		{name: "oidc.ca_file", usage: "authorities that sign the issuer's certificate, PEM (default: the system's)", value: func(s *Server) value { return &text{p: &s.OIDC.CAFile} }},
		{name: "allowed_origins", usage: "origins, as https://HOST, whose pages may call the API from a browser", value: func(s *Server) value { return &list{p: &s.AllowedOrigins} }},
		{name: "ui.enabled", usage: "serve the page below /ui/", value: func(s *Server) value { return &toggle{&s.UI.Enabled} }},
		{name: "ui.read_only", usage: "let users of the page only read, regardless of their keys", value: func(s *Server) value { return &toggle{&s.UI.ReadOnly} }},
		{name: "http_tls.cert_file", usage: "certificate of the API's port, PEM; without it the port speaks plain HTTP", value: func(s *Server) value { return &text{p: &s.HTTPTLS.CertFile} }},
		{name: "http_tls.key_file", usage: "private key of that certificate, PEM", value: func(s *Server) value { return &text{p: &s.HTTPTLS.KeyFile} }},
		{name: "http_tls.client_ca_file", usage: "authorities that must have signed the certificates of clients, PEM (default: clients need none)", value: func(s *Server) value { return &text{p: &s.HTTPTLS.ClientCAFile} }},
		{name: "peer_tls.cert_file", usage: "certificate of this node for the peer port, PEM", value: func(s *Server) value { return &text{p: &s.PeerTLS.CertFile} }},
		{name: "peer_tls.key_file", usage: "private key of that certificate, PEM", value: func(s *Server) value { return &text{p: &s.PeerTLS.KeyFile} }},
		{name: "peer_tls.ca_file", usage: "authorities that must have signed the certificates of the other nodes, PEM", value: func(s *Server) value { return &text{p: &s.PeerTLS.CAFile} }},
		{name: "peer_tls.mode", usage: "which connections between nodes speak TLS: required (all), prefer (those that this node opens), accept (those that others open with it)", value: func(s *Server) value {
			return &text{&s.PeerTLS.Mode, []string{peerTLSRequired, peerTLSPrefer, peerTLSAccept}}
		}},
	}
}

func storageSettings() []setting {
	return []setting{
		{name: "memory_limit", usage: "bytes that tasks may hold before submits are refused (default: half of the memory)", value: func(s *Server) value {
			return &number[int64]{p: &s.MemoryLimit, bytes: true, min: 0, max: math.MaxInt64, zero: "half of the memory"}
		}},
		{name: "disk_free_min", usage: "bytes to keep free on the disk before submits are refused (default: a twentieth of it, at most 1GiB)", value: func(s *Server) value {
			return &number[int64]{p: &s.DiskFreeMin, bytes: true, min: 0, max: math.MaxInt64, zero: "a twentieth, at most 1GiB"}
		}},
		{name: "snapshot_log_bytes", usage: "bytes of log after which a snapshot is taken", value: func(s *Server) value {
			return &number[int64]{p: &s.SnapshotLogBytes, bytes: true, min: 1 << 20, max: math.MaxInt64}
		}},
		{name: "trail_bytes", usage: "bytes of events that the cluster keeps (default: what it has, at first 64MiB)", value: func(s *Server) value {
			return &number[int64]{p: &s.TrailBytes, bytes: true, min: 1 << 20, max: 64 << 30, zero: "what the cluster has"}
		}},
		{name: "trail_age", usage: "how long the cluster keeps events (default: what it has, at first 24h)", value: func(s *Server) value { return &age{&s.TrailAge} }},
		{name: "audit_file", usage: "file to write every event of the trail and every denied request with a known key to, a line of JSON each; SIGHUP closes and reopens it", value: func(s *Server) value { return &text{p: &s.AuditFile} }},
	}
}

func backupSettings() []setting {
	return []setting{
		{name: "backup.every", usage: "time from one backup by the leader to the next; none without it", value: func(s *Server) value {
			return &duration{p: &s.Backup.Every, min: time.Minute, max: 366 * 24 * time.Hour, zero: "none"}
		}},
		{name: "backup.to", usage: "folder for these backups, as the node sees it; best one that all nodes share", value: func(s *Server) value { return &text{p: &s.Backup.To} }},
		{name: "backup.keep", usage: "how many of the cluster's backups stay in that folder", value: func(s *Server) value {
			return &number[int]{p: &s.Backup.Keep, min: 1, max: 10_000}
		}},
		{name: "backup.command", usage: "executable file that gets each backup as its standard input, to copy it elsewhere", value: func(s *Server) value { return &text{p: &s.Backup.Command} }},
		{name: "backup.timeout", usage: "how long that command may run", value: func(s *Server) value {
			return &duration{p: &s.Backup.Timeout, min: time.Second, max: 24 * time.Hour}
		}},
	}
}

// limitSettings returns bounds that may be lowered. Sizes cannot be raised, because the log, the peer port and the
// clients are made for them.
func limitSettings() []setting {
	limit := func(name, usage string, p func(*Limits) *int, bytes bool, least, most int) setting {
		return setting{name: "limits." + name, usage: usage, value: func(s *Server) value {
			return &number[int]{p: p(&s.Limits), bytes: bytes, min: least, max: most}
		}}
	}
	return []setting{
		limit("body_bytes", "bytes of a request's body", func(l *Limits) *int { return &l.BodyBytes }, true, 1<<10, 8<<20),
		limit("value_bytes", "bytes of params, payload and result each", func(l *Limits) *int { return &l.ValueBytes }, true, 1<<10, 1<<20),
		limit("error_bytes", "bytes of a fail's error; it is cut there", func(l *Limits) *int { return &l.ErrorBytes }, true, 64, 16<<10),
		limit("depth", "levels of nested JSON", func(l *Limits) *int { return &l.Depth }, false, 2, 64),
		limit("items", "tasks or operations of one request", func(l *Limits) *int { return &l.Items }, false, 1, 1_000),
		limit("connections", "connections open to the API", func(l *Limits) *int { return &l.Connections }, false, 1, 1<<20),
		limit("connections_per_address", "connections from one address that have shown no valid key", func(l *Limits) *int { return &l.ConnectionsPerAddress }, false, 1, 1<<20),
		limit("waiting_claims", "claims that wait at the leader for a task", func(l *Limits) *int { return &l.WaitingClaims }, false, 1, 1<<20),
		limit("in_flight", "commands queued at the leader for the log", func(l *Limits) *int { return &l.InFlight }, false, 1, 1<<20),
	}
}

// AddServerFlags defines a flag for each setting of Server except keys, with the defaults of DefaultServer.
func AddServerFlags(fs *pflag.FlagSet) {
	defaults := DefaultServer()
	for _, d := range settings() {
		v := d.value(&defaults)
		f := fs.VarPF(v, d.flag(), "", d.usage)
		if v.Type() == "bool" {
			f.NoOptDefVal = "true"
		}
		f.Hidden = d.hidden
	}
}

func find(all []setting, name string) *setting {
	i := slices.IndexFunc(all, func(d setting) bool { return d.name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// unknown says that there is no setting of that name, and which was probably meant.
func unknown(what, name string, known []string) string {
	said := fmt.Sprintf("unknown %s %q", what, name)
	if near := nearest(name, known); near != "" {
		said += fmt.Sprintf("; did you mean %q?", near)
	}
	return said
}

// nearest returns the element of known that name is probably a misspelling of, or "": at most two letters, and a
// third of the name, may be wrong, missing, extra or swapped.
func nearest(name string, known []string) string {
	best, least := "", min(2, len(name)/3)+1
	for _, k := range known {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distanceBytesMax bounds the names that are compared, because a longer one is not a misspelling.
const distanceBytesMax = 64

// distance returns how many bytes must be inserted, removed, changed, or swapped with the next one to turn a into b.
func distance(a, b string) int {
	if len(a) > distanceBytesMax || len(b) > distanceBytesMax {
		return distanceBytesMax
	}
	// rows[i%3][j] is the distance of a's first i bytes to b's first j.
	var rows [3][distanceBytesMax + 1]int
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, above, above2 := &rows[i%3], &rows[(i+2)%3], &rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := above[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(above[j]+1, row[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], above2[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}
