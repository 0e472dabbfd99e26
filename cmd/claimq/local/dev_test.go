package local

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// A dev that fails to start removes an old leader.pid of a killed dev. By now that pid may belong to any process.
func TestRunDev_staleLeader(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o := devOptions{nodes: 1, dataDir: t.TempDir(), basePort: l.Addr().(*net.TCPAddr).Port}
	file := filepath.Join(o.dataDir, devLeaderFile)
	if err := os.WriteFile(file, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := runDev(t.Context(), &term.App{Stdout: io.Discard}, o); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("leader.pid is still there: %v", err)
	}
}

// A cluster is not ready without a node that has ended, even if another process answers at the node's address.
func TestLocalCluster_anotherAnswers(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer other.Close()
	n := &localNode{id: "n1", url: other.URL, logPath: filepath.Join(t.TempDir(), "n1.log")}
	c := &localCluster{binary: "/bin/false", nodes: []*localNode{n}, exits: make(chan *localNode, 1)}
	if err := c.start(n); err != nil {
		t.Fatal(err)
	}
	c.wg.Wait()
	if err := c.waitReady(t.Context()); err == nil || !strings.Contains(err.Error(), "node n1 ended while starting") {
		t.Errorf("it is ready with %v", err)
	}
}

// A node that ends is restarted at the next check, not at once. Otherwise a node that cannot start would be restarted
// without a pause.
func TestDevWatch_restarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := &localNode{id: "n1", logPath: filepath.Join(dir, "n1.log")}
	c := &localCluster{binary: "/bin/false", nodes: []*localNode{n}, exits: make(chan *localNode, 1)}
	defer c.stop()
	if err := c.start(n); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := devWatch{c: c, a: &term.App{Stdout: &out}, file: filepath.Join(dir, devLeaderFile), restart: true}
	for looks := range 3 {
		if err := w.ended(<-c.exits); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), "is started again"); got != looks {
			t.Fatalf("after %d looks it was started %d times again:\n%s", looks, got, out.String())
		}
		if err := w.startFallen(); err != nil {
			t.Fatal(err)
		}
	}
}
