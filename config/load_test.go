package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/claimq/claimq/config"
)

func load(t *testing.T, file string, environ []string, args ...string) (config.Server, error) {
	t.Helper()
	loaded, err := loadWhole(t, file, environ, args...)
	return loaded.Server, err
}

// loadWhole is load, but also returns origins and warnings.
func loadWhole(t *testing.T, file string, environ []string, args ...string) (config.Loaded, error) {
	t.Helper()
	path := ""
	if file != "" {
		path = filepath.Join(t.TempDir(), "claimq.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fs := pflag.NewFlagSet("server", pflag.ContinueOnError)
	config.AddServerFlags(fs)
	fs.String("config", "", "a flag that is no setting")
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return config.LoadServer(path, environ, fs)
}

// A flag overrides a variable, a variable overrides the file, the file overrides the default.
func TestLoadServer_Precedence(t *testing.T) {
	t.Parallel()
	file := "node_id: file\ndata_dir: /file\nhttp_addr: 127.0.0.1:1\nlog_level: warn\ntrail_bytes: 1048576\ntrail_age: 1h\n"
	environ := []string{
		"CLAIMQ_NODE_ID=env", "CLAIMQ_DATA_DIR=/env", "CLAIMQ_ENDPOINTS=http://127.0.0.1:9", "PATH=/bin",
		"CLAIMQ_INITIAL_CLUSTER=flag=127.0.0.1:7401,b=127.0.0.1:2", "CLAIMQ_JOIN_KEY_FILE=/key", "CLAIMQ_MEMORY_LIMIT=12345",
		"CLAIMQ_TRAIL_AGE=90m", "CLAIMQ_AUDIT_FILE=/audit",
	}
	got, err := load(t, file, environ, "--node-id", "flag")
	if err != nil {
		t.Fatal(err)
	}
	want := config.DefaultServer()
	want.NodeID = "flag"
	want.DataDir = "/env"
	want.HTTPAddr = "127.0.0.1:1"
	want.LogLevel = "warn"
	want.InitialCluster = []string{"flag=127.0.0.1:7401", "b=127.0.0.1:2"}
	want.JoinKeyFile = "/key"
	want.MemoryLimit = 12345
	want.TrailAge = 90 * time.Minute
	want.AuditFile = "/audit"
	want.TrailBytes = 1 << 20
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("configuration (-want +got):\n%s", d)
	}
}

// Each mistake is refused with a text that names the setting.
func TestLoadServer_Mistakes(t *testing.T) {
	t.Parallel()
	good := []string{"--node-id", "n1", "--data-dir", "d"}
	if _, err := load(t, "", nil, good...); err != nil {
		t.Fatalf("the good configuration is refused: %v", err)
	}
	for _, tc := range []struct {
		name string
		file string
		env  []string
		args []string
		want string
	}{
		{name: "unknown key in the file", file: "nod_id: x\n", want: `unknown setting "nod_id"`},
		{name: "file is no YAML", file: "{", want: "read config file"},
		{name: "wrong type in the file", file: "snapshot_log_bytes: [1]\n", want: "snapshot_log_bytes"},
		{name: "wrong type in a variable", env: []string{"CLAIMQ_MEMORY_LIMIT=much"}, want: "memory_limit"},
		{name: "no node id", args: []string{"--node-id", ""}, want: "node_id"},
		{name: "node id with a slash", args: []string{"--node-id", "a/b"}, want: "node_id"},
		{name: "no data folder", args: []string{"--data-dir", ""}, want: "data_dir"},
		{name: "address without a port", args: []string{"--http-addr", "127.0.0.1"}, want: "http_addr"},
		{name: "API beyond loopback", args: []string{"--http-addr", "10.0.0.1:7400"}, want: "--insecure"},
		{name: "peers beyond loopback", args: []string{"--peer-addr", ":7401"}, want: "--insecure"},
		{name: "unspecified address, nothing advertised", args: []string{"--insecure", "--peer-addr", "0.0.0.0:7401"}, want: "peer_advertise"},
		{name: "advertised address without a port", args: []string{"--http-advertise", "box"}, want: "http_advertise"},
		{name: "two ways to start", args: []string{"--bootstrap", "--join", "127.0.0.1:1"}, want: "only one"},
		{name: "join without a key", args: []string{"--join", "127.0.0.1:1"}, want: "join_key_file"},
		{name: "several nodes without a key", args: []string{"--initial-cluster", "n1=127.0.0.1:1,n2=127.0.0.1:2"}, want: "join_key_file"},
		{name: "a port that is no number", args: []string{"--http-addr", "127.0.0.1:abc"}, want: `http_addr is "127.0.0.1:abc": it must be host:port, with a port from 1 to 65535`},
		{name: "a port that is too large", args: []string{"--peer-addr", "127.0.0.1:65536"}, want: "peer_addr is"},
		{name: "an empty port", args: []string{"--health-addr", "127.0.0.1:"}, want: "health_addr is"},
		{name: "an advertised port that is no number", args: []string{"--http-advertise", "box:abc"}, want: `http_advertise is "box:abc": it must be host:port, with a port from 1 to 65535`},
		{name: "an advertised port 0", args: []string{"--peer-advertise", "box:0"}, want: "peer_advertise is"},
		{name: "a join at a port that is no number", args: []string{"--insecure", "--join", "box:abc"}, want: `join has "box:abc": each element must be HOST:PEERPORT, with a port from 1 to 65535`},
		{name: "a list with a port that is too large", args: []string{"--initial-cluster", "n1=box:70000"}, want: "NODE_ID=HOST:PEERPORT, with a port from 1 to 65535"},
		{name: "one address for clients and nodes", args: []string{"--peer-addr", "127.0.0.1:7400"}, want: `http_addr and peer_addr are both "127.0.0.1:7400"`},
		{name: "one address for nodes and probes", args: []string{"--health-addr", "127.0.0.1:7401"}, want: `peer_addr and health_addr are both "127.0.0.1:7401"`},
		{name: "a number that is too large", file: "limits: {items: 99999999999999999999}\n", want: `limits.items is "99999999999999999999": it must be from 1 to 1000`},
		{name: "bytes that are too many", env: []string{"CLAIMQ_MEMORY_LIMIT=99999999999999999999"}, want: "it is more bytes than there can be"},
		{name: "malformed list", args: []string{"--initial-cluster", "n1"}, want: "NODE_ID=HOST:PEERPORT"},
		{name: "a node twice", args: []string{"--initial-cluster", "n1=127.0.0.1:1,n1=127.0.0.1:2"}, want: "twice"},
		{name: "a list without this node", args: []string{"--initial-cluster", "n2=127.0.0.1:1"}, want: "does not name this node"},
		{name: "negative memory", args: []string{"--memory-limit", "-1"}, want: "memory_limit"},
		{name: "snapshots all the time", args: []string{"--snapshot-log-bytes", "1"}, want: "snapshot_log_bytes"},
		{name: "a tiny trail", args: []string{"--trail-bytes", "1000"}, want: "trail_bytes"},
		{name: "a huge trail", args: []string{"--trail-bytes", "99000000000"}, want: "trail_bytes"},
		{name: "a trail of a second", file: "trail_age: 1s\n", want: "trail_age"},
		{name: "an age without a unit", env: []string{"CLAIMQ_TRAIL_AGE=1"}, want: "trail_age"},
		{name: "unknown log level", args: []string{"--log-level", "loud"}, want: "log_level"},
		{name: "an unknown key with a near one", file: "nod_id: x\n", want: `did you mean "node_id"?`},
		{name: "an unknown key below a level", file: "http_tls: {cert_fil: x}\n", want: `did you mean "http_tls.cert_file"?`},
		{name: "an unknown level", file: "limit: {depth: 3}\n", want: `did you mean "limits"?`},
		{name: "an unknown key far from all", file: "colour: red\n", want: `unknown setting "colour"`},
		{name: "the line of a mistake", file: "log_level: info\n\nlimits:\n  depth: deep\n", want: "claimq.yaml:4: limits.depth"},
		{name: "a key twice", file: "log_level: info\nlog_level: warn\n", want: "log_level is there twice"},
		{name: "a level that is a value", file: "limits: 3\n", want: "limits must be a mapping"},
		{name: "a value that is a list", file: "node_id: [a, b]\n", want: "node_id must be one value"},
		{name: "a value that is a mapping", file: "join: {a: b}\n", want: "join must be a list"},
		{name: "a list of lists", file: "join: [[a]]\n", want: "each element of join"},
		{name: "two documents", file: "log_level: info\n---\nlog_level: info\n", want: "one YAML document"},
		{name: "a file that is a list", file: "- node_id\n", want: "a mapping of settings"},
		{name: "keys in a variable", env: []string{"CLAIMQ_KEYS=x"}, want: "CLAIMQ_KEYS_FILE"},
		{name: "a size in letters", env: []string{"CLAIMQ_MEMORY_LIMIT=4gigs"}, want: "256MiB"},
		{name: "a size beyond all", env: []string{"CLAIMQ_MEMORY_LIMIT=9999999999TiB"}, want: "memory_limit"},
		{name: "a switch that is no switch", file: "insecure: perhaps\n", want: "insecure is \"perhaps\": it must be true or false"},
		{name: "a count in words", env: []string{"CLAIMQ_LIMITS__ITEMS=many"}, want: "limits.items"},
		{name: "a body above the bound", args: []string{"--limits-body-bytes", "9MiB"}, want: "limits.body_bytes is 9MiB: it must be from 1KiB to 8MiB"},
		{name: "no connections", args: []string{"--limits-connections", "0"}, want: "limits.connections"},
		{name: "a negative reserve", args: []string{"--disk-free-min", "-1"}, want: "disk_free_min"},
		{name: "an unknown log format", args: []string{"--log-format", "xml"}, want: "log_format"},
		{name: "a certificate without its key", args: []string{"--http-tls-cert-file", "c"}, want: "http_tls"},
		{name: "client authorities alone", args: []string{"--http-tls-client-ca-file", "c"}, want: "http_tls.client_ca_file"},
		{name: "two of three for peers", args: []string{"--peer-tls-cert-file", "c", "--peer-tls-key-file", "k"}, want: "all three or none"},
		{name: "a mode of peers' TLS without it", args: []string{"--peer-tls-mode", "prefer"}, want: `peer_tls.mode is "prefer": it goes with`},
		{name: "a mode that is none", args: []string{"--peer-tls-mode", "off"}, want: `peer_tls.mode is "off": it must be required, prefer or accept`},
		{name: "TLS for peers that is not required, and no join key", args: []string{"--peer-tls-mode", "accept", "--peer-tls-cert-file", "c", "--peer-tls-key-file", "k", "--peer-tls-ca-file", "a", "--peer-addr", "10.0.0.1:7401"}, want: "peer_addr is"},
		{name: "an origin with a path", args: []string{"--allowed-origins", "https://a.example/"}, want: "allowed_origins"},
		{name: "any origin", args: []string{"--allowed-origins", "*"}, want: "allowed_origins"},
		{name: "an origin without a scheme", args: []string{"--allowed-origins", "a.example"}, want: "allowed_origins"},
		{name: "an address to join without a port", args: []string{"--join", "box"}, want: "join has"},
		{name: "a keys_file that is not there", args: []string{"--keys-file", "/does/not/exist"}, want: "keys_file"},
		{name: "backups without a time", file: "backup: {to: /b}\n", want: "backup.to and backup.command go with backup.every"},
		{name: "backups to nowhere", file: "backup: {every: 1h}\n", want: `backup.to is "": it must be the absolute path of a folder`},
		{name: "backups to a relative folder", file: "backup: {every: 1h, to: b}\n", want: `backup.to is "b": it must be`},
		{name: "backups by a name", file: "backup: {every: 1h, to: /b, command: sh}\n", want: `backup.command is "sh": it must be an absolute path`},
		{name: "backups by a command line", file: "backup: {every: 1h, to: /b, command: /bin/sh -c x}\n", want: "backup.command: stat /bin/sh -c x"},
		{name: "backups by a folder", file: "backup: {every: 1h, to: /b, command: /}\n", want: `backup.command is "/": it must be an executable file`},
		{name: "backups without a log", file: "backup: {every: 1h, to: /b}\nno_raft: true\n", want: "no_raft does not go with backup.every"},
		{name: "backups each second", file: "backup: {every: 1s, to: /b}\n", want: "backup.every is 1s: it must be 0 (none) or from 1m to 8784h"},
		{name: "a key without a name", file: keys("{role: reader, key_sha256: HASH}"), want: "name must be"},
		{name: "a key's unknown role", file: keys("{name: a, role: boss, key_sha256: HASH}"), want: "reader, producer, worker or operator"},
		{name: "a key's unknown role of several", file: keys("{name: a, roles: [reader, boss], key_sha256: HASH}"), want: `its role is "boss"`},
		{name: "a key's role twice", file: keys("{name: a, roles: [reader, reader], key_sha256: HASH}"), want: `its roles have "reader" twice`},
		{name: "a key's roles beside its role", file: keys("{name: a, role: reader, roles: [worker], key_sha256: HASH}"), want: "it has role and roles: give one of them"},
		{name: "a key without any of its roles", file: keys("{name: a, roles: [], key_sha256: HASH}"), want: "roles has none"},
		{name: "a key's roles as one", file: keys("{name: a, roles: reader, key_sha256: HASH}"), want: "roles of a key is of the wrong kind"},
		{name: "a key in place of its hash", file: keys("{name: a, role: reader, key_sha256: secret}"), want: "never the key itself"},
		{name: "a key's unknown field", file: keys("{name: a, role: reader, key_sha25: HASH}"), want: `did you mean "key_sha256"?`},
		{name: "a key's negative rate", file: keys("{name: a, role: reader, key_sha256: HASH, rate_limit_per_minute: -1}"), want: "rate_limit_per_minute"},
		{name: "a key's rate in words", file: keys("{name: a, role: reader, key_sha256: HASH, rate_limit_per_minute: few}"), want: "whole number"},
		{name: "a key's malformed type", file: keys("{name: a, role: reader, key_sha256: HASH, task_types: [a/b]}"), want: "task_types"},
		{name: "a key's types as one", file: keys("{name: a, role: reader, key_sha256: HASH, task_types: mail}"), want: "task_types of a key is of the wrong kind"},
		{name: "a key for none of the types", file: keys("{name: a, role: reader, key_sha256: HASH, task_types: []}"), want: "task_types has none: leave it out"},
		{name: "a key from none of the addresses", file: keys("{name: a, role: reader, key_sha256: HASH, addresses: []}"), want: "addresses has none: leave it out"},
		{name: "a key's expiry in words", file: keys("{name: a, role: reader, key_sha256: HASH, expires_at: tomorrow}"), want: `expires_at is "tomorrow": it must be a time of RFC 3339`},
		{name: "a key's expiry without a zone", file: keys("{name: a, role: reader, key_sha256: HASH, expires_at: 2027-01-31T12:00:00}"), want: "RFC 3339"},
		{name: "a key's expiry as a list", file: keys("{name: a, role: reader, key_sha256: HASH, expires_at: []}"), want: "expires_at of a key is of the wrong kind"},
		{name: "a key's address that is a name", file: keys("{name: a, role: reader, key_sha256: HASH, addresses: [localhost]}"), want: `addresses[0] "localhost" is no address`},
		{name: "a key's address with a zone", file: keys("{name: a, role: reader, key_sha256: HASH, addresses: ['::1', 'fe80::1%eth0']}"), want: "addresses[1]"},
		{name: "a key's prefix without a length", file: keys("{name: a, role: reader, key_sha256: HASH, addresses: [10.0.0.0/]}"), want: "is no prefix"},
		{name: "a key's prefix that is too long", file: keys("{name: a, role: reader, key_sha256: HASH, addresses: [10.0.0.0/33]}"), want: "is no prefix"},
		{name: "a key's prefix with bits behind it", file: keys("{name: a, role: reader, key_sha256: HASH, addresses: [10.1.0.0/8]}"), want: "10.0.0.0/8 is probably meant"},
		{name: "a key's prefix of IPv4 as IPv6", file: keys("{name: a, role: reader, key_sha256: HASH, addresses: ['::ffff:10.0.0.0/104']}"), want: "write it as 10.0.0.0/8"},
		{name: "a key's addresses as one", file: keys("{name: a, role: reader, key_sha256: HASH, addresses: 10.0.0.1}"), want: "addresses of a key is of the wrong kind"},
		{name: "too many addresses of a key", file: keys("{name: a, role: reader, key_sha256: HASH, addresses: [" + strings.Repeat("10.0.0.1, ", 64) + "10.0.0.1]}"), want: "it has 65 addresses: it may have 64"},
		{name: "two keys of a name", file: keys("{name: a, role: reader, key_sha256: HASH}", "{name: a, role: reader, key_sha256: OTHER}"), want: "there twice"},
		{name: "two keys of a hash", file: keys("{name: a, role: reader, key_sha256: HASH}", "{name: b, role: reader, key_sha256: HASH}"), want: `also that of "a"`},
		{name: "a key that is a text", file: keys("a"), want: "a key must be a mapping"},
		{name: "keys that are a text", file: "keys: a\n", want: "keys must be a list"},
		{name: "an issuer over plain HTTP", file: tokens("issuer: http://login.example.org"), want: "oidc.issuer is"},
		{name: "an issuer with a query", file: tokens("issuer: 'https://login.example.org/?a'"), want: "oidc.issuer is"},
		{name: "an issuer without a scheme", file: tokens("issuer: login.example.org"), want: "oidc.issuer is"},
		{name: "an audience without an issuer", file: "oidc: {audience: a}\n", want: "oidc.issuer is not set"},
		{name: "roles without an issuer", file: "oidc: {roles: [{group: a, role: reader}]}\n", want: "oidc.issuer is not set"},
		{name: "an issuer without an audience", file: tokens("audience: ''"), want: "oidc.audience is not set"},
		{name: "tokens with a secret", file: tokens("algorithms: [RS256, HS256]"), want: `oidc.algorithms has "HS256"`},
		{name: "tokens that are not signed", file: tokens("algorithms: [none]"), want: `oidc.algorithms has "none"`},
		{name: "no algorithm", file: tokens("algorithms: []"), want: "oidc.algorithms has none"},
		{name: "no claim with groups", file: tokens("groups_claim: ''"), want: "oidc.groups_claim"},
		{name: "clocks of another hour", file: tokens("leeway: 1h"), want: "oidc.leeway is 1h: it must be from 0 to 5m"},
		{name: "tokens for an instant", file: tokens("lifetime_max: 1s"), want: "oidc.lifetime_max is 1s: it must be 0 (no bound) or from 1m to 8760h"},
		{name: "a lifetime without a unit", file: tokens("lifetime_max: 1"), want: "it must be a duration"},
		{name: "roles of tokens that are one", file: tokens("roles: operator"), want: "oidc.roles must be a list"},
		{name: "a role of tokens that is a text", file: tokens("roles: [operator]"), want: "each of oidc.roles must be a mapping"},
		{name: "a role of tokens without a group", file: tokens("roles: [{role: reader}]"), want: "its group must be"},
		{name: "a role of tokens that is unknown", file: tokens("roles: [{group: a, role: boss}]"), want: `oidc.roles: role 1 (group "a"): its role is "boss"`},
		{name: "a role of tokens with a key's field", file: tokens("roles: [{group: a, role: reader, key_sha256: x}]"), want: "key_sha256"},
		{name: "a role of tokens for none of the types", file: tokens("roles: [{group: a, role: reader, task_types: []}]"), want: "task_types has none: leave it out"},
		{name: "a role of tokens with types as one", file: tokens("roles: [{group: a, role: reader, task_types: x}]"), want: "task_types of oidc.roles is of the wrong kind"},
		{name: "roles of tokens in a variable", env: []string{"CLAIMQ_OIDC__ROLES=x"}, want: "in the configuration file alone"},
		{name: "no raft but a cluster", args: []string{"--no-raft", "--bootstrap"}, want: "no_raft"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, tc.file, tc.env, append(append([]string{}, good...), tc.args...)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want it to say %q", err, tc.want)
			}
		})
	}
}

// keys formats a list of keys for a file. HASH and OTHER stand for two hashes.
func keys(each ...string) string {
	list := "keys:\n  - " + strings.Join(each, "\n  - ") + "\n"
	return strings.NewReplacer("HASH", strings.Repeat("0a", 32), "OTHER", strings.Repeat("0b", 32)).Replace(list)
}

// tokens formats settings of an issuer for a file; change replaces one of them.
func tokens(change string) string {
	settings := map[string]string{"issuer": "https://login.example.org", "audience": "a", "roles": "[{group: a, role: reader}]"}
	name, value, _ := strings.Cut(change, ": ")
	settings[name] = value
	var text strings.Builder
	text.WriteString("oidc:\n")
	for name, value := range settings {
		text.WriteString("  " + name + ": " + value + "\n")
	}
	return text.String()
}

// An issuer can replace keys beyond loopback; one without roles causes a warning.
func TestLoadServer_OIDC(t *testing.T) {
	t.Parallel()
	const file = "node_id: n1\ndata_dir: d\nhttp_addr: 10.0.0.1:7400\n"
	got, err := loadWhole(t, file+tokens("roles: [{group: a, role: operator, task_types: [mail], addresses: [10.0.0.0/8]}, {group: b c, roles: [reader, worker], rate_limit_per_minute: 0}]"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, s := range got.Show() {
		if s.Name == "oidc.roles" {
			lines = s.Lines
		}
	}
	want := []string{"a (operator, the standard rate, types mail, from 10.0.0.0/8)", "b c (reader and worker, no rate limit, all types)"}
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "tokens travel in the clear") {
		t.Errorf("%q", got.Warnings)
	}
	got, err = loadWhole(t, file+tokens("roles: []"), nil)
	if err != nil || len(got.Warnings) != 2 || !strings.Contains(got.Warnings[1], "oidc.roles has none") {
		t.Errorf("%q, %v", got.Warnings, err)
	}
}

// All mistakes are reported together: in the file, in variables, in the result.
func TestLoadServer_AllMistakes(t *testing.T) {
	t.Parallel()
	_, err := load(t, "nod_id: x\nlog_level: loud\n", []string{"CLAIMQ_INSECURE=perhaps"}, "--limits-depth", "1", "--http-addr", "x", "--bootstrap", "--join", "127.0.0.1:1")
	if err == nil {
		t.Fatal("nothing is refused")
	}
	for _, want := range []string{"nod_id", "CLAIMQ_INSECURE", "node_id is", "data_dir", "log_level", "limits.depth", "http_addr", "only one", "join_key_file"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error says nothing of %s:\n%v", want, err)
		}
	}
}

// A node may listen beyond loopback if each port is protected.
func TestLoadServer_BeyondLoopback(t *testing.T) {
	t.Parallel()
	const file = "node_id: n1\ndata_dir: d\nhttp_addr: 10.0.0.1:7400\npeer_addr: 10.0.0.1:7401\n"
	someKeys := keys("{name: a, role: reader, key_sha256: HASH}")
	for _, tc := range []struct {
		name, file string
		refused    []string // settings named in the error
		warnings   int
	}{
		{"nothing", "", []string{"http_addr", "peer_addr"}, 0},
		{"keys", someKeys, []string{"peer_addr"}, 0},
		{"a join key", "join_key_file: k\n", []string{"http_addr"}, 0},
		{"both", someKeys + "join_key_file: k\n", nil, 2},
		{"TLS for peers", someKeys + "peer_tls: {cert_file: c, key_file: k, ca_file: a}\n", nil, 1},
		{"TLS for peers that is not required", someKeys + "join_key_file: k\npeer_tls: {cert_file: c, key_file: k, ca_file: a, mode: prefer}\n", nil, 2},
		{"TLS for both", someKeys + "peer_tls: {cert_file: c, key_file: k, ca_file: a}\nhttp_tls: {cert_file: c, key_file: k}\n", nil, 0},
		{"TLS without keys", "join_key_file: k\nhttp_tls: {cert_file: c, key_file: k}\n", []string{"http_addr"}, 0},
		{"insecure", "insecure: true\n", nil, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "claimq.yaml")
			if err := os.WriteFile(path, []byte(file+tc.file), 0o600); err != nil {
				t.Fatal(err)
			}
			loaded, err := config.LoadServer(path, nil, pflag.NewFlagSet("", pflag.ContinueOnError))
			for _, name := range []string{"http_addr", "peer_addr"} {
				if got, want := err != nil && strings.Contains(err.Error(), name+" is"), slices.Contains(tc.refused, name); got != want {
					t.Errorf("%s is refused: %t, want %t: %v", name, got, want, err)
				}
			}
			if err == nil && len(loaded.Warnings) != tc.warnings {
				t.Errorf("warnings are %q, want %d", loaded.Warnings, tc.warnings)
			}
		})
	}
}

// A misspelled variable causes a warning. Variables that are set, used by others, or unlike all settings do not.
func TestMisspelledVariables(t *testing.T) {
	t.Parallel()
	environ := []string{"CLAIMQ_NODEID=a", "CLAIMQ_NODE_ID=b", "CLAIMQ_KEY_FILE=c", "CLAIMQ_HTTP_TLS_CERT_FILE=d", "CLAIMQ_WORKER=e", "NODE_IDD=f"}
	got := config.MisspelledVariables(environ, []string{"CLAIMQ_KEY_FILE"})
	if len(got) != 2 || !strings.Contains(got[0], "mean CLAIMQ_NODE_ID?") || !strings.Contains(got[1], "mean CLAIMQ_HTTP_TLS__CERT_FILE?") {
		t.Errorf("warnings are %q", got)
	}
}

// Keys come from both files, and their hashes are not shown in full.
func TestLoadServer_KeysOfBothFiles(t *testing.T) {
	t.Parallel()
	more := filepath.Join(t.TempDir(), "keys.yaml")
	if err := os.WriteFile(more, []byte(keys("{name: b, role: worker, key_sha256: OTHER, rate_limit_per_minute: 0, task_types: [mail]}")), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "claimq.yaml")
	file := "node_id: n1\ndata_dir: d\nkeys_file: " + more + "\n" + keys("{name: a, role: reader, key_sha256: HASH}")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.LoadServer(path, nil, pflag.NewFlagSet("", pflag.ContinueOnError))
	if err != nil {
		t.Fatal(err)
	}
	none := int64(0)
	want := []config.Key{
		{Name: "a", Role: "reader", KeySHA256: strings.Repeat("0a", 32)},
		{Name: "b", Role: "worker", KeySHA256: strings.Repeat("0b", 32), RateLimitPerMinute: &none, TaskTypes: []string{"mail"}},
	}
	if d := cmp.Diff(want, loaded.Keys); d != "" {
		t.Errorf("keys (-want +got):\n%s", d)
	}
	shown := loaded.Show()
	got := shown[len(shown)-1]
	if got.Name != "keys" || got.Origin.String() != "file "+path+", "+more || strings.Contains(strings.Join(got.Lines, " "), "0a0a0a0a0") {
		t.Errorf("keys are shown as %+v", got)
	}
}

func TestReadJoinKeys(t *testing.T) {
	t.Parallel()
	first, second := strings.Repeat("f", 32), strings.Repeat("s", 1024)
	read := func(content string) ([][]byte, error) {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return config.ReadJoinKeys(path)
	}
	for content, want := range map[string][]string{
		first:                              {first},
		first + "\n":                       {first},
		"# of 2026\r\n " + first + " \r\n": {first},
		"\n" + first + "\n\n# and\n" + second + "\n":     {first, second},
		first + "\n" + second + "\nnone\n" + first + "2": {first, second, "", first + "2"},
		"none":                {""},
		"none\n" + first + "": {"", first},
	} {
		got, err := read(content)
		var texts []string
		for _, key := range got {
			texts = append(texts, string(key))
		}
		if err != nil || !slices.Equal(texts, want) {
			t.Errorf("%q: keys are %q, %v", content, texts, err)
		}
	}
	if got, err := config.ReadJoinKeys(""); got != nil || err != nil {
		t.Errorf("without a file the keys are %q, %v", got, err)
	}
	for content, want := range map[string]string{
		"":                     "it must have a line of at least 32",
		"# " + first:           "it must have a line of at least 32",
		first + "\nshort":      "line 2 has 5 characters: a key has from 32 to 1024, and the word none stands for no key",
		second + "s":           "line 1 has 1025 characters",
		first + "\n\n" + first: "lines 1 and 3 are the same",
		"none\nnone":           "lines 1 and 2 are the same",
		"none\n" + strings.Join([]string{first + "1", first + "2", first + "3", first + "4"}, "\n"): "more than 4 keys",
		strings.Repeat("#\n", 64<<10): "larger than 65536 bytes",
	} {
		_, err := read(content)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), first) || strings.Contains(err.Error(), "short") {
			t.Errorf("%.60q: got %v, want %q", content, err, want)
		}
	}
	if _, err := config.ReadJoinKeys("/does/not/exist"); err == nil {
		t.Error("a file that is not there is read")
	}
}
