package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/claimq/claimq/config"
)

// documented is a row of a table of docs/configuration.md.
type documented struct{ Default, Allowed string }

func readDocumented(t *testing.T) (page string, rows map[string]documented) {
	t.Helper()
	content, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows = make(map[string]documented)
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| (.+?) \\| (.+?) \\| .+ \\|$").FindAllStringSubmatch(string(content), -1) {
		if _, ok := rows[m[1]]; ok {
			t.Errorf("%s has two rows", m[1])
		}
		def := strings.Trim(m[2], "`")
		if def == "none" {
			def = ""
		}
		rows[m[1]] = documented{def, m[3]}
	}
	return string(content), rows
}

// The page has every setting and no other, with its default and valid values.
func TestDocumented(t *testing.T) {
	t.Parallel()
	_, got := readDocumented(t)
	want := make(map[string]documented)
	defaults := config.Loaded{Server: config.DefaultServer()}
	for _, s := range defaults.Show() {
		want[s.Name] = documented{strings.Join(s.Lines, ";"), s.Allowed}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("docs/configuration.md (-code +page):\n%s", d)
	}
}

// Each setting has a flag with its default, except keys and oidc.roles.
func TestDocumented_Flags(t *testing.T) {
	t.Parallel()
	_, rows := readDocumented(t)
	fs := pflag.NewFlagSet("server", pflag.ContinueOnError)
	config.AddServerFlags(fs)
	for name, row := range rows {
		f := fs.Lookup(strings.NewReplacer("_", "-", ".", "-").Replace(name))
		switch {
		case name == "keys", name == "oidc.roles":
			if f != nil {
				t.Errorf("%s has a flag", name)
			}
		case f == nil:
			t.Errorf("%s has no flag", name)
		case f.DefValue != row.Default:
			t.Errorf("--%s defaults to %q, the page says %q", f.Name, f.DefValue, row.Default)
		}
	}
}

// The files shown on the page are valid.
func TestDocumented_Examples(t *testing.T) {
	t.Parallel()
	page, _ := readDocumented(t)
	examples := regexp.MustCompile("(?s)```yaml\n(.+?)```").FindAllStringSubmatch(page, -1)
	if len(examples) != 3 {
		t.Fatalf("the page has %d examples, want 3", len(examples))
	}
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys.yaml")
	if err := os.WriteFile(keys, []byte(examples[1][1]), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := strings.ReplaceAll(examples[0][1], "/etc/claimq/keys.yaml", keys)
	got, err := load(t, whole+examples[2][1], nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Keys) != 1 || got.Keys[0].Name != "billing" || len(got.InitialCluster) != 3 || got.MemoryLimit != 4<<30 || len(got.OIDC.Roles) != 2 {
		t.Errorf("the examples set %+v", got)
	}
}

// Each setting, set in each of the three ways, is shown with that origin, so no two settings share a field.
func TestLoadServer_EverySetting(t *testing.T) {
	t.Parallel()
	_, rows := readDocumented(t)
	delete(rows, "keys")
	delete(rows, "oidc.roles")
	values := map[string]string{
		"bootstrap": "true", "insecure": "true", "log_level": "warn", "log_format": "json",
		"http_addr": "127.0.0.2:1", "peer_addr": "127.0.0.2:2", "http_advertise": "a:3", "peer_advertise": "a:4", "health_addr": "127.0.0.2:5", "drain_time": "21s",
		"join": "", "initial_cluster": "", "allowed_origins": "https://a,http://b:1", "memory_limit": "5", "disk_free_min": "6KiB",
		"snapshot_log_bytes": "7MiB", "trail_bytes": "8MiB", "trail_age": "9m", "limits.body_bytes": "10KiB", "limits.value_bytes": "11KiB",
		"limits.error_bytes": "120", "limits.depth": "13", "limits.items": "14", "limits.connections": "15", "limits.waiting_claims": "16",
		"limits.in_flight": "17", "peer_tls.mode": "prefer", "limits.connections_per_address": "18",
		"ui.enabled": "false", "ui.read_only": "true",
		"backup.every": "2h", "backup.to": "/backups", "backup.keep": "21", "backup.timeout": "22m", "backup.command": "/bin/sh",
		"sqs.enabled": "true", "sqs.url": "https://queues:1", "sqs.account": "123456789012", "sqs.region": "eu",
		"oidc.issuer": "https://login.example.org", "oidc.algorithms": "ES256,PS512", "oidc.leeway": "19s", "oidc.lifetime_max": "20m",
	}
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	if err := os.WriteFile(keys, []byte("keys: []"), 0o600); err != nil {
		t.Fatal(err)
	}
	values["keys_file"] = keys
	credentials := filepath.Join(filepath.Dir(keys), "credentials.yaml")
	if err := os.WriteFile(credentials, []byte("credentials: []"), 0o600); err != nil {
		t.Fatal(err)
	}
	values["sqs.credentials_file"] = credentials
	for name := range rows {
		if _, ok := values[name]; !ok {
			values[name] = strings.ReplaceAll(name, ".", "-") // a string
		}
	}
	for _, way := range []string{config.FromFlag, config.FromVariable, config.FromFile} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			loaded, err := loadAll(t, way, values)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range loaded.Show() {
				if value := values[s.Name]; value != "" && (strings.Join(s.Lines, ";") != value || s.Origin.From != way) {
					t.Errorf("%s is %q from %s, want %q", s.Name, s.Lines, s.Origin, value)
				}
			}
		})
	}
}

// loadAll sets values in one of the ways.
func loadAll(t *testing.T, way string, values map[string]string) (config.Loaded, error) {
	t.Helper()
	fs := pflag.NewFlagSet("server", pflag.ContinueOnError)
	config.AddServerFlags(fs)
	var environ []string
	tree := make(map[string]any)
	for name, value := range values {
		switch way {
		case config.FromFlag:
			if err := fs.Set(strings.NewReplacer("_", "-", ".", "-").Replace(name), value); err != nil {
				t.Fatal(err)
			}
		case config.FromVariable:
			environ = append(environ, "CLAIMQ_"+strings.ToUpper(strings.ReplaceAll(name, ".", "__"))+"="+value)
		case config.FromFile:
			level, below, nested := strings.Cut(name, ".")
			if !nested {
				tree[name] = value
				continue
			}
			if tree[level] == nil {
				tree[level] = make(map[string]any)
			}
			tree[level].(map[string]any)[below] = value
		}
	}
	path := ""
	if way == config.FromFile {
		path = filepath.Join(t.TempDir(), "claimq.yaml")
		var file bytes.Buffer
		if err := yaml.NewEncoder(&file).Encode(tree); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config.LoadServer(path, environ, fs)
}
