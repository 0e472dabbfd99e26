package operate

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/backup"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/bytesize"
)

type saveOptions struct {
	session.Flags
	stale bool
}

func newSnapshotSaveCommand(a *term.App) *cobra.Command {
	var o saveOptions
	cmd := &cobra.Command{
		Use:   "save FILE",
		Short: "Save a backup of the cluster to a file",
		Long: `Save a backup of the whole state to FILE, as of one index of the log. It contains
every task, schedule and setting that was acknowledged before. The cluster keeps
working meanwhile.

The backup is first written to FILE.*.partial in the same folder, which only its
owner can read. It is verified and then renamed to FILE, which must not exist. With
--stale, the node that answers saves what it has without asking the leader. Use that
for a cluster that has lost its quorum.`,
		Example: `  claimq snapshot save claimq-2026-11-21.backup
  claimq snapshot save --stale --endpoint http://127.0.0.1:7410 last.backup`,
		RunE: func(cmd *cobra.Command, args []string) error { return saveBackup(cmd.Context(), a, &o, args[0]) },
	}
	session.AddFlags(a, cmd, &o.Flags)
	cmd.Flags().BoolVar(&o.stale, "stale", false, "save what the node has, without asking the leader")
	term.OnlyExplicit(cmd)
	return cmd
}

func saveBackup(ctx context.Context, a *term.App, o *saveOptions, path string) error {
	if _, err := os.Lstat(path); err == nil {
		return term.UsageErrorf("%s exists: give another name, or move it away", path)
	}
	t, err := newTransfer(&o.Flags)
	if err != nil {
		return err
	}
	target := "/api/snapshots/latest"
	if o.stale {
		target += "?consistency=stale"
	}
	resp, _, err := t.try(ctx, http.MethodGet, target, nil)
	if err != nil {
		_, _ = session.Talk{App: a, Flags: &o.Flags}.ShowJSON(nil, err)
		return &term.CallError{Err: err, Asked: o.Endpoints}
	}
	defer resp.Body.Close()
	name := filepath.Base(path)
	partial, err := backup.Write(filepath.Dir(path), name, func(w io.Writer) (int64, error) { return io.Copy(w, resp.Body) })
	if err != nil {
		return fmt.Errorf("%s was not saved: %w", path, err)
	}
	if err := partial.Name(name); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return showSaved(a, &o.Flags, path, partial.Size, &partial.Info)
}

func showSaved(a *term.App, f *session.Flags, path string, size int64, info *fsm.BackupInfo) error {
	if f.Output == "json" {
		return term.ShowJSON(a.Stdout, savedBackup{File: path, Bytes: size, backupFacts: factsOf(info)})
	}
	return a.Sayf("saved %s: the state at index %d, %s, verified", term.Printable(path), info.Index, bytesize.Text(size))
}

// savedBackup is the JSON output of save.
type savedBackup struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	backupFacts
}

// backupFacts holds what a backup records about itself.
type backupFacts struct {
	ClusterID    string `json:"cluster_id"`
	Index        uint64 `json:"index"`
	FeatureLevel uint32 `json:"feature_level"`
	CreatedAt    string `json:"created_at"`
	Version      string `json:"version"`
}

func factsOf(info *fsm.BackupInfo) backupFacts {
	return backupFacts{
		ClusterID: info.ClusterID, Index: info.Index, FeatureLevel: info.Level, Version: info.Version,
		CreatedAt: time.UnixMilli(info.CreatedAt).UTC().Format("2006-01-02T15:04:05.000Z"),
	}
}
