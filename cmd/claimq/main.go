// Command claimq is the one binary of claimq: the server, a local cluster for
// development, the load generator, and the commands for producers, workers and
// operators.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// version is what `claimq version` and the node records say. The linker sets
// it: -ldflags "-X main.version=v1.2.3".
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(), relaxTimers: setTimerSlack}
	a.width = terminalWidth(os.Stdout, a.getenv("COLUMNS"))
	code := run(ctx, a, os.Args[1:])
	stop()
	os.Exit(code)
}

// app is what a command gets from the outside world. Commands touch nothing of
// it but through these fields, so that tests can run them.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	width          int              // of the terminal that stdout is, in columns; 0: it is none
	environ        []string         // KEY=value, as os.Environ has them
	now            func() time.Time // nil: time.Now; for what is shown alone
	relaxTimers    func()           // called before anything is started, by a server and by a bench with nodes of its own; nil in tests
}

func (a *app) clock() time.Time {
	if a.now == nil {
		return time.Now()
	}
	return a.now()
}

// getenv returns the variable's value, "" if it is not set.
func (a *app) getenv(name string) string {
	for i := len(a.environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(a.environ[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// run executes the command line args, prints an error once and returns the
// process's exit code.
func run(ctx context.Context, a *app, args []string) int {
	root := newRootCommand(a)
	root.SetArgs(args)
	var err error
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		err = a.addCompletions(root)
	}
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err != nil {
		fmt.Fprintln(a.stderr, "claimq: "+errorText(err))
	}
	return exitCode(err)
}

// newRootCommand builds the whole tree. A command gets its streams and its
// environment from a, its context from cmd.Context(), and says with
// usageErrorf that it was called wrongly.
func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "claimq",
		Short: "A replicated task queue",
		Long: `claimq is a replicated task queue: tasks are submitted, workers claim them,
and what was acknowledged is on the disks of most nodes.

Exit codes: 0 done, 1 the server refused, 2 wrong usage, 3 no server or the
outcome is unknown, 4 nothing to claim or not found.`,
		Example: `  claimq dev
  claimq submit mail '{"to":"ada@example.org"}'
  claimq claim --worker w1 --type mail`,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true // ours has examples
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(a.showUsage)
	root.AddCommand(
		newServerCommand(a),
		newDevCommand(a),
		newBenchCommand(a),
		newSubmitCommand(a),
		newClaimCommand(a),
		newCompleteCommand(a),
		newFailCommand(a),
		newExtendCommand(a),
		newReleaseCommand(a),
		newRetryCommand(a),
		newCancelCommand(a),
		newUpdateCommand(a),
		newGetCommand(a),
		newListCommand(a),
		newDeleteCommand(a),
		newBatchCommand(a),
		newBulkCommand(a),
		newStepsCommand(a),
		newFinalizeCommand(a),
		newFinalizationCommand(a),
		newWhyCommand(a),
		newEventsCommand(a),
		newStatsCommand(a),
		newTypesCommand(a),
		newTypeCommand(a),
		newWorkersCommand(a),
		newTopCommand(a),
		newWorkCommand(a),
		newScheduleCommand(a),
		newClusterCommand(a),
		newSnapshotCommand(a),
		newDoctorCommand(a),
		newHealthCommand(a),
		newConfigCommand(a),
		newKeyCommand(a),
		newCompletionCommand(a),
		newManCommand(a),
		newVersionCommand(a),
	)
	wrapArgs(root)
	return root
}

// wrapArgs makes what every command's Args refuses an error of usage.
func wrapArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usageErrorf("%w\nSee '%s --help'", err, cmd.CommandPath())
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		wrapArgs(sub)
	}
}
