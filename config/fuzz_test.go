package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/claimq/claimq/config"
)

// Any file is either refused or read; what is read is valid, and is shown without whole hashes.
func FuzzLoadServer(f *testing.F) {
	for _, seed := range []string{
		"", "# nothing\n", "---\n", "null", "- a\n", "{", "node_id: n1\ndata_dir: d\n", "node_id: &a n1\ndata_dir: *a\n",
		"limits: &l {depth: *l}\n", "join: &j [*j]\n", "keys: &k [*k]\n", "limits: {depth: 3, depth: 4}\n", "? [a]\n: b\n", "1: 2\n", "<<: {node_id: a}\n",
		"node_id: n1\ndata_dir: d\n" + keys("{name: a, role: reader, key_sha256: HASH, rate_limit_per_minute: 1, task_types: [a]}"),
		"trail_age: 1h\nmemory_limit: 9223372036854775807TiB\ninsecure: yes\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		path := filepath.Join(t.TempDir(), "claimq.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		loaded, err := config.LoadServer(path, []string{"CLAIMQ_NODE_ID=n1", "CLAIMQ_DATA_DIR=d"}, pflag.NewFlagSet("", pflag.ContinueOnError))
		if err != nil {
			return
		}
		if err := loaded.Validate(); err != nil {
			t.Errorf("it is read but not valid: %v", err)
		}
		for _, s := range loaded.Show() {
			for i := range loaded.Keys {
				if strings.Contains(strings.Join(s.Lines, "\n"), loaded.Keys[i].KeySHA256) {
					t.Errorf("%s shows a key's hash", s.Name)
				}
			}
		}
	})
}
