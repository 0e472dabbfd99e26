package operate

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// NewSnapshotCommand returns the command `claimq snapshot`.
func NewSnapshotCommand(a *term.App) *cobra.Command {
	return term.Group(&cobra.Command{
		Use:   "snapshot",
		Short: "Back up a cluster, and restore it",
		Example: `  claimq snapshot save claimq.backup
  claimq snapshot inspect claimq.backup
  claimq snapshot restore claimq.backup`,
	}, newSnapshotTakeCommand(a), newSnapshotSaveCommand(a), newSnapshotInspectCommand(a), newSnapshotRestoreCommand(a))
}

// takeTimeout is the time for which take tries unless --timeout says otherwise. Nodes write a snapshot at only 25 MiB
// per second, so that requests need not wait.
const takeTimeout = 10 * time.Minute

func newSnapshotTakeCommand(a *term.App) *cobra.Command {
	type taken struct {
		Index uint64 `json:"index"`
	}
	cmd := session.Command(a, &cobra.Command{
		Use:   "take",
		Short: "Make every node write a snapshot now",
		Long: `Make every node write a snapshot of its state into its data folder now and drop the
log before it. Nodes also do this by themselves once the log is large enough. Use the
command before a restart, which is then faster. A snapshot is not a backup: use
'claimq snapshot save' for that.`,
		Example: "  claimq snapshot take",
	}, func([]string) (session.Request, error) {
		// A repeat waits for the same snapshot.
		return session.Post("/api/snapshots", []byte("{}"), "The nodes are still writing, perhaps: repeat the command after a while.")
	}, func(_ []string, answer *taken) error { return a.Sayf("snapshot taken at index %d", answer.Index) })
	session.Within(cmd, takeTimeout)
	return cmd
}
