package typescript

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/workers"
)

// patience bounds every wait.
const patience = 2 * time.Minute

// served is a claimq work --serve of tests/programs/worker.ts, and a client of its nodes.
type served struct {
	t *testing.T
	c *client.Client
}

// submit submits a job, and returns its id.
func (s *served) submit(what string) string {
	s.t.Helper()
	task, err := client.NewTask("job", map[string]string{"what": what})
	if err != nil {
		s.t.Fatal(err)
	}
	task.Backoff = &client.Backoff{Initial: time.Millisecond}
	id, err := s.c.Submit(s.t.Context(), task)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// until waits until the task is as ok wants it.
func (s *served) until(id, what string, ok func(*client.Task) bool) *client.Task {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	var task *client.Task
	err := pause.Until(ctx, 10*time.Millisecond, func() (err error) {
		if task, err = s.c.Get(ctx, id); err == nil && !ok(task) {
			err = fmt.Errorf("it is %+v", task)
		}
		return err
	})
	if err != nil {
		s.t.Fatalf("task %s is not %s: %v", id, what, err)
	}
	return task
}

func hasEnded(task *client.Task) bool { return task.Status.Ended() }

func waits(task *client.Task) bool { return string(task.Progress) == `{"waits":true}` }

// The worker by claimq work --serve, against three nodes: whatever a handler does, its task ends
// as docs/typescript.md says.
func TestServe(t *testing.T) {
	t.Parallel()
	dir := built(t)
	nodes, env := startNodes(t)
	c, err := client.New(client.Config{Endpoints: nodes.URLs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s := &served{t, c}

	command := []string{"work", "--serve", "--processes", "2", "--lease", "1s", "--stop-wait", "0s", "--"}
	worker := exec.Command(filepath.Join(scratch, "claimq"), slices.Concat(command, runtimes(t)["node20"], []string{"build/programs/worker.js"})...)
	worker.Dir = dir
	worker.Env = append(os.Environ(), env...)
	var said spoken
	worker.Stderr = &said
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- worker.Wait() }()
	t.Cleanup(func() {
		_ = worker.Process.Kill()
		if t.Failed() {
			t.Log(said.String())
		}
	})

	cases := []struct {
		what     string
		status   client.TaskStatus
		attempts int
		text     string // a pattern of the result, or of the error
	}{
		{"return", client.StatusCompleted, 1, `^\{"what":"return","attempt":1\}$`},
		{"fail", client.StatusCompleted, 2, `"attempt":2`},
		{"retry", client.StatusCompleted, 2, `"attempt":2`},
		{"permanent", client.StatusFailed, 1, `^never$`},
		{"large", client.StatusFailed, 1, `^the result has 2000000 bytes: at most 1048576 are taken$`},
		{"half", client.StatusFailed, 1, `^result has half of a surrogate pair, which is no text$`},
		{"stray", client.StatusFailed, 1, `^nobody waits$`},
		{"snooze", client.StatusCompleted, 1, `"attempt":1`},
		{"die", client.StatusCompleted, 2, `"attempt":2`},
		{"exit", client.StatusCompleted, 2, `"attempt":2`},
		{"bytes", client.StatusCompleted, 1, `^12$`},
		{"block", client.StatusCompleted, 1, `"attempt":1`}, // for two leases
		{"follow", client.StatusCompleted, 1, `"attempt":1`},
	}
	for _, want := range cases {
		got := s.until(s.submit(want.what), "ended", hasEnded)
		text := string(got.Result)
		if got.Status == client.StatusFailed {
			text = got.Error
		}
		if got.ResultBinary != (want.what == "bytes") || got.Status != want.status || got.Attempts != want.attempts || !regexp.MustCompile(want.text).MatchString(text) {
			t.Errorf("%s: it is %s after %d attempts: %s", want.what, got.Status, got.Attempts, text)
		}
	}
	followed, err := c.GetByIdempotencyKey(t.Context(), "followed")
	if err != nil {
		t.Fatal(err)
	}
	s.until(followed.ID, "completed", func(task *client.Task) bool { return task.Status == client.StatusCompleted })

	id := s.submit("wait")
	s.until(id, "under way", waits)
	if _, err := c.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got := s.until(id, "cancelled", hasEnded); got.Status != client.StatusCancelled {
		t.Errorf("what was cancelled is %s", got.Status)
	}

	// Its tasks at a stop are given back, uncounted.
	id = s.submit("wait")
	s.until(id, "under way", waits)
	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the worker ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the worker does not end")
	}
	got := s.until(id, "given back", func(task *client.Task) bool { return task.Status == client.StatusPending })
	if got.Attempts != 0 {
		t.Errorf("of what was given back %d attempts were counted: %s", got.Attempts, got.Error)
	}
	for _, want := range []string{"signal: killed", "exit code 7", "Node.js"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("the worker does not tell of %s", want)
		}
	}
}

// spoken collects a process's output.
type spoken struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *spoken) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *spoken) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Worker processes with the client are stopped, killed and cut off, and block their event loop past their leases,
// and the leader is killed at their calls: no two handlers ever believe to hold one task, and nothing is lost. `make
// test-workers` does it at length.
func TestServe_faults(t *testing.T) {
	t.Parallel()
	dir, _ := built(t), environment(t)
	program, err := filepath.Abs("../../jepsen/workers/served/diary.mjs")
	if err != nil {
		t.Fatal(err)
	}
	command := []string{"work", "--serve", "--processes", "2", "--", "env", "CLAIMQ_TYPESCRIPT=" + dir}
	report, err := workers.Run(t.Context(), workers.Config{
		Binary: filepath.Join(scratch, "claimq"), Worker: filepath.Join(scratch, "claimq"), Served: slices.Concat(command, runtimes(t)["node20"], []string{program}),
		Dir: t.TempDir(), Nodes: 3, Workers: 5, Rate: 12, Time: 6 * time.Second, Lease: 500 * time.Millisecond, Seed: 3, Out: t.Output(),
	})
	t.Log(report)
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() {
		t.Error("the run does not pass")
	}
}

// The example ends as it was answered.
func TestExample_release(t *testing.T) {
	t.Parallel()
	dir := built(t)
	_, env := startNodes(t)
	node := runtimes(t)["node22"]
	worker := exec.Command(filepath.Join(scratch, "claimq"), slices.Concat([]string{"work", "--serve", "--"}, node, []string{"build/programs/release.js", "work"})...)
	worker.Dir, worker.Env = dir, append(os.Environ(), env...)
	var said spoken
	worker.Stderr = &said
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = worker.Process.Kill()
		_ = worker.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	for answer, want := range map[string]string{"y": `completed: {"shipped":true}` + "\n", "n": "failed: it was not approved\n"} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		program := exec.CommandContext(ctx, node[0], "build/programs/release.js")
		program.Dir, program.Env, program.Stdin = dir, worker.Env, strings.NewReader(answer+"\n")
		out, err := program.CombinedOutput()
		cancel()
		if err != nil || !strings.Contains(string(out), `{"passed":42}. Ship it? (y/n)`) || !strings.HasSuffix(string(out), want) {
			t.Errorf("%s: %v, it printed\n%s", answer, err, out)
		}
	}
}
