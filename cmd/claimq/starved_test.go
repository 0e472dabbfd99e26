package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/cmd/claimq/claimqtest"
)

// loneNode is a server process that is a cluster by itself.
type loneNode struct {
	cmd  *exec.Cmd
	addr string // of the API
	dir  string
}

// startLone starts a node whose log goes to stderr. wrap is what runs before claimq
// and its arguments, such as a shell that sets a limit.
func startLone(t *testing.T, stderr *os.File, wrap []string, flags ...string) *loneNode {
	t.Helper()
	ports := claimqtest.TakePorts(t, 2)
	n := &loneNode{addr: fmt.Sprintf("127.0.0.1:%d", ports[0]), dir: t.TempDir()}
	n.cmd = claimq(context.Background(), append([]string{
		"server", "--node-id", "n1", "--data-dir", filepath.Join(n.dir, "data"), "--bootstrap",
		"--http-addr", n.addr, "--peer-addr", fmt.Sprintf("127.0.0.1:%d", ports[1]),
	}, flags...)...)
	if len(wrap) > 0 {
		path, err := exec.LookPath(wrap[0])
		if err != nil {
			t.Fatal(err)
		}
		n.cmd.Path, n.cmd.Args = path, append(wrap, n.cmd.Args...)
	}
	n.cmd.Stderr = stderr
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = n.cmd.Process.Kill()
		_ = n.cmd.Wait()
	})
	n.until(t, "it is ready", func() bool { return n.status("GET", "/readyz", "") == http.StatusOK })
	return n
}

// until waits for a condition.
func (n *loneNode) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(claimqtest.Patience)
	for !ok() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Fatalf("not so: %s", what)
		}
	}
}

// call makes a request on a connection of its own.
func (n *loneNode) call(method, path, body string) (status int, answer string) {
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: claimqtest.Patience}
	req, err := http.NewRequest(method, "http://"+n.addr+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

func (n *loneNode) status(method, path, body string) int {
	status, _ := n.call(method, path, body)
	return status
}

// stops has the node stop, which it must with exit code 0.
func (n *loneNode) stops(t *testing.T) {
	t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- n.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(claimqtest.Patience):
		t.Error("it has not stopped")
	}
}

// unread returns the end of a pipe that is full and not read.
func unread(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Close()
		_ = w.Close()
	})
	for _, size := range []int{4096, 1} {
		for err = nil; err == nil; {
			_ = w.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
			_, err = w.Write(make([]byte, size))
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	return w
}

// broken returns the end of a pipe whose other end is closed.
func broken(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	t.Cleanup(func() { _ = w.Close() })
	return w
}

const aTask = `{"task_type":"a","params":1}`

// A log that is not read any more holds nothing up: no submit, no snapshot, no stop.
func TestServer_unreadLog(t *testing.T) {
	t.Parallel()
	n := startLone(t, unread(t), nil, "--log-level", "trace")
	if status, answer := n.call("POST", "/api/tasks", aTask); status != http.StatusCreated {
		t.Errorf("a submit: %d %s", status, answer)
	}
	if status, answer := n.call("POST", "/api/snapshots", "{}"); status != http.StatusOK {
		t.Errorf("a snapshot: %d %s", status, answer)
	}
	n.stops(t)
}

var linesDropped = regexp.MustCompile(`(?m)^claimq_log_lines_dropped_total [1-9]`)

// A log whose reader has gone ends no node, and metrics tell what it misses.
func TestServer_brokenLog(t *testing.T) {
	t.Parallel()
	n := startLone(t, broken(t), nil)
	n.until(t, "metrics tell of dropped lines", func() bool {
		_, metrics := n.call("GET", "/metrics", "")
		return linesDropped.MatchString(metrics)
	})
	if status, answer := n.call("POST", "/api/tasks", aTask); status != http.StatusCreated {
		t.Errorf("a submit: %d %s", status, answer)
	}
	n.stops(t)
}

// More connections than the process may have descriptors for: the node serves others meanwhile.
func TestServer_fewDescriptors(t *testing.T) {
	t.Parallel()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	n := startLone(t, log, []string{"sh", "-c", `ulimit -n 256; exec "$0" "$@"`})
	for range 300 {
		conn, err := net.Dial("tcp", n.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if status, answer := n.call("POST", "/api/tasks", aTask); status != http.StatusCreated {
		t.Errorf("a submit beside 300 connections: %d %s", status, answer)
	}
	n.stops(t)
	said, err := os.ReadFile(log.Name())
	if err != nil || !bytes.Contains(said, []byte("limits.connections=16384")) || !bytes.Contains(said, []byte("rlimit_nofile=256")) {
		t.Errorf("the log does not tell what does not fit (%v):\n%s", err, said)
	}
}

// A client that stays in the midst of its request makes a stop late, and no failure.
func TestServer_stopsAmidARequest(t *testing.T) {
	t.Parallel()
	n := startLone(t, nil, nil)
	conn, err := net.Dial("tcp", n.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// An answer shows that the connection is served.
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "POST /api/tasks HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	n.stops(t)
}
