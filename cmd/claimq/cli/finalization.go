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
	return term.Group(&cobra.Command{
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

// finalizationCommand makes cmd call the server about a processor's claim on the finalization of a task. judge puts
// the answer into words, or returns an error. lasts describes the flag for how long the claim lasts; if it is "", the
// command has no such flag.
func finalizationCommand[A any](a *term.App, cmd *cobra.Command, verb, lasts string, judge func(processor string, id uint64, answer *A) (string, error)) *cobra.Command {
	var processor string
	var within time.Duration
	session.Acts(a, cmd, func(cmd *cobra.Command, args []string) (session.Act, error) {
		if processor == "" {
			return nil, term.UsageErrorf("--processor is missing: say who would finalize the task")
		}
		if within < 0 || within%time.Second != 0 {
			return nil, term.UsageErrorf("--for is %v: it must be whole seconds, not negative", within)
		}
		id, err := session.ParseID(args[0])
		if err != nil {
			return nil, err
		}
		body := wire.FinalizationClaim{ProcessorID: processor, TimeoutSeconds: int64(within / time.Second)}
		r, err := session.Post(session.TaskPath(id, "finalization/"+verb), body, "Repeat the command: the server knows the claim by its processor.")
		return func(s session.Talk) error {
			var answer A
			shown, err := s.Call(cmd.Context(), r, &answer)
			if err != nil {
				return err
			}
			text, err := judge(term.Printable(processor), id, &answer)
			if err != nil || shown {
				return err
			}
			return a.Sayf("%s", text)
		}, err
	})
	if lasts != "" {
		term.DurationVar(cmd.Flags(), &within, "for", 0, lasts)
		term.OnlyExplicit(cmd)
	}
	addProcessorFlag(cmd, &processor)
	return cmd
}

func newFinalizationClaimCommand(a *term.App) *cobra.Command {
	return finalizationCommand(a, &cobra.Command{
		Use:   "claim ID",
		Short: "Claim the right to finalize a task, or extend the claim",
		Long: `Claim the right to finalize a task, or extend the processor's claim. One processor at
a time gets it, once a step has completed or failed. If the processor dies, the claim
ends when its time is over.

Exit codes: 0 claimed, 1 refused (the output says why), 4 no such task.`,
		Example: "  claimq finalization claim 17 --processor p1\n  claimq finalization claim 17 --processor p1 --for 2m",
	}, "claim", "how long the claim lasts, 1s to 1h; 0: 30s", func(_ string, _ uint64, answer *wire.FinalizationClaimed) (string, error) {
		if !answer.Claimed {
			return "", &term.NotHeldError{Text: claimText(answer), NotFound: answer.TaskState == string(client.FinalizationNotFound)}
		}
		return claimText(answer), nil
	})
}

// claimText returns the server's words, then the owner of the claim and its token.
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
	return finalizationCommand(a, &cobra.Command{
		Use:   "extend ID",
		Short: "Extend the processor's claim",
		Long: `Extend the processor's claim. The claim is never shortened. Exit code 1: the
processor does not hold the claim.`,
		Example: "  claimq finalization extend 17 --processor p1 --for 2m",
	}, "extend", "how long from now, 1s to 1h; 0: as long as it was claimed for", func(processor string, id uint64, answer *wire.FinalizationExtended) (string, error) {
		return heldText(processor, id, answer.Extended, "is extended")
	})
}

func newFinalizationReleaseCommand(a *term.App) *cobra.Command {
	return finalizationCommand(a, &cobra.Command{
		Use:     "release ID",
		Short:   "Release the processor's claim",
		Long:    `Release the processor's claim. Exit code 1: the processor does not hold the claim.`,
		Example: "  claimq finalization release 17 --processor p1",
	}, "release", "", func(processor string, id uint64, answer *wire.FinalizationReleased) (string, error) {
		return heldText(processor, id, answer.Released, "is released")
	})
}

// heldText says that the claim was changed, or that the processor has none.
func heldText(processor string, id uint64, held bool, what string) (string, error) {
	if !held {
		return "", &term.NotHeldError{Text: fmt.Sprintf("%s does not hold the finalization of task %d", processor, id)}
	}
	return fmt.Sprintf("the claim of %s on the finalization of task %d %s", processor, id, what), nil
}

func newFinalizationShowCommand(a *term.App) *cobra.Command {
	return session.Look(a, &cobra.Command{
		Use:     "show ID",
		Short:   "Show the attempts to finalize a task, and who holds the claim",
		Example: "  claimq finalization show 17",
	}, session.AtTask("finalization"), func(answer *wire.Finalization) error { return showFinalization(a, answer) })
}

func showFinalization(a *term.App, w *wire.Finalization) error {
	held := "the claim is free"
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
		rows = append(rows, []string{
			at.AttemptedAt.UTC().Format(term.ExactTime), term.Cell(at.ProcessorID), term.YesNo(at.Claimed), term.CellOf(at.AlreadyClaimedBy), term.Cell(at.TaskState), term.Cell(at.Message),
		})
	}
	return a.Table(rows, "TASK")
}
