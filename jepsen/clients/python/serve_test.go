package python

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/proof"
)

// patience bounds every wait.
const patience = 2 * time.Minute

// served is a claimq work --serve of tests/programs/served.py.
type served struct {
	t      *testing.T
	c      *client.Client
	nodes  *procs.Cluster
	cmd    *exec.Cmd
	stderr *output
	ended  chan error
}

// output collects a process's output.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// serve starts three nodes and a worker.
func serve(t *testing.T, flags, more, ofNodes []string) *served {
	t.Helper()
	nodes, binary, env := startNodes(t, ofNodes...)
	c, err := client.New(client.Config{Endpoints: nodes.URLs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s := &served{t: t, c: c, nodes: nodes, stderr: &output{}, ended: make(chan error, 1)}
	args := append([]string{"work", "--serve", "--processes", "2"}, flags...)
	s.cmd = exec.Command(binary, append(args, "--", interpreter, "-X", "dev", "-m", "claimq.run", "served:app")...)
	s.cmd.Stderr = s.stderr
	s.cmd.Env = append(append(os.Environ(), env...), append([]string{
		"PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=" + absolute(t, "src") + ":" + absolute(t, "tests/programs"),
	}, more...)...)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- s.cmd.Wait() }()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		if t.Failed() {
			t.Log(s.stderr)
		}
	})
	return s
}

// stop asks the worker to end, and waits for it.
func (s *served) stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	select {
	case err := <-s.ended:
		if err != nil {
			s.t.Errorf("it ended with %v", err)
		}
	case <-time.After(patience):
		s.t.Error("it does not end")
	}
}

func (s *served) submit(taskType, what string) string {
	s.t.Helper()
	id, err := s.c.Submit(s.t.Context(), client.Task{
		TaskType: taskType, Payload: []byte(fmt.Sprintf(`{"what":%q}`, what)), Backoff: &client.Backoff{Initial: time.Millisecond},
	})
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

// The Python worker by claimq work --serve, against three nodes: whatever a handler does, its task
// ends as docs/python.md says.
func TestServe(t *testing.T) {
	t.Parallel()
	// A cancel is heard of at an extend.
	s := serve(t, []string{"--stop-wait", "0s", "--lease", "1s"}, nil, []string{"--limits-value-bytes", "2000"})
	for _, c := range []struct {
		taskType, what string
		status         client.TaskStatus
		attempts       int
		text           string // a pattern of the result, or of the error
	}{
		{"do", "return", client.StatusCompleted, 1, `^\{"pid":\d+,"attempt":1\}$`},
		{"ado", "return", client.StatusCompleted, 1, `^"return"$`},
		{"do", "fail", client.StatusCompleted, 2, `"attempt":2`},
		{"do", "retry", client.StatusCompleted, 2, `"attempt":2`},
		{"do", "permanent", client.StatusFailed, 1, `^never$`},
		{"do", "large", client.StatusFailed, 1, `^the result has 2001 bytes, at most 2000$`}, // as the nodes say
		{"do", "snooze", client.StatusCompleted, 1, `"attempt":1`},
		{"do", "die", client.StatusCompleted, 2, `"attempt":2`},
		{"do", "follow", client.StatusCompleted, 1, `"attempt":1`},
	} {
		got := s.until(s.submit(c.taskType, c.what), "ended", func(task *client.Task) bool { return task.Status.Ended() })
		text := string(got.Result)
		if got.Status == client.StatusFailed {
			text = got.Error
		}
		if got.Status != c.status || got.Attempts != c.attempts || !regexp.MustCompile(c.text).MatchString(text) {
			t.Errorf("%s: it is %s after %d attempts: %s", c.what, got.Status, got.Attempts, text)
		}
	}
	followed := ""
	for task, err := range s.c.Tasks(t.Context(), client.Filter{TaskType: "do"}) {
		if err != nil {
			t.Fatal(err)
		}
		if task.IdempotencyKey == "followed" {
			followed = task.ID
		}
	}
	s.until(followed, "completed", func(task *client.Task) bool { return task.Status == client.StatusCompleted })
	waits := func(task *client.Task) bool { return string(task.Progress) == `{"waits":true}` }
	for _, taskType := range []string{"do", "ado"} {
		id := s.submit(taskType, "wait")
		s.until(id, "under way", waits)
		if _, err := s.c.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if got := s.until(id, "cancelled", func(task *client.Task) bool { return task.Status.Ended() }); got.Status != client.StatusCancelled {
			t.Errorf("%s: it is %s", taskType, got.Status)
		}
	}
	// Those that it has at a stop are given back, uncounted.
	ids := []string{s.submit("do", "wait"), s.submit("ado", "wait")}
	for _, id := range ids {
		s.until(id, "under way", waits)
	}
	s.stop()
	for _, id := range ids {
		if got := s.until(id, "given back", func(task *client.Task) bool { return task.Status == client.StatusPending }); got.Attempts != 0 {
			t.Errorf("task %s: %d attempts were counted: %s", id, got.Attempts, got.Error)
		}
	}
	if out := s.stderr.String(); !strings.Contains(out, "signal: killed") || !strings.Contains(out, "has stopped") {
		t.Error("it does not tell of the process that was killed, and of its end")
	}
}

// Under a worker of two processes the leader is killed again and again. Every task that was
// acknowledged is completed once, by its last claim that a handler worked on.
func TestServe_leaderKilled(t *testing.T) {
	t.Parallel()
	count, kills := proof.Count(1000, 4000), proof.Count(2, 5)
	ledger := filepath.Join(t.TempDir(), "ledger")
	s := serve(t, nil, []string{"LEDGER=" + ledger}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	killed := make(chan error, 1)
	go func() {
		for range kills {
			leader, err := s.nodes.WaitLeader(ctx)
			if err == nil {
				err = leader.Kill()
			}
			_ = pause.For(ctx, time.Second) // the others go on alone
			if err == nil {
				err = leader.StartReady(ctx)
			}
			if err != nil {
				killed <- err
				return
			}
		}
		killed <- nil
	}()
	acknowledged := map[string]bool{}
	for len(acknowledged) < count || len(killed) == 0 {
		task := client.Task{TaskType: "count", Payload: []byte("{}"), IdempotencyKey: fmt.Sprint("k", len(acknowledged))}
		id, err := s.c.Submit(ctx, task)
		if err != nil {
			t.Fatal(err)
		}
		acknowledged[id] = true
	}
	if err := <-killed; err != nil {
		t.Fatal(err)
	}
	err := pause.Until(ctx, 50*time.Millisecond, func() error {
		counts, err := s.c.Type(ctx, "count")
		if err == nil && counts.Counts[client.StatusCompleted] != int64(len(acknowledged)) {
			err = fmt.Errorf("of %d tasks there are %v", len(acknowledged), counts.Counts)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	text, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]string{} // the token of each task's last line
	for line := range strings.Lines(string(text)) {
		id, token, _ := strings.Cut(strings.TrimSpace(line), " ")
		last[id] = token
	}
	completed := map[string]int{}
	for e, err := range s.c.Events(ctx, client.EventFilter{TaskType: "count", Events: []string{"completed"}}) {
		if err != nil {
			t.Fatal(err)
		}
		completed[e.TaskID]++
		if token := fmt.Sprint(e.Token); last[e.TaskID] != token {
			t.Errorf("task %s was completed by token %s, and worked on last by %q", e.TaskID, token, last[e.TaskID])
		}
	}
	for id := range acknowledged {
		if completed[id] != 1 {
			t.Errorf("task %s was completed %d times", id, completed[id])
		}
	}
	t.Logf("%d tasks, %d leaders killed", len(acknowledged), kills)
}

// The example ends as it was answered.
func TestExample_release(t *testing.T) {
	t.Parallel()
	nodes, binary, env := startNodes(t)
	env = append(append(os.Environ(), env...), "PYTHONDONTWRITEBYTECODE=1", "CLAIMQ_ENDPOINTS="+strings.Join(nodes.URLs(), ","),
		"PYTHONPATH="+absolute(t, "src")+":"+absolute(t, "../../examples/release"))
	worker := exec.Command(binary, "work", "--serve", "--", interpreter, "-X", "dev", "-m", "claimq.run", "release:app")
	worker.Env, worker.Stderr = env, &output{}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = worker.Process.Kill()
		_ = worker.Wait()
		if t.Failed() {
			t.Log(worker.Stderr)
		}
	})
	for answer, want := range map[string]string{"y": `completed: {"shipped": true}` + "\n", "n": "failed: it was not approved\n"} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		program := exec.CommandContext(ctx, interpreter, "-X", "dev", "-m", "release")
		program.Env, program.Stdin = env, strings.NewReader(answer+"\n")
		out, err := program.CombinedOutput()
		cancel()
		if err != nil || !strings.Contains(string(out), `{"passed": 42}. Ship it? (y/n)`) || !strings.HasSuffix(string(out), want) {
			t.Errorf("%s: %v, it printed\n%s", answer, err, out)
		}
	}
}
