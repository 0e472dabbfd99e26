// Command claimq is the only binary of claimq: the server, a local cluster for development, the load generator, and
// the commands for producers, workers and operators.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/cli"
	"github.com/claimq/claimq/cmd/claimq/local"
	"github.com/claimq/claimq/cmd/claimq/operate"
	"github.com/claimq/claimq/cmd/claimq/server"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// version is printed by `claimq version` and stored in node records. The linker sets it: -ldflags "-X
// main.version=v1.2.3".
var version = "dev"

// The process executes itself again for its timers (server.SetTimerSlack). Staying on the first thread keeps the
// signal that it gets when its parent dies (prctl(2)).
func init() { runtime.LockOSThread() }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	a := &term.App{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Version: version, Stopped: ctx.Done(), RelaxTimers: server.SetTimerSlack}
	a.Interactive = term.IsTerminal(os.Stderr)
	a.Width = term.WidthOf(os.Stdout, a.Getenv("COLUMNS"))
	code := run(ctx, a, os.Args[1:])
	stop()
	os.Exit(code)
}

// run executes the command line args, prints an error once and returns the
// process's exit code.
func run(ctx context.Context, a *term.App, args []string) int {
	defer a.FlushStderr()
	root := newRootCommand(a)
	root.SetArgs(args)
	suggestTopics(root)
	var err error
	cmd := root
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		err = addCompletions(root)
	}
	if err == nil {
		cmd, err = root.ExecuteContextC(ctx)
	}
	if err != nil {
		cli.FailEval(a, args)
		fmt.Fprintln(a.Stderr, "claimq: "+term.ErrorText(cmd, err))
	}
	return term.ExitCode(err)
}

// newRootCommand builds the whole tree of commands. A command uses the streams and the environment of a and the
// context of cmd.Context(), and returns term.UsageErrorf if it was called wrongly.
func newRootCommand(a *term.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "claimq",
		Short: "A replicated task queue",
		Long: `claimq is a replicated task queue. Programs submit tasks, and workers claim them.
Once a task is acknowledged, it is on the disks of a majority of the nodes.

Exit codes: 0 done, 1 the server refused, 2 wrong usage, 3 no server or the outcome
is unknown, 4 nothing to claim or not found, 5 apply --dry-run found differences.`,
		Example: `  claimq dev
  claimq submit mail '{"to":"ada@example.org"}'
  claimq claim --worker w1 --type mail`,
		Args:          term.UnknownCommand,
		Version:       version,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentPreRunE = term.Given
	root.CompletionOptions.DisableDefaultCmd = true // ours has examples
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(term.FlagError)
	root.SetUsageFunc(func(cmd *cobra.Command) error { return showUsage(a, cmd) })
	root.AddCommand(
		server.NewCommand(a),
		local.NewDevCommand(a),
		local.NewBenchCommand(a),
		local.NewTestServerCommand(a),
		cli.NewSubmitCommand(a),
		cli.NewClaimCommand(a),
		cli.NewCompleteCommand(a),
		cli.NewFailCommand(a),
		cli.NewExtendCommand(a),
		cli.NewReleaseCommand(a),
		cli.NewRetryCommand(a),
		cli.NewCancelCommand(a),
		cli.NewSignalCommand(a),
		cli.NewUpdateCommand(a),
		cli.NewGetCommand(a),
		cli.NewListCommand(a),
		cli.NewDeleteCommand(a),
		cli.NewBatchCommand(a),
		cli.NewBulkCommand(a),
		cli.NewStepsCommand(a),
		cli.NewFinalizeCommand(a),
		cli.NewFinalizationCommand(a),
		cli.NewWhyCommand(a),
		cli.NewFailuresCommand(a),
		cli.NewEventsCommand(a),
		cli.NewStatsCommand(a),
		cli.NewHistoryCommand(a),
		cli.NewTypesCommand(a),
		cli.NewTypeCommand(a),
		cli.NewShareCommand(a),
		cli.NewDefaultsCommand(a),
		cli.NewWorkersCommand(a),
		newTopCommand(a),
		cli.NewWorkCommand(a),
		cli.NewScheduleCommand(a),
		cli.NewApplyCommand(a),
		operate.NewClusterCommand(a),
		operate.NewSnapshotCommand(a),
		operate.NewDoctorCommand(a),
		operate.NewHealthCommand(a),
		operate.NewConfigCommand(a),
		operate.NewKeyCommand(a),
		newCompletionCommand(a),
		newVersionCommand(a),
	)
	term.EachCommand(root, func(cmd *cobra.Command, _ string) {
		if cmd.Args == nil {
			cmd.Args = term.Arguments
		}
	})
	root.SetVersionTemplate("claimq {{.Version}}\ntime zones " + zonesVersion() + "\n") // as the command prints it
	return root
}
