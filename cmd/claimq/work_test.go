package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/claimqtest"
)

// workLab is a cluster with a client, and a folder for the files that commands write.
type workLab struct {
	d   *devCluster
	c   *client.Client
	dir string
}

func newWorkLab(t *testing.T) *workLab {
	t.Helper()
	d := startDev(t)
	c, err := client.New(client.Config{Endpoints: []string{d.url(0), d.url(1), d.url(2)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &workLab{d: d, c: c, dir: t.TempDir()}
}

// submit submits a task with a short wait after a failed attempt.
func (l *workLab) submit(t *testing.T, taskType, payload string, attempts int) string {
	t.Helper()
	task := client.Task{TaskType: taskType, Payload: []byte(payload), MaxAttempts: attempts, Backoff: &client.Backoff{Initial: time.Millisecond}}
	id, err := l.c.Submit(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// until waits until ok accepts the task, and returns it.
func (l *workLab) until(t *testing.T, id, what string, ok func(*client.Task) bool) *client.Task {
	t.Helper()
	deadline := time.After(claimqtest.Patience)
	for {
		task, err := l.c.Get(t.Context(), id)
		if err == nil && ok(task) {
			return task
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Fatalf("task %s is not %s but %+v (%v)", id, what, task, err)
		}
	}
}

func (l *workLab) ended(t *testing.T, id string) *client.Task {
	t.Helper()
	return l.until(t, id, "ended", func(task *client.Task) bool { return task.Status.Ended() })
}

// appears waits for a file and returns its content.
func (l *workLab) appears(t *testing.T, name string) string {
	t.Helper()
	deadline := time.After(claimqtest.Patience)
	for {
		b, err := os.ReadFile(filepath.Join(l.dir, name))
		if err == nil && bytes.HasSuffix(b, []byte("\n")) {
			return strings.TrimSpace(string(b))
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Fatalf("there is no file %s: %v", name, err)
		}
	}
}

// A command that can no longer be started costs no attempt: its task waits until it can.
func TestWork_commandIsGone(t *testing.T) {
	t.Parallel()
	l := newWorkLab(t)
	path := filepath.Join(l.dir, "command")
	put := func() {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte("#!/bin/sh\necho 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	put()
	p := l.workOf(t, "work", "--type", "gone", "--", path)
	l.ended(t, l.submit(t, "gone", "1", 1))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	id := l.submit(t, "gone", "2", 1)
	l.until(t, id, "given back", func(task *client.Task) bool {
		return task.Status == client.StatusScheduled || task.Status.Ended()
	})
	put()
	if got := l.ended(t, id); got.Status != client.StatusCompleted || got.Attempts != 1 {
		t.Errorf("the task is %s after %d attempts: %s", got.Status, got.Attempts, got.Error)
	}
	if out := p.stop(t); !strings.Contains(out, "start the command: ") {
		t.Errorf("it says\n%s", out)
	}
}

// workProcess is a running claimq work.
type workProcess struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer // read it only after the end
	end    sync.Once
	err    error
}

// work starts a worker of the type. Its command is a shell line in the lab's folder. The worker is killed when the
// test ends, if it still runs.
func (l *workLab) work(t *testing.T, taskType, line string, flags ...string) *workProcess {
	t.Helper()
	args := append([]string{"work", "--type", taskType}, flags...)
	return l.workOf(t, append(args, "--", "sh", "-c", line)...)
}

// workOf starts a worker with any command.
func (l *workLab) workOf(t *testing.T, args ...string) *workProcess {
	t.Helper()
	p := &workProcess{cmd: claimq(context.Background(), args...)}
	p.cmd.Dir, p.cmd.Stderr = l.dir, &p.stderr
	p.cmd.Env = append(p.cmd.Env, "CLAIMQ_API_KEY=secret", "CLAIMQ_TIMEOUT=2s", fmt.Sprintf("CLAIMQ_ENDPOINTS=%s,%s,%s", l.d.url(0), l.d.url(1), l.d.url(2)))
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.wait()
	})
	return p
}

func (p *workProcess) wait() error {
	p.end.Do(func() { p.err = p.cmd.Wait() })
	return p.err
}

// stop ends the worker with SIGTERM and returns what it wrote to standard error.
func (p *workProcess) stop(t *testing.T) string {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.wait(); err != nil {
		t.Errorf("claimq work ended with %v", err)
	}
	return p.stderr.String()
}

// gone waits until no process has the id.
func gone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.After(claimqtest.Patience)
	for syscall.Kill(n, 0) == nil && !isZombie(n) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Fatalf("process %d still runs", n)
		}
	}
}

// isZombie reports whether a process has ended and its parent has not waited for it, as in a container without an
// init.
func isZombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(b), ") Z ")
}

// The task provides the command's input and environment, and the command's output and exit code decide how the task
// ends.
func TestWork_settlesByHowTheCommandEnds(t *testing.T) {
	t.Parallel()
	l := newWorkLab(t)
	ids := map[string]string{}
	for _, name := range []string{"json", "bytes", "nothing", "fail", "permanent", "big", "environ", "behind", "bad"} {
		ids[name] = l.submit(t, "job", name, 2)
	}
	ids["slow"] = l.submit(t, "slow", "slow", 1)
	slow := l.work(t, "slow", `trap 'exit 0' TERM; sleep 1000 & echo $! >slow; wait`, "--timeout", "5s")
	p := l.work(t, "job", `read what
case $what in
json) echo ' {"a": 1}' ;;
bytes) printf 'no json\n' ;;
nothing) ;;
fail) echo first >&2; head -c 9000 /dev/zero | tr '\0' e >&2; echo last >&2; exit 3 ;;
permanent) echo never >&2; exit 100 ;;
big) head -c 1048577 /dev/zero ;;
environ) echo "$CLAIMQ_TASK_ID $CLAIMQ_TASK_TYPE $CLAIMQ_ATTEMPT ${CLAIMQ_CLAIM_TOKEN:?} $CLAIMQ_WORKER ${CLAIMQ_API_KEY-none}" ;;
behind) sleep 1000 & echo $! >behind ;;
bad) printf 'a\377b\0' >&2; kill -9 $$ ;;
esac`, "--worker", "shell", "--concurrency", "4")
	for name, want := range map[string]struct {
		status   client.TaskStatus
		attempts int
		result   string
		error    string // a pattern
	}{
		"json":      {client.StatusCompleted, 1, `{"a": 1}`, `^$`},
		"bytes":     {client.StatusCompleted, 1, "no json\n", `^$`},
		"nothing":   {client.StatusCompleted, 1, "", `^$`},
		"fail":      {client.StatusFailed, 2, "", `(?s)^\.\.\.e+ \(exit code 3\)\n\.\.\.e+last$`},
		"permanent": {client.StatusFailed, 1, "", `^never \(exit code 100\)$`},
		"big":       {client.StatusFailed, 1, "", `printed more than 1.0 MiB`},
		"behind":    {client.StatusCompleted, 1, "", `^$`},
		"slow":      {client.StatusFailed, 1, "", `^the attempt took more than 5s: stopped: exit code 0$`},
		"bad":       {client.StatusFailed, 2, "", "^a\uFFFDb\uFFFD \\(signal: killed\\)$"},
	} {
		got := l.ended(t, ids[name])
		if got.Status != want.status || got.Attempts != want.attempts || string(got.Result) != want.result || !regexp.MustCompile(want.error).MatchString(got.Error) {
			t.Errorf("%s: the task is %s after %d attempts with %q, %.200q", name, got.Status, got.Attempts, got.Result, got.Error)
		}
	}
	got := l.ended(t, ids["environ"])
	if want := regexp.MustCompile(`^` + ids["environ"] + ` job 1 [1-9]\d* shell none\n$`); !want.Match(got.Result) {
		t.Errorf("the environment is %q", got.Result)
	}
	gone(t, l.appears(t, "behind"))
	gone(t, l.appears(t, "slow"))
	slow.stop(t)
	out := p.stop(t)
	for _, want := range []string{"task " + ids["permanent"] + ": never\n", "task " + ids["permanent"] + " (job, attempt 1): after ", "exit code 100", "task " + ids["json"] + " (job, attempt 1): done in ", "5 completed"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q but\n%s", want, out)
		}
	}
}

// The command of a step is told its parent, its name, and in a file the results of the steps that it depends on.
func TestWork_step(t *testing.T) {
	t.Parallel()
	l := newWorkLab(t)
	var parent client.Task
	parent.AddStep("none", client.Task{TaskType: "job", Payload: []byte("none")})
	parent.AddStep("json", client.Task{TaskType: "job", Payload: []byte("json")})
	parent.AddStep("bytes", client.Task{TaskType: "job", Payload: []byte("bytes")})
	parent.AddStep("all", client.Task{TaskType: "job", Payload: []byte("all")}, "none", "json", "bytes")
	var large []string
	for i := range 5 { // more than 4 MiB together
		large = append(large, fmt.Sprintf("large%d", i))
		parent.AddStep(large[i], client.Task{TaskType: "job", Payload: []byte("large")})
	}
	parent.AddStep("too-large", client.Task{TaskType: "job", Payload: []byte("unset")}, large...)
	id, err := l.c.Submit(t.Context(), parent)
	if err != nil {
		t.Fatal(err)
	}
	p := l.work(t, "job", `read what
case $what in
none) ;;
json) echo '{"a":1}' ;;
bytes) printf 'no json' ;;
large) head -c 1000000 /dev/zero ;;
all) echo "$CLAIMQ_PARENT_ID $CLAIMQ_STEP $(stat -c %a "$CLAIMQ_DEPENDENCIES") $(cat "$CLAIMQ_DEPENDENCIES")"; echo "$CLAIMQ_DEPENDENCIES" >all ;;
unset) echo "$CLAIMQ_STEP ${CLAIMQ_DEPENDENCIES-none}" ;;
esac`, "--concurrency", "4")
	l.ended(t, id)
	steps, err := l.c.Dependencies(t.Context(), &client.Task{ParentID: id, DependsOn: []string{"all", "too-large"}})
	if err != nil {
		t.Fatal(err)
	}
	want := id + ` all 600 {"bytes":{"result_payload":"bm8ganNvbg=="},"json":{"result":{"a":1}},"none":{}}` + "\n"
	if got := string(steps["all"].Result); got != want {
		t.Errorf("the step was told %q, want %q (%s)", got, want, steps["all"].Error)
	}
	if got := string(steps["too-large"].Result); got != "too-large none\n" {
		t.Errorf("a step with too many results was told %q (%s)", got, steps["too-large"].Error)
	}
	p.stop(t)
	if _, err := os.Stat(l.appears(t, "all")); !os.IsNotExist(err) {
		t.Errorf("its file is still there (%v)", err)
	}
}

// The command of a step adds the steps that it writes into its file, once it has exited with 0.
func TestWork_addsSteps(t *testing.T) {
	t.Parallel()
	l := newWorkLab(t)
	var parent client.Task
	parent.OnStepFailure = client.ContinueOnStepFailure
	for _, name := range []string{"plan", "fails", "broken", "taken"} {
		parent.AddStep(name, client.Task{TaskType: "job", Payload: []byte(name), MaxAttempts: 1})
	}
	id, err := l.c.Submit(t.Context(), parent)
	if err != nil {
		t.Fatal(err)
	}
	p := l.work(t, "job", `read what
case $what in
plan) echo '[{"step":"part","task_type":"job","params":"part","depends_on":["plan"]}]' >"$CLAIMQ_ADD_STEPS"; echo "$(stat -c %a "$CLAIMQ_ADD_STEPS")" ;;
fails) echo '[{"step":"never","params":1}]' >"$CLAIMQ_ADD_STEPS"; exit 1 ;;
broken) echo '{}' >"$CLAIMQ_ADD_STEPS" ;;
taken) echo '[{"step":"fails","params":"other"}]' >"$CLAIMQ_ADD_STEPS" ;;
*) echo "$CLAIMQ_STEP"; echo "$CLAIMQ_ADD_STEPS" >part ;;
esac`)
	got := l.ended(t, id)
	var steps []string
	for _, s := range got.Steps {
		steps = append(steps, s.Name+" "+string(s.Task.Status))
	}
	if want := []string{"plan completed", "fails failed", "broken failed", "taken failed", "part completed"}; !slices.Equal(steps, want) {
		t.Errorf("the steps are %q, want %q", steps, want)
	}
	if !strings.Contains(got.Steps[2].Task.Error, "array of steps") || !strings.Contains(got.Steps[3].Task.Error, "steps[0].step") {
		t.Errorf("the errors are %q and %q", got.Steps[2].Task.Error, got.Steps[3].Task.Error)
	}
	if want := `{"plan":600,"part":"cGFydAo="}`; string(got.Result) != want {
		t.Errorf("the result is %s, want %s", got.Result, want)
	}
	p.stop(t)
	if _, err := os.Stat(l.appears(t, "part")); !os.IsNotExist(err) {
		t.Errorf("its file is still there (%v)", err)
	}
}

// giveBack stops workers whose commands do not finish. They give the tasks back, with a second signal at once. Under
// nohup the worker would inherit an ignored SIGHUP, so the test handles it first.
func (l *workLab) giveBack(t *testing.T) {
	t.Helper()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for name, stopWait := range map[string]string{"stopped": "100ms", "hung_up": "100ms", "hurried": "1h"} {
		id := l.submit(t, name, "1", 3)
		p := l.work(t, name, "echo $$ >"+name+"; exec sleep 1000", "--stop-wait", stopWait)
		pid := l.appears(t, name)
		if name == "hung_up" {
			_ = p.cmd.Process.Signal(syscall.SIGHUP)
		} else {
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
		}
		if name == "hurried" {
			_ = p.cmd.Process.Signal(os.Interrupt)
		}
		if err := p.wait(); err != nil {
			t.Errorf("%s: %v: %s", name, err, p.stderr.String())
		}
		if got, err := l.c.Get(t.Context(), id); err != nil || got.Status != client.StatusPending || got.Attempts != 0 {
			t.Errorf("%s: the task is %+v (%v)", name, got, err)
		}
		gone(t, pid)
	}
}

// stopGroup stops a command that ends at once at SIGTERM while another process of its group takes longer.
func (l *workLab) stopGroup(t *testing.T) {
	t.Helper()
	l.submit(t, "group", "1", 1)
	p := l.work(t, "group", `echo $$ >group
sh -c 'trap "while ! [ -e ends ]; do sleep 0.05; done; echo tidy >tidied; exit" TERM; echo $$ >below; while :; do sleep 0.05; done' >below.log 2>&1 &
wait`, "--stop-wait", "1ms")
	pid, below := l.appears(t, "group"), l.appears(t, "below")
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	gone(t, pid)
	if err := os.WriteFile(filepath.Join(l.dir, "ends"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := l.appears(t, "tidied"); got != "tidy" {
		t.Errorf("it left %q", got)
	}
	if err := p.wait(); err != nil {
		t.Errorf("%v: %s", err, p.stderr.String())
	}
	gone(t, below)
}

// A killed worker takes its command with it, and the task is done once more after the lease has ended. A worker that
// is told to stop finishes its tasks or gives them back. The command of a cancelled task is stopped. The leader may
// die meanwhile.
func TestWork_survives(t *testing.T) {
	t.Parallel()
	l := newWorkLab(t)

	id := l.submit(t, "killed", "1", 3)
	first := l.work(t, "killed", "echo $$ >killed; exec sleep 1000", "--lease", "3s")
	pid := l.appears(t, "killed")
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.wait()
	second := l.work(t, "killed", `echo '"second"'`)
	if got := l.ended(t, id); got.Status != client.StatusCompleted || got.Attempts != 2 || string(got.Result) != `"second"` {
		t.Errorf("after a kill the task is %s, %d attempts, %s: %s", got.Status, got.Attempts, got.Result, got.Error)
	}
	gone(t, pid)
	second.stop(t)

	id = l.submit(t, "cancelled", "1", 3)
	p := l.work(t, "cancelled", "echo $$ >cancelled; exec sleep 1000", "--lease", "1s")
	pid = l.appears(t, "cancelled")
	if out, err := claimq(t.Context(), "cancel", id, "--endpoint", l.d.url(0)).CombinedOutput(); err != nil {
		t.Fatalf("cancel: %v: %s", err, out)
	}
	if got := l.ended(t, id); got.Status != client.StatusCancelled {
		t.Errorf("the task is %s", got.Status)
	}
	gone(t, pid)
	p.stop(t)

	// While draining, running commands finish and no more tasks are claimed.
	id, next := l.submit(t, "drained", "1", 3), l.submit(t, "drained", "2", 3)
	p = l.work(t, "drained", "echo $$ >drained; while ! [ -e go ]; do sleep 0.1; done", "--lease", "10s")
	l.appears(t, "drained")
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if err := os.WriteFile(filepath.Join(l.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.wait(); err != nil {
		t.Errorf("%v: %s", err, p.stderr.String())
	}
	if got := l.ended(t, id); got.Status != client.StatusCompleted || got.Attempts != 1 {
		t.Errorf("the task is %s after %d attempts", got.Status, got.Attempts)
	}
	if got, err := l.c.Get(t.Context(), next); err != nil || got.Status != client.StatusPending || got.Attempts != 0 {
		t.Errorf("the next task is %+v (%v)", got, err)
	}

	l.giveBack(t)
	l.stopGroup(t)

	id = l.submit(t, "leader", "1", 3)
	p = l.work(t, "leader", "echo $$ >leader; while ! [ -e led ]; do sleep 0.1; done; echo '[1]'")
	l.appears(t, "leader")
	leader := regexp.MustCompile(`leader: (n\d)`).FindAllStringSubmatch(l.d.output(), -1)
	killed := l.d.pids(t)[leader[len(leader)-1][1]]
	if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.d.waitFor(t, fmt.Sprintf("(pid %d) has ended", killed))
	if err := os.WriteFile(filepath.Join(l.dir, "led"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := l.ended(t, id); got.Status != client.StatusCompleted || got.Attempts != 1 || string(got.Result) != "[1]" {
		t.Errorf("after the leader's death the task is %s, %d attempts, %s", got.Status, got.Attempts, got.Result)
	}
	p.stop(t)
}
