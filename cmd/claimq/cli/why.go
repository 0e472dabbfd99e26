package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// NewWhyCommand returns the command `claimq why`.
func NewWhyCommand(a *term.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why ID",
		Short: "Say why a task is not running",
		Long: `Say why a task is not running. It may wait for its time, for its turn, for a limit,
for other tasks of its group, for steps before it, or for a worker.`,
		Example: "  claimq why 17",
	}
	session.Acts(a, cmd, func(cmd *cobra.Command, args []string) (session.Act, error) {
		id, err := session.ParseID(args[0])
		return func(s session.Talk) error {
			return session.Ask(cmd.Context(), s, session.Get(session.TaskPath(id, "why")), func(why *wire.Why) error {
				if len(why.Reasons) > 0 {
					return showReasons(a, id, why.Reasons)
				}
				// The task does not wait, so the answer describes its state.
				var answer wire.Answer
				if _, err := s.Do(cmd.Context(), session.Get(session.TaskPath(id, "")), &answer); err != nil {
					return err
				}
				return a.Sayf("task %d does not wait: %s", id, stateText(a, answer.Task))
			})
		}, err
	})
	session.Within(cmd, session.LookTimeout)
	return cmd
}

// showReasons prints one line per reason.
func showReasons(a *term.App, id uint64, reasons []wire.Reason) error {
	rows := [][]string{{fmt.Sprintf("task %d waits:", id)}}
	for i := range reasons {
		rows = append(rows, []string{"  " + term.Printable(reasons[i].Code), reasonText(a, &reasons[i])})
	}
	return term.Columns(a.Stdout, rows)
}

// reasonText returns a reason in the server's words. It adds how far its time is from now, and which workers hold the
// claims that block it.
func reasonText(a *term.App, r *wire.Reason) string {
	text := term.Printable(r.Message)
	for _, at := range []*time.Time{r.At, r.RunAt, r.LastAskedAt} {
		if at == nil {
			continue
		}
		if left := at.Sub(a.Clock()); left >= 0 {
			text += " (in " + term.ShowDuration(left) + ")"
		} else {
			text += " (" + term.ShowDuration(-left) + " ago)"
		}
	}
	if len(r.Steps) > 0 {
		text += ": " + a.Text(strings.Join(r.Steps, ", "))
	}
	if len(r.Holders) > 0 {
		held := make([]string, len(r.Holders))
		for i, h := range r.Holders {
			held[i] = strconv.FormatUint(h.TaskID, 10) + " by " + term.Printable(h.WorkerID)
		}
		text += ": " + a.Text(strings.Join(held, ", "))
	}
	return text
}

// stateText says what a task does that does not wait.
func stateText(a *term.App, t *wire.Task) string {
	switch {
	case t == nil:
		return "the server did not say what it does"
	case t.Status == "claimed" && t.WorkerID != nil && t.LeaseRemainingMS != nil:
		left := time.Duration(*t.LeaseRemainingMS) * time.Millisecond
		return fmt.Sprintf("%s holds it, for another %s at least unless it extends", term.Printable(*t.WorkerID), term.ShowDuration(left))
	case t.Finalize == client.FinalizeClaim && t.CompletedAt == nil && term.AllEnded(t.Steps):
		return fmt.Sprintf("its steps have ended, and a processor ends it, as 'claimq finalize %d' does", t.ID)
	case len(t.Steps) > 0 && t.CompletedAt == nil:
		return "it runs, " + term.CountSteps(t.Steps) + fmt.Sprintf("; 'claimq steps %d' draws them", t.ID)
	case t.CompletedAt != nil:
		text := "it ended as " + term.Printable(t.Status) + ", " + a.ShowTime(*t.CompletedAt)
		if t.Error != "" && t.Status == "failed" {
			text += ": " + a.Text(t.Error)
		}
		return text
	}
	return "it is " + term.Printable(t.Status)
}
