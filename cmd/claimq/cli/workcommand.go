package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/child"
	"github.com/claimq/claimq/cmd/claimq/serve"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/bytesize"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/reap"
)

const (
	// permanentCode is the exit code that fails a task for good.
	permanentCode = 100
	// resultBytesMax bounds the output of a command. The server takes results up to this size.
	resultBytesMax = 1 << 20
	// stepsBytesMax bounds the steps that a command adds. The server takes up to this size.
	stepsBytesMax = 8 << 20
	// startPause is the pause after a command could not be started. In that time the command is not tried again and
	// its task is not claimed.
	startPause = time.Second
)

// Variables of a task that is a step. The last two name files: one to read, and one into which the command may write steps
// to add.
const (
	parentVariable       = "CLAIMQ_PARENT_ID"
	stepVariable         = "CLAIMQ_STEP"
	dependenciesVariable = "CLAIMQ_DEPENDENCIES"
	addStepsVariable     = "CLAIMQ_ADD_STEPS"
)

// signalVariable is the JSON of the signal that the task was handed.
const signalVariable = "CLAIMQ_SIGNAL"

// runner runs the command of claimq work for tasks. Concurrent calls are safe.
type runner struct {
	c       *client.Client
	path    string   // path of the executable
	args    []string // the first is the command's name
	environ []string // without the variables of one task
	out     *child.Output

	children reap.Children
	stopping <-chan struct{} // closed when the worker is told to stop
}

// commandEnviron returns environ with the worker and its nodes, so that the command can call claimq for its own task.
// It leaves out the API key, because a task may make the command do anything. It also leaves out variables of another
// claim.
func commandEnviron(environ, endpoints []string, worker string) []string {
	var kept []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "CLAIMQ_API_KEY", "CLAIMQ_API_KEY_FILE", "CLAIMQ_TOKEN", "CLAIMQ_PARAMS", "CLAIMQ_PAYLOAD",
			parentVariable, stepVariable, dependenciesVariable, addStepsVariable, signalVariable:
		default:
			kept = append(kept, e)
		}
	}
	return append(kept, "CLAIMQ_WORKER="+worker, "CLAIMQ_ENDPOINTS="+strings.Join(endpoints, ","))
}

// errNotStarted is returned when the command cannot be started, for example because its file is being replaced or
// because too many processes run.
var errNotStarted = errors.New("start the command")

// handle runs the command for a task. The worker settles the claim by the result.
func (r *runner) handle(ctx context.Context, job *client.Job[[]byte]) error {
	begun := time.Now()
	result, err := r.run(ctx, job)
	took := time.Since(begun).Round(time.Millisecond)
	about := fmt.Sprintf("task %s (%s, attempt %d)", job.Task.ID, job.Task.TaskType, job.Attempt)
	if child.Terminated(err) && child.Stops(r.stopping) {
		fmt.Fprintf(r.out, "%s: after %v: given back, as its command was stopped with the worker\n", about, took)
		return client.Snooze(0)
	}
	if err != nil {
		what, _, _ := strings.Cut(err.Error(), "\n")
		fmt.Fprintf(r.out, "%s: after %v: %s\n", about, took, term.Printable(what))
		if errors.Is(err, errNotStarted) { // this is not the task's fault
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

// run runs the command and returns its output, or an error if that does not count.
func (r *runner) run(ctx context.Context, job *client.Job[[]byte]) ([]byte, error) {
	environ, files, err := r.environOf(ctx, job)
	defer files.remove()
	if err != nil {
		return nil, err
	}
	var result boundedBuffer
	stderr := child.NewLines(func() string { return "task " + job.Task.ID + ": " }, r.out)
	cmd := &exec.Cmd{
		Path: r.path, Args: r.args, Env: environ, SysProcAttr: child.Attr(),
		Stdin: bytes.NewReader(job.Params), Stdout: &result, Stderr: stderr, WaitDelay: child.PipeGrace,
	}
	// child.Attr may tie the command's life to the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := r.children.Start(cmd); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotStarted, err)
	}
	defer r.children.Ended(cmd)
	stopped, err := r.await(ctx, cmd, job)
	stderr.Flush()
	switch {
	case stopped != nil:
		// Many programs exit with 0 at SIGTERM, so 0 does not mean that the work is done. The worker knows itself why
		// it stopped the command.
		return nil, errors.New("stopped: " + child.Failure(err, stderr))
	case err != nil:
		return nil, failureOf(err, stderr)
	case result.over:
		return nil, client.Permanent(fmt.Errorf("the command succeeded, but it printed more than %s", bytesize.Text(resultBytesMax)))
	}
	return resultOf(result.kept), files.addSteps(ctx, job)
}

// stepFiles are the paths of the files that the command of a step gets; "" = none.
type stepFiles struct{ dependencies, toAdd string }

func (f *stepFiles) remove() {
	for _, path := range []string{f.dependencies, f.toAdd} {
		if path != "" {
			_ = os.Remove(path)
		}
	}
}

// addSteps adds the steps that the command has written into its file, if any.
func (f *stepFiles) addSteps(ctx context.Context, job *client.Job[[]byte]) error {
	if f.toAdd == "" {
		return nil
	}
	steps, err := readBounded(f.toAdd, stepsBytesMax)
	if steps = bytes.TrimSpace(steps); err == nil && len(steps) == 0 {
		return nil
	}
	if err == nil && (steps[0] != '[' || !json.Valid(steps)) {
		err = errors.New("it must be a JSON array of steps")
	}
	if err != nil {
		return client.Permanent(fmt.Errorf("the command succeeded, but its steps in %s are not added: %w", addStepsVariable, err))
	}
	return serve.AddSteps(ctx, job, steps)
}

// readBounded reads a file of up to most bytes.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("they take more than %s", bytesize.Text(most))
	}
	return b, err
}

// environOf returns the environment of the command for the task, and the files that it names, which the caller must remove
// once the command has ended, also after an error. A step's command also runs without the results of its dependencies, if
// the key may not read them or they are too large. Errors: errNotStarted.
func (r *runner) environOf(ctx context.Context, job *client.Job[[]byte]) (environ []string, files stepFiles, err error) {
	environ = append(slices.Clone(r.environ),
		"CLAIMQ_TASK_ID="+job.Task.ID, "CLAIMQ_TASK_TYPE="+job.Task.TaskType,
		"CLAIMQ_ATTEMPT="+strconv.Itoa(job.Attempt), "CLAIMQ_CLAIM_TOKEN="+strconv.FormatInt(job.Token, 10))
	if job.Task.Signal != nil {
		environ = append(environ, signalVariable+"="+string(job.Task.Signal))
	}
	if job.Task.ParentID == "" {
		return environ, files, nil
	}
	if files.toAdd, err = writeFile("claimq-steps-*.json", nil); err != nil {
		return nil, files, fmt.Errorf("%w: %w", errNotStarted, err)
	}
	environ = append(environ, parentVariable+"="+job.Task.ParentID, stepVariable+"="+job.Task.StepName, addStepsVariable+"="+files.toAdd)
	results, tooLarge, err := serve.Dependencies(ctx, r.c, job.Task)
	switch {
	case tooLarge, errors.Is(err, client.ErrTaskNotFound), errors.Is(err, client.ErrForbidden):
		return environ, files, nil
	case err != nil:
		return nil, files, fmt.Errorf("%w: %w", errNotStarted, err)
	}
	text, err := json.Marshal(results)
	if err == nil {
		files.dependencies, err = writeFile("claimq-dependencies-*.json", text)
	}
	if err != nil {
		return nil, files, fmt.Errorf("%w: %w", errNotStarted, err)
	}
	return append(environ, dependenciesVariable+"="+files.dependencies), files, nil
}

// writeFile writes the text into a new temporary file that only this user can read, and returns its path.
func writeFile(pattern string, text []byte) (path string, err error) {
	f, err := os.CreateTemp("", pattern)
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// await waits for the command. It returns how the command ended, and why it was stopped if it was. After that no
// process of its group is left.
func (r *runner) await(ctx context.Context, cmd *exec.Cmd, job *client.Job[[]byte]) (stopped, err error) {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	group := cmd.Process.Pid
	// The number stays with the group while it has a process, and the system does not reuse it so soon.
	defer func() { _ = syscall.Kill(-group, syscall.SIGKILL) }()
	select {
	case err := <-ended:
		return nil, child.WithoutDelay(err)
	case <-ctx.Done():
		stopped = context.Cause(ctx)
	}
	grace := child.Grace
	if errors.Is(stopped, client.ErrLeaseLost) {
		grace = child.LostGrace(job.LeaseEndsAt())
	}
	_ = syscall.Kill(-group, syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err = <-ended:
		child.AwaitGroup(group, timer.C)
	case <-timer.C:
		_ = syscall.Kill(-group, syscall.SIGKILL)
		err = <-ended
	}
	return stopped, child.WithoutDelay(err)
}

// failureOf turns the failure of a command into the handler's error.
func failureOf(err error, stderr *child.Lines) error {
	failure := &commandError{child.Failure(err, stderr), err}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == permanentCode {
		return client.Permanent(failure)
	}
	return failure
}

// commandError describes how a command failed, in more words than err.
type commandError struct {
	text string
	err  error
}

func (e *commandError) Error() string { return e.text }
func (e *commandError) Unwrap() error { return e.err }

// resultOf returns the result to send. It removes the line end after JSON, keeps other output byte for byte, and
// returns nothing for white space alone.
func resultOf(printed []byte) []byte {
	trimmed := bytes.TrimSpace(printed)
	if len(trimmed) == 0 || json.Valid(trimmed) {
		return trimmed
	}
	return printed
}

// boundedBuffer keeps up to resultBytesMax bytes and drops the rest, so that the command can go on.
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
