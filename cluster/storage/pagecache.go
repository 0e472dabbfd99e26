package storage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// readFromDisk makes sure that what is read from now on of the files in the data
// folder dir is what its disk has: each is synced, and then what the system keeps of
// it in memory is dropped.
//
// Without it a node could rely on what no disk has. A sync that failed, after which
// the process before this one ended, may have left pages in memory that differ from
// the disk and pass for written: no later sync writes them. And what that process
// wrote and did not sync, because it was killed, is in memory only; pages like these
// cannot be dropped, which is why the sync comes first. What is missing on the disk
// shows when the log is checked. The names in each folder are synced, too: it may have been
// killed before it did so for a snapshot, for which the next start deletes the log.
//
// On macOS it syncs only: there is no call that drops what is kept of a file.
// Errors: of the disk; a node that gets one must not start.
func readFromDisk(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return DirError(dir, err)
		case entry.IsDir() && (strings.HasSuffix(path, snapshotTmp) || entry.Name() == reserveFolder):
			return fs.SkipDir // unfinished, or empty: nobody reads it
		case entry.IsDir():
			if err := syncDir(path); err != nil {
				return storageError(dir, "sync "+path, err)
			}
			return nil
		case !entry.Type().IsRegular():
			return nil
		}
		if err := readFileFromDisk(path); err != nil {
			return storageError(dir, "sync "+path, err)
		}
		return nil
	})
}

func readFileFromDisk(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if err == nil {
		err = dropCached(f)
	}
	return errors.Join(err, f.Close())
}
