// Package redistest runs the programs of docs/from-redis.md, for the tests of the clients:
// those of queues on Redis, against a Redis, and their twins against a claimq in memory.
package redistest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/pause"
)

// patience bounds every wait.
const patience = 2 * time.Minute

// Program is one program of the page.
type Program struct {
	Text   string
	With   string // the library
	Worker string // the command of its worker
}

// block has the name of its file, the library and the worker in its first line.
var block = regexp.MustCompile("(?ms)^```\\w+\n((?:#|//) (\\S+), with (\\w+)\\. Its worker: (.*?)\n.*?)^```$")

// Programs returns those of the page that are called name, in its order, to run against the
// Redis at addr.
func Programs(t *testing.T, page, name, addr string) []Program {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var all []Program
	for _, m := range block.FindAllStringSubmatch(strings.ReplaceAll(string(text), "localhost:6379", addr), -1) {
		if m[2] == name {
			all = append(all, Program{Text: m[1], With: m[3], Worker: m[4]})
		}
	}
	return all
}

// SendsMail starts the worker in dir, and the producer; the worker must say that it sends the
// mail, and end well when it is told to.
func SendsMail(t *testing.T, p Program, dir string, env []string, producer string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "said")
	said, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	worker := exec.CommandContext(t.Context(), "sh", "-c", "exec "+p.Worker)
	worker.Dir, worker.Env, worker.Stdout, worker.Stderr = dir, env, said, said
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	submit := exec.CommandContext(t.Context(), "sh", "-c", "exec "+producer)
	submit.Dir, submit.Env = dir, env
	if out, err := submit.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", p.With, err, out)
	}
	if err := says(t.Context(), path, "mail to ada@example.org"); err != nil {
		t.Errorf("the worker with %s: %v", p.With, err)
	}
	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := worker.Wait(); err != nil {
		t.Errorf("the worker with %s ended with %v", p.With, err)
	}
}

// says waits until a file has a text.
func says(ctx context.Context, file, text string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := pause.Until(ctx, 10*time.Millisecond, func() error {
		data, err := os.ReadFile(file)
		if err == nil && !strings.Contains(string(data), text) {
			err = fmt.Errorf("it says %s", data)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for %q: %w", text, err)
	}
	return nil
}

// Redis starts a Redis that keeps nothing on disk, and returns its address.
func Redis(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatalf("redis-server is not there: install redis-server, or run .ci/tools as root: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(addr, ":")
	log := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command(path, "--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir(), "--logfile", log)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if err := says(t.Context(), log, "Ready to accept connections"); err != nil {
		t.Fatal(err)
	}
	return addr
}

// TestServer starts a claimq in memory, and returns its endpoint.
func TestServer(t *testing.T, binary string) string {
	t.Helper()
	cmd := exec.Command(binary, "testserver")
	end, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = end.Close()
		_ = cmd.Wait()
	})
	url, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(url)
}
