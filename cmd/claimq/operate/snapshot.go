package operate

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// NewSnapshotCommand returns the command `claimq snapshot`.
func NewSnapshotCommand(a *term.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Back a cluster up, and restore it",
		Example: `  claimq snapshot save claimq.backup
  claimq snapshot inspect claimq.backup
  claimq snapshot restore claimq.backup`,
		Args: term.UnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSnapshotTakeCommand(a), newSnapshotSaveCommand(a), newSnapshotInspectCommand(a), newSnapshotRestoreCommand(a))
	return cmd
}

// takeTimeout is how long take goes on trying unless --timeout says otherwise: nodes
// write a snapshot slowly, 25 MiB a second, so that nobody is held up.
const takeTimeout = 10 * time.Minute

func newSnapshotTakeCommand(a *term.App) *cobra.Command {
	var f session.Flags
	cmd := &cobra.Command{
		Use:   "take",
		Short: "Have every node write a snapshot now",
		Long: `Have every node write a snapshot of its state into its data folder now, and drop
the log behind it. Nodes do so by themselves when enough log has come together;
this is for before a restart, which is quicker then. It is no backup: see save.`,
		Example: "  claimq snapshot take",
		Args:    term.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return session.With(a, &f, func(s session.Talk) error {
				var answer struct {
					Index uint64 `json:"index"`
				}
				// Who asks again waits for the same snapshot.
				r := client.Request{Method: http.MethodPost, Path: "/api/snapshots", Body: []byte("{}"), Repeatable: true}
				shown, err := s.Call(cmd.Context(), r, "The nodes are still writing, perhaps: repeat the command after a while.", &answer)
				if err != nil || shown {
					return err
				}
				_, err = fmt.Fprintf(a.Stdout, "snapshot taken at index %d\n", answer.Index)
				return err
			})
		},
	}
	session.AddFlags(a, cmd, &f)
	session.Within(cmd, takeTimeout)
	return cmd
}
