package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/child"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/cmd/claimq/workmeter"
	"github.com/claimq/claimq/internal/descriptors"
)

// workConcurrencyMax bounds how many commands run at a time, because each one needs a thread and up to 1 MiB for its
// output.
const workConcurrencyMax = 1_000

type workOptions struct {
	session.Flags
	worker                   string
	types                    []string
	concurrency              int
	lease, attempt, stopWait time.Duration
	metricsAddr              string

	serve                      bool
	processes, tasksPerProcess int
	memoryPerProcess           int // in MiB
	listen                     string
}

// servedTimeout is the --timeout of --serve. It finds a program that hangs.
const servedTimeout = time.Hour

// NewWorkCommand returns the command `claimq work`.
func NewWorkCommand(a *term.App) *cobra.Command {
	var o workOptions
	cmd := &cobra.Command{
		Use: "work --type TYPE [flags] -- COMMAND [ARG...] | --serve [flags] -- COMMAND [ARG...]",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("listen") { // such a worker has no COMMAND
				return nil
			}
			return term.Arguments(cmd, args)
		},
		Short: "Run a command for each task: a worker without code",
		Long: `Run a command for each task of a type until stopped: claim the task, run COMMAND,
extend the claim while it runs, and settle the task according to its exit code.

COMMAND reads the task's params (or payload) from standard input. Its standard output
is the result: JSON as JSON, anything else as bytes, up to 1 MiB. If it fails, the
end of its standard error is stored with the failure. Exit code 0 completes the task,
100 fails it for good, any other fails the attempt. No shell runs COMMAND: for a
shell command give sh -c 'LINE'.

COMMAND gets the environment of this process without CLAIMQ_API_KEY and
CLAIMQ_API_KEY_FILE, and CLAIMQ_TASK_ID, _TASK_TYPE, _ATTEMPT, _CLAIM_TOKEN, _WORKER
and _ENDPOINTS; _SIGNAL, the JSON that a task was handed that waited for a signal; for
a step also CLAIMQ_PARENT_ID, _STEP, in _DEPENDENCIES the path of a JSON file with the
results of the steps that it depends on, and in _ADD_STEPS that of an empty file: the
steps that COMMAND writes into it, a JSON array as for submit --steps, are added to the
parent when it exits with 0.

If COMMAND exceeds its timeout, the task is cancelled or the claim is lost, COMMAND
and its process group get SIGTERM, and SIGKILL 5 s later (250 ms later if the claim
is lost). COMMAND may run again for the same task; docs/workers.md explains what it
must do about that.

With --serve, COMMAND keeps running: it is started --processes times, says which
types it handles and how many at once, and takes task after task over a socket
(docs/protocol.md). If a process dies, its tasks fail at once and it is started
again. If it goes on for 5 s after a task's timeout, it is killed. With --listen
there is no COMMAND: programs that you start yourself, for example in a debugger,
connect to the socket.

SIGTERM, SIGHUP and Ctrl-C stop claiming. Running commands may take --stop-wait to
finish; after that, or at a second signal, they are stopped and their tasks released.
A refused key also stops claiming, with exit code 1. If the cluster does not answer,
the command says so within 5 s, keeps trying, and says when it answers.`,
		Example: `  claimq work --type mail -- ./send-mail
  claimq work --type thumbnail --concurrency 4 --timeout 1m -- python3 resize.py
  claimq work --type report --type invoice --lease 5m -- sh -c 'jq .month | xargs ./report'
  claimq work --serve --processes 4 -- python3 worker.py
  claimq work --serve --listen unix:/tmp/worker.sock`,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			return o.SetFromVariables(a, cmd.Flags())
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			var path string
			if o.listen == "" {
				var err error
				if path, err = exec.LookPath(args[0]); err != nil {
					return term.UsageErrorf("the command cannot be started: %w", err)
				}
			}
			o.Timeout, o.Outages = session.CallTimeout, session.NewOutages()
			if o.serve {
				return session.With(a, &o.Flags, func(s session.Talk) error { return serveTasks(cmd.Context(), s, &o, path, args) })
			}
			return session.With(a, &o.Flags, func(s session.Talk) error { return work(cmd.Context(), s, &o, path, args) })
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *workOptions) addFlags(f *pflag.FlagSet) {
	f.SetInterspersed(false) // flags after COMMAND belong to COMMAND
	o.AddNodeFlags(f)
	f.StringVar(&o.worker, "worker", "", "the worker's name: letters, digits and _ . : @ -; none: made of the host's and something random")
	f.StringSliceVar(&o.types, "type", nil, "task type to take; repeatable; not with --serve, whose program says it")
	f.IntVar(&o.concurrency, "concurrency", 1, "how many commands run at a time, up to 1000")
	term.DurationVar(f, &o.lease, "lease", 0, "how long a claim lasts unless it is extended; 0: the task's own, else its type's, else the server's default")
	term.DurationVar(f, &o.attempt, "timeout", 0, "how long a command may run; 0: no limit; with --serve of types for which the program says none, and 1h by default (no variable)")
	term.DurationVar(f, &o.stopWait, "stop-wait", 30*time.Second, "how long commands have to finish after SIGTERM")
	f.StringVar(&o.metricsAddr, "metrics-addr", "", "HOST:PORT where GET /metrics tells Prometheus of the worker; none: nowhere")
	f.BoolVar(&o.serve, "serve", false, "COMMAND keeps running and takes task after task")
	f.IntVar(&o.processes, "processes", 1, "of --serve: how many processes of COMMAND, up to 1000; with --listen how many programs may connect")
	f.IntVar(&o.tasksPerProcess, "tasks-per-process", 0, "of --serve: after how many tasks a process is asked to end and begun again; 0: never")
	f.IntVar(&o.memoryPerProcess, "memory-per-process", 0, "of --serve: from how many MiB of memory on a process is asked to end and begun again (Linux); 0: never")
	f.StringVar(&o.listen, "listen", "", "of --serve: unix:PATH, a socket to which programs connect that you start yourself, in place of COMMAND")
	// CLAIMQ_TIMEOUT says how long calls are tried. It must not end commands.
	f.Lookup("timeout").Annotations = map[string][]string{term.ExplicitOnly: {}}
}

var workTypePattern = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)

func (o *workOptions) check(flags *pflag.FlagSet) error {
	slices.Sort(o.types)
	o.types = slices.Compact(o.types)
	if err := o.checkServe(flags); err != nil {
		return err
	}
	switch {
	case o.serve:
	case len(o.types) == 0:
		return term.UsageErrorf("--type is missing: say which tasks to take")
	case o.concurrency < 1 || o.concurrency > workConcurrencyMax:
		return term.UsageErrorf("--concurrency is %d: it must be 1 to %d", o.concurrency, workConcurrencyMax)
	case o.stopWait < 0:
		return term.UsageErrorf("--stop-wait is %v: it must not be negative", o.stopWait)
	}
	for _, name := range o.types {
		if !workTypePattern.MatchString(name) || name == "." || name == ".." {
			return term.UsageErrorf("--type is %q: it must be 1 to 128 of A-Z a-z 0-9 _ . : -, but not . or ..", name)
		}
	}
	if _, err := wholeMS("--timeout", o.attempt); err != nil {
		return err
	}
	lease, err := wholeMS("--lease", o.lease)
	if err == nil && lease != 0 && (lease < wire.LeaseMSMin || lease > wire.LeaseMSMax) {
		err = term.UsageErrorf("--lease is %v: it must be from 100ms to 1d", o.lease)
	}
	return err
}

// commandFiles counts the descriptors of a running command: three pipes, the process, and a connection for its claim.
const commandFiles = 5

// checkFiles checks that the process may open enough files for --concurrency.
func (o *workOptions) checkFiles() error {
	limit, err := descriptors.Limit()
	if err != nil {
		return err
	}
	if most := (limit - min(limit, descriptors.Files)) / commandFiles; uint64(o.concurrency) > most {
		return term.UsageErrorf("--concurrency is %d: it must be at most %d, as this process may open %d files (ulimit -n) and each command takes %d", o.concurrency, most, limit, commandFiles)
	}
	return nil
}

// work runs the worker until ctx ends. It returns an error only for wrong options, a refused key or commands that did
// not stop. If the cluster does not answer, it asks again.
func work(ctx context.Context, s session.Talk, o *workOptions, path string, args []string) error {
	if err := o.checkFiles(); err != nil {
		return err
	}
	out, dropped := detachedOutput(s.App)
	cfg := o.config(out)
	cfg.Concurrency = o.concurrency
	w, err := client.NewWorker(s.Client, cfg)
	if err != nil {
		return term.UsageErrorf("%w", err)
	}
	m := &workmeter.Meter{Version: s.App.Version, WorkerID: w.ID(), Client: s.Client, Dropped: dropped}
	m.Work(w)
	endMetrics, err := o.serveMetrics(m, out)
	if err != nil {
		return err
	}
	defer endMetrics()
	ctx, end := watchSignals(ctx, w.StopNow)
	defer end()
	r := &runner{c: s.Client, path: path, args: args, out: out, environ: commandEnviron(s.App.Environ, o.Endpoints, w.ID()), stopping: ctx.Done()}
	adopting, endAdopting := context.WithCancel(context.Background())
	defer endAdopting()
	go r.children.Adopt(adopting)
	for _, name := range o.types {
		client.Handle(w, name, r.handle)
	}
	fmt.Fprintf(out, "worker %s takes %s, %d at a time\n", w.ID(), strings.Join(o.types, ", "), o.concurrency)
	endWatch := o.watch(ctx, s, out)
	defer endWatch()
	return stopped(out, w, w.Run(ctx))
}

// watch tells the user of outages of the cluster until end is called.
func (o *workOptions) watch(ctx context.Context, s session.Talk, out *child.Output) (end func()) {
	return o.Outages.Watch(ctx, s.Client, func(text string) { fmt.Fprintln(out, term.Printable(text)) })
}

// serveMetrics serves the worker's metrics until end is called, if --metrics-addr is given.
func (o *workOptions) serveMetrics(m *workmeter.Meter, out *child.Output) (end func(), err error) {
	if o.metricsAddr == "" {
		return func() {}, nil
	}
	at, end, err := m.Listen(o.metricsAddr)
	if err == nil {
		fmt.Fprintf(out, "metrics at http://%s/metrics\n", at)
	}
	return end, err
}

// watchSignals returns a copy of ctx that ends at the first signal to stop. The second signal calls hurry. An ignored
// SIGHUP, as under nohup, stays ignored. The caller must call end.
func watchSignals(ctx context.Context, hurry func()) (watched context.Context, end func()) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	got := make(chan os.Signal, 2)
	signal.Notify(got, signals...)
	watched, cancel := context.WithCancel(ctx)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for _, act := range []func(){cancel, hurry} {
			select {
			case <-got:
				act()
			case <-over:
				return
			}
		}
	}()
	return watched, func() {
		signal.Stop(got)
		close(over)
		<-ended
		cancel()
	}
}
