package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/config"
	"github.com/claimq/claimq/internal/procs"
)

// If the keys are removed from the file while a node begins to start, it does not serve without keys. It was allowed
// to listen only because it had keys.
func TestRunServer_keysGone(t *testing.T) {
	t.Parallel()
	ports, release, err := procs.TakePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	data := t.TempDir()
	file := filepath.Join(t.TempDir(), "claimq.yaml")
	write := func(keys string) {
		t.Helper()
		text := fmt.Sprintf("node_id: n1\nbootstrap: true\ndata_dir: %s\nhttp_addr: 127.0.0.1:%d\npeer_addr: 127.0.0.1:%d\n%s", data, ports[0], ports[1], keys)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddServerFlags(flags)
	load := func() (config.Loaded, error) { return config.LoadServer(file, nil, flags) }
	write("keys: [{name: op, role: operator, key_sha256: " + strings.Repeat("0f", 32) + "}]\n")
	loaded, err := load()
	if err != nil {
		t.Fatal(err)
	}
	write("")
	a := &term.App{Stdout: io.Discard, Stderr: io.Discard}
	if err := run(t.Context(), a, loaded, load, defaultWaits()); !errors.Is(err, errKeysGone) {
		t.Errorf("%v, want %v", err, errKeysGone)
	}
}
