package server

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/config"
)

// Every file with a secret is checked. One that others may read is reported once per mode. Files of keys have hashes
// alone: only one that others may write is reported.
func TestSecretFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hash := strings.Repeat("0f", 32)
	put := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // independent of the umask
			t.Fatal(err)
		}
		return path
	}
	file := put("claimq.yaml", "node_id: n1\nkeys: [{name: a, role: reader, key_sha256: "+hash+"}]\n", 0o644)
	keys := put("my keys.yaml", "keys: []\n", 0o664)
	open := []string{
		put("node.key", "", 0o604), put("join.key", "", 0o644), put("join.token", "", 0o660),
		put("http.key", "", 0o644), put("peer.key", "", 0o620),
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddServerFlags(flags)
	for name, value := range map[string]string{
		"data-dir": dir, "keys-file": keys, "join-key-file": open[1], "join-token-file": open[2],
		"http-tls-cert-file": put("http.crt", "", 0o644), "http-tls-key-file": open[3],
		"peer-tls-cert-file": put("peer.crt", "", 0o644), "peer-tls-key-file": open[4], "peer-tls-ca-file": put("ca.crt", "", 0o644),
	} {
		if err := flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	files := newSecretFiles(hclog.New(&hclog.LoggerOptions{Output: &log}))
	reload := func() (told string) {
		t.Helper()
		log.Reset()
		load := func() (config.Loaded, error) { return config.LoadServer(file, nil, flags) }
		if list, err := apiKeys(load, files)(); err != nil || door.CheckKeys(list) != nil {
			t.Fatal(err)
		}
		return log.String()
	}
	told := reload()
	for _, path := range open {
		if strings.Count(told, path) != 2 { // once as its name, once in the command
			t.Errorf("%s is not told once:\n%s", path, told)
		}
	}
	for _, want := range []string{
		`others may write a file with keys: file="` + keys + `" mode=0664 fix="chmod 0644 '` + keys + `'"`, `mode=0604 fix="chmod 0600 ` + open[0] + `"`,
	} {
		if !strings.Contains(told, want) {
			t.Errorf("nothing tells %s:\n%s", want, told)
		}
	}
	if strings.Contains(told, file) {
		t.Errorf("a file of hashes that others may read is told:\n%s", told)
	}
	if n := strings.Count(told, "others may read"); n != len(open) {
		t.Errorf("%d files are told, want %d:\n%s", n, len(open), told)
	}
	if told := reload(); told != "" {
		t.Errorf("told again: %s", told)
	}
	chmod := func(path string, mode fs.FileMode) {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	chmod(open[1], 0o664)
	if told := reload(); strings.Count(told, "others may read") != 1 || !strings.Contains(told, "mode=0664") {
		t.Errorf("another mode: %s", told)
	}
	chmod(open[1], 0o600)
	if told := reload(); told != "" {
		t.Errorf("a file that was closed: %s", told)
	}
	chmod(open[1], 0o664)
	if told := reload(); strings.Count(told, "others may read") != 1 {
		t.Errorf("a file that was opened again: %s", told)
	}
}
