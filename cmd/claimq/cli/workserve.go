package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/child"
	"github.com/claimq/claimq/cmd/claimq/serve"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/cmd/claimq/workmeter"
)

// checkServe checks the flags that need --serve, and the flags that do not go with it.
func (o *workOptions) checkServe(flags *pflag.FlagSet) error {
	if !o.serve {
		for _, name := range []string{"processes", "tasks-per-process", "memory-per-process", "listen"} {
			if flags.Changed(name) {
				return term.UsageErrorf("--%s goes with --serve alone", name)
			}
		}
		return nil
	}
	for _, name := range []string{"type", "concurrency"} {
		if flags.Changed(name) {
			return term.UsageErrorf("--%s does not go with --serve: the program says it in its hello", name)
		}
	}
	if !flags.Changed("timeout") {
		o.attempt = servedTimeout
	}
	path, unix := strings.CutPrefix(o.listen, "unix:")
	switch {
	case o.attempt <= 0:
		return term.UsageErrorf("--timeout is %v: with --serve it must be above 0, as what hangs is found by it", o.attempt)
	case o.processes < 1 || o.processes > workConcurrencyMax:
		return term.UsageErrorf("--processes is %d: it must be 1 to %d", o.processes, workConcurrencyMax)
	case o.tasksPerProcess < 0:
		return term.UsageErrorf("--tasks-per-process is %d: it must not be negative", o.tasksPerProcess)
	case o.memoryPerProcess < 0:
		return term.UsageErrorf("--memory-per-process is %d: it must not be negative", o.memoryPerProcess)
	case o.memoryPerProcess > 0 && !serve.MemoryKnown:
		return term.UsageErrorf("--memory-per-process is for Linux alone")
	case flags.Changed("listen") && (!unix || path == ""):
		return term.UsageErrorf("--listen is %q: it must be unix: and the path of a socket", o.listen)
	case o.listen != "" && flags.NArg() > 0:
		return term.UsageErrorf("--listen takes no COMMAND: the program that connects is started by you")
	case o.listen != "" && (o.tasksPerProcess > 0 || o.memoryPerProcess > 0):
		return term.UsageErrorf("--listen starts no processes: --tasks-per-process and --memory-per-process do not go with it")
	}
	o.concurrency = o.processes // each program uses as many descriptors as a command
	o.listen = path
	return nil
}

// serveTasks works on tasks with programs that keep running.
func serveTasks(ctx context.Context, s session.Talk, o *workOptions, path string, args []string) error {
	if err := o.checkFiles(); err != nil {
		return err
	}
	out, dropped := detachedOutput(s.App)
	cfg := o.config(out)
	plain, err := client.NewWorker(s.Client, cfg) // provides the id before the types are known
	if err != nil {
		return term.UsageErrorf("%w", err)
	}
	hurries := make(chan func(), 1)
	ctx, end := watchSignals(ctx, func() {
		select {
		case now := <-hurries:
			now()
		default: // no worker yet, so nothing to hurry
		}
	})
	defer end()
	if o.listen != "" {
		if o.listen, err = filepath.Abs(o.listen); err != nil {
			return err
		}
	}
	m := &workmeter.Meter{Version: s.App.Version, WorkerID: plain.ID(), Client: s.Client, Dropped: dropped, Programs: &serve.Counts{}}
	endMetrics, err := o.serveMetrics(m, out)
	if err != nil {
		return err
	}
	defer endMetrics()
	endWatch := o.watch(ctx, s, out)
	defer endWatch()
	w, err := serve.Run(ctx, s.Client, serve.Options{
		Processes: o.processes, TasksPerProcess: o.tasksPerProcess, MemoryPerProcess: int64(o.memoryPerProcess) << 20, Timeout: o.attempt, Listen: o.listen,
		Path: path, Args: args, Environ: commandEnviron(s.App.Environ, o.Endpoints, plain.ID()), Stdout: s.App.Stdout, Out: out,
		Worker: cfg, ID: plain.ID(), Counts: m.Programs,
	}, func(w *client.Worker) {
		m.Work(w)
		hurries <- w.StopNow
	})
	if w == nil {
		return err
	}
	return stopped(out, w, err)
}

// config builds the worker's configuration, without its concurrency.
func (o *workOptions) config(out *child.Output) client.WorkerConfig {
	stopWait := o.stopWait
	if stopWait == 0 {
		stopWait = client.NoStopWait
	}
	return client.WorkerConfig{
		ID: o.worker, Lease: o.lease, Timeout: o.attempt, StopWait: stopWait,
		Logger: slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

// detachedOutput returns the output for a worker's messages, which it never waits for, and a function that returns how
// many of its lines were dropped.
func detachedOutput(app *term.App) (out *child.Output, dropped func() uint64) {
	dropped = app.DetachStderr(func(lines uint64) {
		fmt.Fprintf(app.Stderr, "claimq: %d lines were dropped, as they were not read\n", lines)
	})
	return child.NewOutput(app.Stderr), dropped
}

// stopped says how a worker has ended.
func stopped(out *child.Output, w *client.Worker, err error) error {
	refused := errors.Is(err, client.ErrUnauthorized) || errors.Is(err, client.ErrForbidden)
	if err != nil && !refused {
		return err
	}
	stats := w.Stats()
	fmt.Fprintf(out, "worker %s has stopped: %d completed, %d failed, %d given back, %d lost\n", w.ID(), stats.Completed, stats.Failed, stats.Released, stats.Lost)
	if refused {
		return &term.CallError{About: "the worker's key was refused: ", Err: err}
	}
	return nil
}
