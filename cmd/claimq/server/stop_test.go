package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cmd/claimq/claimqtest"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/config"
	"github.com/claimq/claimq/internal/testwait"
	"github.com/claimq/claimq/internal/zones/zonestest"
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

func (s *stopAt) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.String()
}

// settings returns the configuration of a node n1 with a new folder, at the first two ports.
func settings(t *testing.T, ports []int, more ...string) (loaded config.Loaded, load func() (config.Loaded, error)) {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "join.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddServerFlags(flags)
	environ := append(more, "CLAIMQ_NODE_ID=n1", "CLAIMQ_DATA_DIR="+filepath.Join(dir, "data"), "CLAIMQ_JOIN_KEY_FILE="+key,
		fmt.Sprintf("CLAIMQ_HTTP_ADDR=127.0.0.1:%d", ports[0]), fmt.Sprintf("CLAIMQ_PEER_ADDR=127.0.0.1:%d", ports[1]))
	load = func() (config.Loaded, error) { return config.LoadServer("", environ, flags) }
	loaded, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return loaded, load
}

// Stopping a node that waits for the others is not a failure.
func TestRunServer_stoppedWhileItWaits(t *testing.T) {
	t.Parallel()
	ports := claimqtest.TakePorts(t, 3)
	loaded, load := settings(t, ports,
		fmt.Sprintf("CLAIMQ_INITIAL_CLUSTER=n1=127.0.0.1:%d,n2=127.0.0.1:%d", ports[1], ports[2]))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := &stopAt{text: "waiting for the other nodes", stop: stop}
	if err := run(ctx, &term.App{Stderr: log}, loaded, load, stopBound{stopMax, os.Exit}); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if got := log.String(); !strings.Contains(got, "stopped before the node had started") {
		t.Errorf("it logged\n%s", got)
	}
}

// A stop ends in time with a status and a log line that says why, even if a file of the node hangs.
func TestRunServer_stopsThoughAFileHangs(t *testing.T) {
	t.Parallel()
	zones := filepath.Join(t.TempDir(), "zones.zip")
	zonestest.Write(t, zones, "2027a", zonestest.Always(0))
	loaded, load := settings(t, claimqtest.TakePorts(t, 2), "CLAIMQ_BOOTSTRAP=true", "CLAIMQ_DRAIN_TIME=0s", "CLAIMQ_ZONE_DATA_FILE="+zones)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	serving, exited, ended := make(chan struct{}), make(chan int, 1), make(chan error, 1)
	log := &stopAt{text: "serving:", stop: sync.OnceFunc(func() { close(serving) })}
	go func() {
		ended <- run(ctx, &term.App{Stderr: log}, loaded, load, stopBound{100 * time.Millisecond, func(code int) { exited <- code }})
	}()
	select {
	case <-serving:
	case err := <-ended:
		t.Fatalf("it ended with %v", err)
	}
	if err := errors.Join(os.Remove(zones), syscall.Mkfifo(zones, 0o600), syscall.Kill(os.Getpid(), syscall.SIGHUP)); err != nil {
		t.Fatal(err)
	}
	var hangs *os.File // reads of it end only when it is closed
	testwait.Until(t, "the node to read the file", func() (reads bool) {
		var err error
		hangs, err = os.OpenFile(zones, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	})
	stop()
	select {
	case code := <-exited:
		if got := log.String(); code != cluster.ExitFatal || !strings.Contains(got, "ending with the stop unfinished") {
			t.Errorf("exit code %d, and it logged\n%s", code, got)
		}
	case <-time.After(testwait.Patience):
		t.Error("the stop has no bound")
	}
	hangs.Close()
	<-ended
}
