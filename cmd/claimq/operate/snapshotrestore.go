package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/fsm"
)

func newSnapshotRestoreCommand(a *term.App) *cobra.Command {
	var f session.Flags
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a backup into an empty cluster",
		Long: `Restore a backup into an empty cluster: it has no tasks, schedules or settings of
types, and remembers no removed ones. Start new nodes with empty folders for it.

The command and the server verify the backup first, and a bad backup changes nothing.
The new cluster continues with ids and claim tokens far above those of the backup, so
that none is issued twice. It keeps its own nodes. Claims continue with the time they
had left when the backup was saved.

--timeout limits the search for a node that accepts the backup. A node that does not
begin within 15s is skipped. Once a node has received the whole backup, the command
waits for its answer, for at most an hour.`,
		Example: "  claimq snapshot restore claimq.backup",
		RunE:    func(cmd *cobra.Command, args []string) error { return restoreBackup(cmd.Context(), a, &f, args[0]) },
	}
	session.AddFlags(a, cmd, &f)
	term.OnlyExplicit(cmd)
	return cmd
}

func restoreBackup(ctx context.Context, a *term.App, f *session.Flags, path string) error {
	info, size, err := checkBackupFile(path)
	if err != nil {
		return fmt.Errorf("%s cannot be restored: %w", path, err)
	}
	t, err := newTransfer(f)
	if err != nil {
		return err
	}
	resp, sent, err := t.try(ctx, http.MethodPost, "/api/restore", &transferBody{
		size: size, open: func() (io.ReadCloser, error) { return os.Open(path) },
	})
	if err != nil {
		if sent {
			err = fmt.Errorf("%w: %w", client.ErrOutcomeUnknown, err)
		}
		_, _ = session.Talk{App: a, Flags: f}.ShowJSON(nil, err)
		return &term.CallError{Err: err, Unknown: "Look with 'claimq stats' whether the tasks are there; if they are not, restore again.", Asked: f.Endpoints}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, refusalBytes))
	if err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	if f.Output == "json" {
		return a.Sayf("%s", body)
	}
	var answer struct {
		Index uint64 `json:"index"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("decode the server's answer: %w", err)
	}
	return a.Sayf("restored %s: what was the state at index %d is that at index %d", term.Printable(path), info.Index, answer.Index)
}

// checkBackupFile verifies the checksum of the backup at path.
func checkBackupFile(path string) (info fsm.BackupInfo, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return info, 0, err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return info, 0, err
	}
	info, err = fsm.CheckBackup(f, stat.Size())
	return info, stat.Size(), err
}
