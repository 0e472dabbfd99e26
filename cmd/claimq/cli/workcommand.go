package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/bytesize"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/reap"
)

const (
	// permanentCode is the exit code that fails a task for good.
	permanentCode = 100
	// resultBytesMax bounds what a command prints; the server takes as much.
	resultBytesMax = 1 << 20
	// termGrace is how long a command has between SIGTERM and SIGKILL; a worker that
	// stops waits for twice as long.
	termGrace = 5 * time.Second
	// lostGrace is the same after its claim was lost: somebody else may begin with the
	// task within a second.
	lostGrace = 250 * time.Millisecond
	// startPause is how long a command that could not be started is not tried again, and its
	// task not claimed.
	startPause = time.Second
	// groupLook is how often it is looked whether something is left of the process group
	// of a command that was stopped.
	groupLook = 10 * time.Millisecond
	// pipeGrace is how long the output of a command that has ended is still read: what
	// it left running may hold it open.
	pipeGrace = time.Second
	// stopSignalWait is how long after a command was ended by SIGTERM the worker's own is still
	// waited for: a service manager signals all processes of a service, in any order.
	stopSignalWait = time.Second
	// shellSignalled is what a shell adds to the signal that ended what it ran.
	shellSignalled = 128
)

// runner runs the command of claimq work for tasks. It is safe for concurrent use.
type runner struct {
	path    string   // of the executable
	args    []string // the first is the command's name
	environ []string // without what is of one task
	out     *lockedWriter

	children reap.Children
	stopping <-chan struct{} // closed when the worker is told to stop
}

// commandEnviron is environ without the API key, whatever a task brings about, and
// without what another claim has left in it, and with the worker and its nodes: the
// command can call claimq for its own task.
func commandEnviron(environ, endpoints []string, worker string) []string {
	var kept []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "CLAIMQ_API_KEY", "CLAIMQ_API_KEY_FILE", "CLAIMQ_TOKEN", "CLAIMQ_PARAMS", "CLAIMQ_PAYLOAD":
		default:
			kept = append(kept, e)
		}
	}
	return append(kept, "CLAIMQ_WORKER="+worker, "CLAIMQ_ENDPOINTS="+strings.Join(endpoints, ","))
}

// errNotStarted is returned when the command cannot be started, as it is being replaced or
// there are too many processes.
var errNotStarted = errors.New("start the command")

// handle runs the command for a task. What it returns settles the claim.
func (r *runner) handle(ctx context.Context, job *client.Job[[]byte]) error {
	begun := time.Now()
	result, err := r.run(ctx, job)
	took := time.Since(begun).Round(time.Millisecond)
	about := fmt.Sprintf("task %s (%s, attempt %d)", job.Task.ID, job.Task.TaskType, job.Attempt)
	if isTerminated(err) && r.stops() {
		fmt.Fprintf(r.out, "%s: after %v: given back, as its command was stopped with the worker\n", about, took)
		return client.Snooze(0)
	}
	if err != nil {
		what, _, _ := strings.Cut(err.Error(), "\n")
		fmt.Fprintf(r.out, "%s: after %v: %s\n", about, took, term.Printable(what))
		if errors.Is(err, errNotStarted) { // which is not the task's fault
			pause.For(ctx, startPause)
			return client.Snooze(startPause)
		}
		return err
	}
	job.SetResult(result)
	job.OnSettled(func(err error) {
		if err != nil {
			fmt.Fprintf(r.out, "%s: done in %v, but that may not count: %s\n", about, took, term.Printable(err.Error()))
			return
		}
		fmt.Fprintf(r.out, "%s: done in %v\n", about, took)
	})
	return nil
}

// stops reports whether the worker is told to stop, or is so within stopSignalWait.
func (r *runner) stops() bool {
	timer := time.NewTimer(stopSignalWait)
	defer timer.Stop()
	select {
	case <-r.stopping:
		return true
	case <-timer.C:
		return false
	}
}

// isTerminated reports whether a command ended by SIGTERM, or a shell did that says so of what it
// ran.
func isTerminated(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && (status.Signaled() && status.Signal() == syscall.SIGTERM || status.ExitStatus() == shellSignalled+int(syscall.SIGTERM))
}

// run runs the command and returns what it printed, or why that does not count.
func (r *runner) run(ctx context.Context, job *client.Job[[]byte]) ([]byte, error) {
	var result boundedBuffer
	stderr := taskLines{prefix: "task " + job.Task.ID + ": ", out: r.out}
	cmd := &exec.Cmd{
		Path: r.path, Args: r.args, Env: r.environOf(job), SysProcAttr: commandAttr(),
		Stdin: bytes.NewReader(job.Params), Stdout: &result, Stderr: &stderr, WaitDelay: pipeGrace,
	}
	// commandAttr may tie the command's life to the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := r.children.Start(cmd); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotStarted, err)
	}
	defer r.children.Ended(cmd)
	stopped, err := r.await(ctx, cmd)
	stderr.flush()
	switch {
	case stopped != nil:
		// Many programs exit with 0 at SIGTERM: that does not mean that the work is done.
		// The worker knows itself why.
		return nil, errors.New("stopped: " + failureText(err, &stderr))
	case err != nil:
		return nil, failureOf(err, &stderr)
	case result.over:
		return nil, client.Permanent(fmt.Errorf("the command succeeded, but it printed more than %s", bytesize.Text(resultBytesMax)))
	}
	return resultOf(result.kept), nil
}

func (r *runner) environOf(job *client.Job[[]byte]) []string {
	return append(slices.Clone(r.environ),
		"CLAIMQ_TASK_ID="+job.Task.ID, "CLAIMQ_TASK_TYPE="+job.Task.TaskType,
		"CLAIMQ_ATTEMPT="+strconv.Itoa(job.Attempt), "CLAIMQ_CLAIM_TOKEN="+strconv.FormatInt(job.Token, 10))
}

// await waits for the command and returns how it ended, and why it was stopped if
// it was. Nothing of its process group is left then.
func (r *runner) await(ctx context.Context, cmd *exec.Cmd) (stopped, err error) {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	group := cmd.Process.Pid
	// The number is the group's while there is a process in it, and not given to
	// another so soon.
	defer func() { _ = syscall.Kill(-group, syscall.SIGKILL) }()
	select {
	case err := <-ended:
		return nil, withoutDelay(err)
	case <-ctx.Done():
		stopped = context.Cause(ctx)
	}
	grace := termGrace
	if errors.Is(stopped, client.ErrLeaseLost) {
		grace = lostGrace
	}
	_ = syscall.Kill(-group, syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err = <-ended:
		awaitGroup(group, timer.C)
	case <-timer.C:
		_ = syscall.Kill(-group, syscall.SIGKILL)
		err = <-ended
	}
	return stopped, withoutDelay(err)
}

// awaitGroup waits until nothing is left of the process group of a command that has ended,
// or until over.
func awaitGroup(group int, over <-chan time.Time) {
	look := time.NewTicker(groupLook)
	defer look.Stop()
	for syscall.Kill(-group, 0) == nil {
		// In a container without an init what lost its parent is ours to ask for.
		_, _ = syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
		select {
		case <-look.C:
		case <-over:
			return
		}
	}
}

// withoutDelay takes a command as ended that left something behind which holds its
// output open.
func withoutDelay(err error) error {
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

// failureOf is what a handler returns whose command has failed.
func failureOf(err error, stderr *taskLines) error {
	failure := &commandError{failureText(err, stderr), err}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == permanentCode {
		return client.Permanent(failure)
	}
	return failure
}

// commandError says how a command failed, in more words than err.
type commandError struct {
	text string
	err  error
}

func (e *commandError) Error() string { return e.text }
func (e *commandError) Unwrap() error { return e.err }

// failureText is how the command ended, and the end of what it wrote to standard
// error.
func failureText(err error, stderr *taskLines) string {
	text := "exit code 0"
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		text = fmt.Sprintf("exit code %d", exit.ExitCode())
	case err != nil:
		text = err.Error()
	}
	if end := stderr.end(); end != "" {
		text += "\n" + end
	}
	return text
}

// resultOf is a result as it is sent: JSON without the line's end after it, other
// bytes as they are, nothing if there is nothing but white space.
func resultOf(printed []byte) []byte {
	trimmed := bytes.TrimSpace(printed)
	if len(trimmed) == 0 || json.Valid(trimmed) {
		return trimmed
	}
	return printed
}

// boundedBuffer keeps up to resultBytesMax bytes and drops the rest: the command
// may go on.
type boundedBuffer struct {
	kept []byte
	over bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	room := resultBytesMax - len(b.kept)
	if len(p) > room {
		b.over = true
	}
	b.kept = append(b.kept, p[:min(len(p), room)]...)
	return len(p), nil
}
