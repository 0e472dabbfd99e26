package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

type finalizeOptions struct {
	processor string
	token     positive
	outcome   string
	failure   string
	failed    bool // --error is given, perhaps as ""
}

// NewFinalizeCommand returns the command `claimq finalize`.
func NewFinalizeCommand(a *term.App) *cobra.Command {
	var o finalizeOptions
	cmd := &cobra.Command{
		Use:   "finalize ID [RESULT | @FILE | -]",
		Short: "End a task with steps, as completed or failed",
		Long: `End a task whose steps have all ended, as completed or failed. Use this for tasks
submitted with "finalize": "claim"; others end by themselves. RESULT is JSON and is
stored byte for byte.

Several processors may try: one ends the task, the others are told the outcome, and
all exit with 0. If work before the end must be done only once, first call 'claimq
finalization claim'. With the claim's --token, nothing happens if the claim has
ended.`,
		Example: `  claimq finalize 17 --processor p1 '{"sum":42}'
  claimq finalize 17 --processor p1 --token 9 @result.json
  claimq finalize 17 --processor p1 --error "the parts do not fit"`,
	}
	session.Command(a, cmd, func(args []string) (session.Request, error) {
		o.failed = cmd.Flags().Changed("error")
		body, err := finalizeBody(a, &o, args[1:])
		if err != nil {
			return session.Request{}, err
		}
		return session.PostTask(args[0], "finalize", body, "Repeat the command: it tells what was done.")
	}, func(args []string, answer *wire.Finalized) error { return showFinalized(a, args[0], answer) })
	f := cmd.Flags()
	f.Var(&o.token, "token", "only if this is the token of the claim of its finalization")
	f.StringVar(&o.outcome, "outcome", "", "completed or failed; not given: completed, with --error failed")
	f.StringVar(&o.failure, "error", "", "why it failed")
	term.OnlyExplicit(cmd) // a token in the environment belongs to another claim
	addProcessorFlag(cmd, &o.processor)
	return cmd
}

func addProcessorFlag(cmd *cobra.Command, processor *string) {
	cmd.Flags().StringVar(processor, "processor", "", "who finalizes it (required; CLAIMQ_PROCESSOR)")
}

// showFinalized says how the task ended. If it had ended before, it says which worker ended it.
func showFinalized(a *term.App, id string, answer *wire.Finalized) error {
	text := fmt.Sprintf("task %s is %s", id, term.Printable(answer.Action))
	if answer.AlreadyFinalized {
		text += " (this had been done before"
		if answer.Task.WorkerID != nil {
			text += ", by " + term.Printable(*answer.Task.WorkerID)
		}
		text += ")"
	}
	return a.Sayf("%s", text)
}

func finalizeBody(a *term.App, o *finalizeOptions, args []string) ([]byte, error) {
	if o.processor == "" {
		return nil, term.UsageErrorf("--processor is missing: say who finalizes the task")
	}
	w := wire.Finalize{ProcessorID: o.processor, ClaimToken: uint64(o.token), Outcome: o.outcome, Error: o.failure}
	switch {
	case w.Outcome == "" && o.failed:
		w.Outcome = string(client.StatusFailed)
	case w.Outcome == "":
		w.Outcome = string(client.StatusCompleted)
	}
	switch {
	case w.Outcome == string(client.StatusCompleted) && o.failed:
		return nil, term.UsageErrorf("--error is for a task that failed")
	case w.Outcome == string(client.StatusFailed) && len(args) > 0:
		return nil, term.UsageErrorf("RESULT is for a task that completed")
	}
	var result []byte
	if len(args) > 0 {
		var err error
		if result, err = jsonArgument(a, "RESULT", args[0]); err != nil {
			return nil, err
		}
	}
	return withRaw("result", result, w)
}
