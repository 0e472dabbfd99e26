package server

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/config"
	"github.com/claimq/claimq/jepsen/procs"
)

// stopAt is a log that ends the server when it gets a certain text.
type stopAt struct {
	text string
	stop context.CancelFunc
	mu   sync.Mutex
	said bytes.Buffer // guarded by mu
}

func (s *stopAt) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said.Write(p)
	if strings.Contains(s.said.String(), s.text) {
		s.stop()
	}
	return len(p), nil
}

// Stopping a node that waits for the others is not a failure.
func TestRunServer_stoppedWhileItWaits(t *testing.T) {
	t.Parallel()
	ports, release, err := procs.TakePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	dir := t.TempDir()
	key := filepath.Join(dir, "join.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddServerFlags(flags)
	environ := []string{
		"CLAIMQ_NODE_ID=n1", "CLAIMQ_DATA_DIR=" + filepath.Join(dir, "data"), "CLAIMQ_JOIN_KEY_FILE=" + key,
		fmt.Sprintf("CLAIMQ_HTTP_ADDR=127.0.0.1:%d", ports[0]), fmt.Sprintf("CLAIMQ_PEER_ADDR=127.0.0.1:%d", ports[1]),
		fmt.Sprintf("CLAIMQ_INITIAL_CLUSTER=n1=127.0.0.1:%d,n2=127.0.0.1:%d", ports[1], ports[2]),
	}
	load := func() (config.Loaded, error) { return config.LoadServer("", environ, flags) }
	loaded, err := load()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := &stopAt{text: "waiting for the other nodes", stop: stop}
	if err := run(ctx, &term.App{Stderr: log}, loaded, load); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if got := log.said.String(); !strings.Contains(got, "stopped before the node had started") {
		t.Errorf("it logged\n%s", got)
	}
}
