package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// NewFinalizationCommand returns the command `claimq finalization`.
func NewFinalizationCommand(a *term.App) *cobra.Command {
	return term.Lead(&cobra.Command{
		Use:   "finalization",
		Short: "Claim the right to end a task with steps",
		Example: `  claimq finalization claim 17 --processor p1 --for 2m
  claimq finalization show 17
  claimq finalization release 17 --processor p1`,
	},
		newFinalizationClaimCommand(a),
		newFinalizationExtendCommand(a),
		newFinalizationReleaseCommand(a),
		newFinalizationShowCommand(a),
	)
}

// finalizationOptions say whose claim is meant, and how long it lasts.
type finalizationOptions struct {
	session.Flags
	processor string
	lasts     time.Duration
}

// postFinalization makes a call about the processor's claim, and decodes its answer.
func postFinalization(a *term.App, cmd *cobra.Command, o *finalizationOptions, arg, verb string, answer any, done func(id uint64, shown bool) error) error {
	if o.processor == "" {
		return term.UsageErrorf("--processor is missing: say who would finalize the task")
	}
	if o.lasts < 0 || o.lasts%time.Second != 0 {
		return term.UsageErrorf("--for is %v: it must be whole seconds, not negative", o.lasts)
	}
	return session.WithTask(a, &o.Flags, arg, func(s session.Talk, id uint64) error {
		body := wire.FinalizationClaim{ProcessorID: o.processor, TimeoutSeconds: int64(o.lasts / time.Second)}
		r, err := session.PostTask(arg, "finalization/"+verb, body, "Repeat the command: the server knows the claim by its processor.")
		if err != nil {
			return err
		}
		shown, err := s.Call(cmd.Context(), r, answer)
		if err != nil {
			return err
		}
		return done(id, shown)
	})
}

func newFinalizationClaimCommand(a *term.App) *cobra.Command {
	var o finalizationOptions
	cmd := &cobra.Command{
		Use:   "claim ID",
		Short: "Claim the right to finalize a task, or extend the claim",
		Long: `Claim the right to finalize a task, or extend the claim that the processor has. It is
granted to one processor at a time, once a step has completed or failed. A processor
that dies frees its claim when its time is over.

Exit code 0: claimed; 1: not, with the reason; 4: there is no such task.`,
		Example: "  claimq finalization claim 17 --processor p1\n  claimq finalization claim 17 --processor p1 --for 2m",
		RunE: func(cmd *cobra.Command, args []string) error {
			var answer wire.FinalizationClaimed
			return postFinalization(a, cmd, &o, args[0], "claim", &answer, func(id uint64, shown bool) error {
				if !answer.Claimed {
					return &term.NotHeldError{Text: claimText(&answer), NotFound: answer.TaskState == string(client.FinalizationNotFound)}
				}
				if shown {
					return nil
				}
				return a.Sayf("%s", claimText(&answer))
			})
		},
	}
	session.AddFlags(a, cmd, &o.Flags)
	cmd.Flags().DurationVar(&o.lasts, "for", 0, "how long the claim lasts, 1s to 1h; 0: 30s")
	term.OnlyExplicit(cmd)
	addProcessorFlag(cmd, &o.processor)
	return cmd
}

// claimText is the server's words, and who has the claim with which token.
func claimText(w *wire.FinalizationClaimed) string {
	text := term.Printable(w.Message)
	switch {
	case w.ClaimToken != nil:
		text += fmt.Sprintf(": token %d", *w.ClaimToken)
	case w.AlreadyClaimedBy != nil:
		text += ": by " + term.Printable(*w.AlreadyClaimedBy)
	}
	if w.TaskState != string(client.FinalizationNotFound) {
		text += " (" + term.Printable(w.TaskState) + ")"
	}
	return text
}

func newFinalizationExtendCommand(a *term.App) *cobra.Command {
	var o finalizationOptions
	cmd := &cobra.Command{
		Use:     "extend ID",
		Short:   "Extend the processor's claim",
		Long:    "Extend the processor's claim; it is never shortened. Exit code 1: the processor does not have it, or not any more.",
		Example: "  claimq finalization extend 17 --processor p1 --for 2m",
		RunE: func(cmd *cobra.Command, args []string) error {
			var answer wire.FinalizationExtended
			return postFinalization(a, cmd, &o, args[0], "extend", &answer, func(id uint64, shown bool) error {
				return heldText(a, &o, id, shown, answer.Extended, "is extended")
			})
		},
	}
	session.AddFlags(a, cmd, &o.Flags)
	cmd.Flags().DurationVar(&o.lasts, "for", 0, "how long from now, 1s to 1h; 0: as long as it was claimed for")
	term.OnlyExplicit(cmd)
	addProcessorFlag(cmd, &o.processor)
	return cmd
}

func newFinalizationReleaseCommand(a *term.App) *cobra.Command {
	var o finalizationOptions
	cmd := &cobra.Command{
		Use:     "release ID",
		Short:   "Give the processor's claim up",
		Long:    "Give the processor's claim up. Exit code 1: the processor does not have it, or not any more.",
		Example: "  claimq finalization release 17 --processor p1",
		RunE: func(cmd *cobra.Command, args []string) error {
			var answer wire.FinalizationReleased
			return postFinalization(a, cmd, &o, args[0], "release", &answer, func(id uint64, shown bool) error {
				return heldText(a, &o, id, shown, answer.Released, "is released")
			})
		},
	}
	session.AddFlags(a, cmd, &o.Flags)
	addProcessorFlag(cmd, &o.processor)
	return cmd
}

// heldText says that the claim was changed, or that there is none.
func heldText(a *term.App, o *finalizationOptions, id uint64, shown, held bool, what string) error {
	if !held {
		return &term.NotHeldError{Text: fmt.Sprintf("%s does not hold the finalization of task %d", term.Printable(o.processor), id)}
	}
	if shown {
		return nil
	}
	return a.Sayf("the claim of %s on the finalization of task %d %s", term.Printable(o.processor), id, what)
}

func newFinalizationShowCommand(a *term.App) *cobra.Command {
	return session.Look(a, &cobra.Command{
		Use:     "show ID",
		Short:   "Show who tried to finalize a task, and who may",
		Example: "  claimq finalization show 17",
	}, session.AtTask("finalization"), func(answer *wire.Finalization) error { return showFinalization(a, answer) })
}

func showFinalization(a *term.App, w *wire.Finalization) error {
	held := "nobody holds the claim"
	if w.ClaimedBy != nil {
		held = term.Printable(*w.ClaimedBy) + " holds the claim"
		if w.ClaimExpiresAt != nil {
			held += ", until " + a.ShowTime(*w.ClaimExpiresAt) + " unless it extends"
		}
	}
	if err := a.Sayf("%s", held); err != nil {
		return err
	}
	if len(w.Attempts) == 0 {
		return nil
	}
	rows := [][]string{{"AT (UTC)", "PROCESSOR", "CLAIMED", "HELD BY", "TASK", "MESSAGE"}}
	for i := range w.Attempts {
		at := &w.Attempts[i]
		claimed := "no"
		if at.Claimed {
			claimed = "yes"
		}
		rows = append(rows, []string{
			at.AttemptedAt.UTC().Format(term.ExactTime), term.Cell(at.ProcessorID), claimed, term.CellOf(at.AlreadyClaimedBy), term.Cell(at.TaskState), term.Cell(at.Message),
		})
	}
	return a.Table(rows, "TASK")
}
