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

	"golang.org/x/sys/unix"

	"github.com/claimq/claimq/cmd/claimq/claimqtest"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// loneNode is a server process that forms a cluster alone.
type loneNode struct {
	cmd  *exec.Cmd
	addr string // the API's address
	dir  string
}

// startLone starts a node whose log goes to stderr. wrap stands before claimq and its arguments, for example a shell
// that sets a limit.
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

// until waits until ok returns true.
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

// call makes a request on its own connection.
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

// stops stops the node, which must exit with code 0.
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

// unread returns the end of a full pipe that has no reader.
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

// A log that is no longer read delays no submit, no snapshot and no stop.
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

// A log whose reader is gone does not end the node, and metrics count the lost lines.
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

// With more connections than the process has descriptors for, the node still serves others.
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

// If descriptors run out, waiting connections make room for others, and the node goes on.
func TestServer_noDescriptorLeft(t *testing.T) {
	t.Parallel()
	n := startLone(t, nil, nil)
	least := &unix.Rlimit{Cur: 64, Max: 64}
	if err := unix.Prlimit(n.cmd.Process.Pid, unix.RLIMIT_NOFILE, least, nil); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		conn, err := net.Dial("tcp", n.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	n.until(t, "a submit is taken", func() bool { return n.status("POST", "/api/tasks", aTask) == http.StatusCreated })
	n.stops(t)
}

// A worker that cannot start that many commands says so and takes no task.
func TestWork_fewDescriptors(t *testing.T) {
	t.Parallel()
	cmd := claimq(t.Context(), "work", "--type", "a", "--concurrency", "100", "--", "true")
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path, cmd.Args = sh, append([]string{"sh", "-c", `ulimit -n 256; exec "$0" "$@"`}, cmd.Args...)
	out, err := cmd.CombinedOutput()
	if want := "--concurrency is 100: it must be at most 38, as this process may open 256 files"; cmd.ProcessState.ExitCode() != term.ExitUsage || !strings.Contains(string(out), want) {
		t.Errorf("%v: %s", err, out)
	}
}

// worker starts claimq work for the node with stderr. It is killed when the test ends.
func (n *loneNode) worker(t *testing.T, stderr *os.File, args ...string) *exec.Cmd {
	t.Helper()
	cmd := claimq(t.Context(), append([]string{"work", "--type", "a", "--endpoint", "http://" + n.addr}, args...)...)
	cmd.Dir, cmd.Stderr = n.dir, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// task returns the task as JSON.
func (n *loneNode) task(id int) string {
	_, answer := n.call("GET", fmt.Sprintf("/api/tasks/%d", id), "")
	return answer
}

// A worker goes on if its lines are not read or their reader is gone. Its commands get SIGPIPE as by default.
func TestWork_brokenLog(t *testing.T) {
	t.Parallel()
	n := startLone(t, nil, nil)
	for i, stderr := range []*os.File{broken(t), unread(t)} {
		if status, answer := n.call("POST", "/api/tasks", aTask); status != http.StatusCreated {
			t.Fatalf("%d %s", status, answer)
		}
		id := i + 1
		w := n.worker(t, stderr, "--", "sh", "-c", `echo said >&2; echo $((0x$(grep SigIgn /proc/self/status | cut -f 2) >> 12 & 1))`)
		n.until(t, "the task is completed", func() bool { return strings.Contains(n.task(id), `"status":"completed"`) })
		if got := n.task(id); !strings.Contains(got, `"result":0`) {
			t.Errorf("the command ignores SIGPIPE: %s", got)
		}
		_ = w.Process.Signal(syscall.SIGTERM)
		if err := w.Wait(); err != nil {
			t.Errorf("the worker ended with %v", err)
		}
	}
}

// If a service manager signals all processes of a service, no attempt fails: the worker gives the task back.
func TestWork_commandIsSignalledFirst(t *testing.T) {
	t.Parallel()
	n := startLone(t, nil, nil)
	for i, line := range []string{"echo $$ >pid; exec sleep 1000", "sleep 1000 & echo $! >pid; wait $!"} {
		if status, answer := n.call("POST", "/api/tasks", `{"task_type":"a","params":1,"max_attempts":1}`); status != http.StatusCreated {
			t.Fatalf("%d %s", status, answer)
		}
		file := filepath.Join(n.dir, "pid")
		_ = os.Remove(file)
		w := n.worker(t, nil, "--", "sh", "-c", line)
		var pid int
		n.until(t, "the command runs", func() bool {
			b, _ := os.ReadFile(file)
			_, err := fmt.Sscanf(string(b), "%d\n", &pid)
			return err == nil
		})
		_ = syscall.Kill(pid, syscall.SIGTERM)
		_ = w.Process.Signal(syscall.SIGTERM)
		if err := w.Wait(); err != nil {
			t.Errorf("the worker ended with %v", err)
		}
		if got := n.task(i + 1); !strings.Contains(got, `"status":"pending"`) || !strings.Contains(got, `"attempts":0`) {
			t.Errorf("the task is %s", got)
		}
		if status, answer := n.call("POST", fmt.Sprintf("/api/tasks/%d/cancel", i+1), "{}"); status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
	}
}

// A stopping node serves on for a while, even on new connections, and says that it is not ready.
func TestServer_drains(t *testing.T) {
	t.Parallel()
	n := startLone(t, nil, nil, "--drain-time", "3s")
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	n.until(t, "it is not ready", func() bool { return n.status("GET", "/readyz", "") == http.StatusServiceUnavailable })
	if status, answer := n.call("POST", "/api/tasks", aTask); status != http.StatusCreated {
		t.Errorf("a submit to a node that is to stop: %d %s", status, answer)
	}
	if status, answer := n.call("GET", "/healthz", ""); status != http.StatusOK {
		t.Errorf("it is not alive: %d %s", status, answer)
	}
	if err := n.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// A node that waits for others is alive and not ready, at the API's port and at the port for probes.
func TestServer_probesWhileItWaits(t *testing.T) {
	t.Parallel()
	ports := claimqtest.TakePorts(t, 4)
	dir := t.TempDir()
	key := filepath.Join(dir, "join.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	list := "n1=" + at(2) + ",n2=" + at(3)
	server := func(id string, flags ...string) *loneNode {
		n := &loneNode{cmd: claimq(t.Context(), append([]string{
			"server", "--node-id", id, "--data-dir", filepath.Join(dir, id), "--join-key-file", key, "--initial-cluster", list,
		}, flags...)...)}
		if err := n.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = n.cmd.Process.Kill()
			_ = n.cmd.Wait()
		})
		return n
	}
	first := server("n1", "--http-addr", at(0), "--peer-addr", at(2), "--health-addr", at(1))
	for _, addr := range []string{at(0), at(1)} {
		n := &loneNode{addr: addr}
		n.until(t, "it is alive", func() bool { return n.status("GET", "/healthz", "") == http.StatusOK })
		for _, path := range []string{"/readyz", "/api/stats"} {
			if status, answer := n.call("GET", path, ""); status != http.StatusServiceUnavailable || !strings.Contains(answer, `"code":"no_leader"`) {
				t.Errorf("%s at %s: %d %s", path, addr, status, answer)
			}
		}
	}
	other := claimqtest.TakePorts(t, 1)
	second := server("n2", "--http-addr", fmt.Sprintf("127.0.0.1:%d", other[0]), "--peer-addr", at(3))
	for _, addr := range []string{at(0), at(1)} {
		n := &loneNode{addr: addr}
		n.until(t, "it is ready", func() bool { return n.status("GET", "/readyz", "") == http.StatusOK })
	}
	n := &loneNode{addr: at(0)}
	n.until(t, "it takes tasks", func() bool { return n.status("POST", "/api/tasks", aTask) == http.StatusCreated })
	if n.addr = at(1); n.status("POST", "/api/tasks", aTask) == http.StatusCreated {
		t.Error("the port of probes takes tasks")
	}
	second.stops(t)
	first.stops(t)
}
