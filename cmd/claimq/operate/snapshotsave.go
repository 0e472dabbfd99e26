package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/bytesize"
)

// partialPattern follows the name of an unfinished backup. The star stands for the random part that makes the name
// unique.
const partialPattern = ".*.partial"

type saveOptions struct {
	session.Flags
	stale bool
}

func newSnapshotSaveCommand(a *term.App) *cobra.Command {
	var o saveOptions
	cmd := &cobra.Command{
		Use:   "save FILE",
		Short: "Save a backup of the cluster to a file",
		Long: `Save a backup of the whole state, as of one index of the log, to FILE: every task,
schedule and setting that was acknowledged before. The cluster goes on meanwhile.

The backup is written to a new file in the same folder, FILE.*.partial, which only
its owner can read, verified, and only then named FILE, which must not exist.
--stale saves what the node that answers has, without asking the leader: for a
cluster that has lost its quorum.`,
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
	partial, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+partialPattern)
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	info, size, err := writeBackup(partial, resp.Body)
	if err != nil {
		return errors.Join(fmt.Errorf("%s was not saved: %w", path, err), os.Remove(partial.Name()))
	}
	if err := os.Rename(partial.Name(), path); err != nil {
		return errors.Join(err, os.Remove(partial.Name()))
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return showSaved(a, &o.Flags, path, size, &info)
}

// writeBackup writes all of from to the new file f, makes it durable and verifies it. It closes f.
func writeBackup(f *os.File, from io.Reader) (info fsm.BackupInfo, size int64, err error) {
	size, err = io.Copy(f, from)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		info, err = fsm.CheckBackup(f, size)
	}
	return info, size, errors.Join(err, f.Close())
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
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
