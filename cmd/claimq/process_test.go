package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/bench"
	"github.com/claimq/claimq/cmd/claimq/claimqtest"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/testwait"
)

// beClaimq in the environment makes the test binary behave as claimq, so that tests run real processes of the tested
// code.
const beClaimq = "CLAIMQ_TEST_IS_CLAIMQ"

// asClaimq is the environment of processes that run claimq. Servers that stop do not first wait for their clients to
// go elsewhere, unless a test says so by a flag, because most tests have no such clients.
var asClaimq = []string{beClaimq + "=1", "CLAIMQ_DRAIN_TIME=0s"}

func TestMain(m *testing.M) {
	if os.Getenv(beClaimq) != "" {
		main()
		return
	}
	testwait.Together(4) // most wait for processes
	os.Exit(m.Run())
}

// claimq returns a command that runs claimq with args.
func claimq(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asClaimq...)
	return cmd
}

// devCluster is a running claimq dev.
type devCluster struct {
	port int // of the first node's API
	dir  string
	cmd  *exec.Cmd

	mu      sync.Mutex
	printed bytes.Buffer // guarded by mu
	changed chan struct{}
}

var pidPattern = regexp.MustCompile(`(?m)^(n\d)  (http://\S+)  pid (\d+)`)

// startDev starts claimq dev and waits until it names a leader. It stops when the test ends.
func startDev(t *testing.T, flags ...string) *devCluster {
	t.Helper()
	d := &devCluster{port: takeBasePort(t), dir: t.TempDir(), changed: make(chan struct{}, 1)}
	d.cmd = claimq(context.Background(), append([]string{"dev", "--data-dir", d.dir, "--port", strconv.Itoa(d.port)}, flags...)...)
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.cmd.Stderr = d.cmd.Stdout
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { d.read(out) })
	t.Cleanup(func() {
		if t.Failed() {
			d.tell(t)
		}
		_ = d.cmd.Process.Signal(os.Interrupt)
		reading.Wait()
		if err := d.cmd.Wait(); err != nil {
			t.Errorf("claimq dev ended with %v; it printed:\n%s", err, d.output())
		}
	})
	d.waitFor(t, "leader: n")
	return d
}

// tell logs what may explain a failure: what dev and its nodes have printed, and each node's view of the cluster and its
// first events.
func (d *devCluster) tell(t *testing.T) {
	t.Helper()
	t.Logf("claimq dev printed\n%s", d.output())
	logs, _ := filepath.Glob(filepath.Join(d.dir, "n*.log"))
	for i, path := range logs {
		log, err := os.ReadFile(path)
		t.Logf("%s (%v):\n%s", filepath.Base(path), err, log)
		for _, path := range []string{"/api/cluster?consistency=stale", "/api/events?limit=100&consistency=stale"} {
			ctx, cancel := context.WithTimeout(context.Background(), claimqtest.Patience/6)
			status, answer, err := ask(ctx, http.MethodGet, d.url(i)+path, "", "")
			cancel()
			t.Logf("%s: %d %s (%v)", path, status, answer, err)
		}
	}
}

func (d *devCluster) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		d.mu.Lock()
		fmt.Fprintln(&d.printed, lines.Text())
		d.mu.Unlock()
		select {
		case d.changed <- struct{}{}:
		default:
		}
	}
}

func (d *devCluster) output() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.printed.String()
}

// waitFor waits until text was printed.
func (d *devCluster) waitFor(t *testing.T, text string) {
	t.Helper()
	d.waitForTimes(t, text, 1)
}

// waitForTimes waits until text was printed that many times.
func (d *devCluster) waitForTimes(t *testing.T, text string, times int) {
	t.Helper()
	deadline := time.After(claimqtest.Patience)
	for strings.Count(d.output(), text) < times {
		select {
		case <-d.changed:
		case <-deadline:
			t.Fatalf("claimq dev has not printed %q, but:\n%s", text, d.output())
		}
	}
}

// pids returns the process ids that dev has printed for the nodes.
func (d *devCluster) pids(t *testing.T) map[string]int {
	t.Helper()
	pids := map[string]int{}
	for _, m := range pidPattern.FindAllStringSubmatch(d.output(), -1) {
		pids[m[1]], _ = strconv.Atoi(m[3])
	}
	if len(pids) == 0 {
		t.Fatalf("no pids in:\n%s", d.output())
	}
	return pids
}

// leaderPID returns the content of leader.pid.
func (d *devCluster) leaderPID(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(d.dir, "leader.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func (d *devCluster) url(node int) string {
	return fmt.Sprintf("http://127.0.0.1:%d", d.port+10*node)
}

// takeBasePort returns the first port for dev's nodes, whose ports are ten apart. No other test gets these ports
// before this test ends.
func takeBasePort(t *testing.T) int {
	t.Helper()
	base, release, err := procs.TakePortsFrom(0, 1, 10, 11, 20, 21)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return base
}

// With --restart a killed node comes back by itself.
func TestDev_Restart(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--restart", "--nodes", "1")
	if out, err := claimq(t.Context(), "submit", "mail", "--endpoint", d.url(0)).CombinedOutput(); err != nil {
		t.Fatalf("submit: %v: %s", err, out)
	}
	killed := d.leaderPID(t)
	if killed != d.pids(t)["n1"] {
		t.Errorf("leader.pid has %d", killed)
	}
	if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.waitFor(t, "n1 is started again")
	d.waitForTimes(t, "leader: n1", 2)
	if now := d.leaderPID(t); now == killed {
		t.Errorf("leader.pid still has %d", now)
	}
	out, err := claimq(t.Context(), "get", "1", "--endpoint", d.url(0), "--output", "json").CombinedOutput()
	if err != nil {
		t.Fatalf("get: %v: %s", err, out)
	}
	var a wire.Answer
	if err := json.Unmarshal(out, &a); err != nil || a.Task == nil || a.Task.Status != "pending" {
		t.Errorf("the task after the kill is %s (%v)", out, err)
	}
}

// bench with its own cluster does every task exactly once in every mode. Its JSON has all figures by name.
func TestBench_Modes(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--nodes", "3", "--mode", "lifecycle", "--conns", "8", "--batch", "4"},
		{"--no-raft", "--mode", "drain", "--conns", "8"},
		{"--no-raft", "--mode", "submit", "--conns", "4", "--batch", "10"},
		{"--no-raft", "--mode", "latency", "--request-ids=false"},
		{"--nodes", "3", "--client", "--conns", "8"},
		{"--no-raft", "--client", "--mode", "submit", "--conns", "8"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*claimqtest.Patience)
			defer cancel()
			cmd := claimq(ctx, append([]string{"bench", "--tasks", "400", "--warm-up", "1ms", "--output", "json"}, args...)...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("bench: %v: %s", err, stderr.String())
			}
			var fields map[string]any
			if err := json.Unmarshal(out, &fields); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"tasks_per_s", "calls", "server_cpu_s", "server_rss_bytes", "log_bytes", "done", "doubled", "lost"} {
				if _, ok := fields[name]; !ok {
					t.Errorf("no %s in %s", name, out)
				}
			}
			var r bench.Report
			if err := json.Unmarshal(out, &r); err != nil {
				t.Fatal(err)
			}
			if r.Mode != bench.Submit && (r.Done != 400 || r.Doubled != 0 || r.Lost != 0) {
				t.Errorf("done %d, doubled %d, lost %d of 400", r.Done, r.Doubled, r.Lost)
			}
			if r.TasksPerSecond <= 0 || len(r.Calls) == 0 || r.ServerRSS <= 0 {
				t.Errorf("figures are missing: %s", out)
			}
		})
	}
}

// Wrong usage has exit code 2, and the error names the flag.
func TestServerDevBench_Usage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ args, want string }{
		{"server", "node_id"},
		{"server --node-id n1 --data-dir x --http-addr 0.0.0.0:1", "--insecure"},
		{"server --node-id n1 --data-dir x --config /does/not/exist", "read config file"},
		{"dev --nodes 0", "--nodes"},
		{"dev --port 65530", "--port"},
		{"bench --mode fast", "mode"},
		{"bench --conns 0", "conns"},
		{"bench --output xml", "--output"},
		{"bench --endpoint n1:7400", "it must begin with http://"},
		{"bench --endpoint https://127.0.0.1:1", "it must begin with http://"},
		{"bench --nodes 3 --endpoint http://127.0.0.1:1", "--endpoint"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			a := &term.App{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}
			if code := run(t.Context(), a, strings.Fields(tc.args)); code != term.ExitUsage {
				t.Errorf("exit code %d, want %d", code, term.ExitUsage)
			}
			if !strings.Contains(stderr.String(), tc.want) {
				t.Errorf("it says %q, want it to name %q", stderr.String(), tc.want)
			}
		})
	}
}
