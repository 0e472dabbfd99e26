package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/claimq/claimq/config"
)

func load(t *testing.T, file string, environ []string, args ...string) (config.Server, error) {
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
	loaded, err := config.LoadServer(path, environ, fs)
	return loaded.Server, err
}

// A flag beats a variable, a variable beats the file, the file beats the default.
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

// Each mistake is refused in words that name the setting.
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
		{name: "malformed list", args: []string{"--initial-cluster", "n1"}, want: "NODE_ID=HOST:PEERPORT"},
		{name: "a node twice", args: []string{"--initial-cluster", "n1=127.0.0.1:1,n1=127.0.0.1:2"}, want: "twice"},
		{name: "a list without this node", args: []string{"--initial-cluster", "n2=127.0.0.1:1"}, want: "does not name this node"},
		{name: "negative memory", args: []string{"--memory-limit", "-1"}, want: "memory_limit"},
		{name: "snapshots all the time", args: []string{"--snapshot-log-bytes", "1"}, want: "snapshot_log_bytes"},
		{name: "a tiny trail", args: []string{"--trail-bytes", "1000"}, want: "trail_bytes"},
		{name: "a huge trail", args: []string{"--trail-bytes", "99000000000"}, want: "trail_bytes"},
		{name: "a trail of a second", file: "trail_age: 1s\n", want: "trail_age"},
		{name: "an age without a unit", env: []string{"CLAIMQ_TRAIL_AGE=1"}, want: "trail_age"},
		{name: "unknown log store", args: []string{"--log-store", "paper"}, want: "log_store"},
		{name: "unknown log level", args: []string{"--log-level", "loud"}, want: "log_level"},
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

func TestReadJoinKey(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("s", 32)
	write := func(content string) string {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	got, err := config.ReadJoinKey(write(secret + "\n"))
	if err != nil || string(got) != secret {
		t.Errorf("key is %q, %v", got, err)
	}
	if got, err := config.ReadJoinKey(""); got != nil || err != nil {
		t.Errorf("without a file the key is %q, %v", got, err)
	}
	for _, bad := range []string{write("short"), write(secret + "\n" + secret), "/does/not/exist"} {
		if _, err := config.ReadJoinKey(bad); err == nil {
			t.Errorf("the key in %s is accepted", bad)
		}
	}
}
