package storage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ReadFromDisk ensures that later reads of the files in the data folder dir return what is
// on its disk: each file is synced, and then dropped from the page cache.
//
// Otherwise a node could rely on data that no disk has. A failed sync, after which the
// previous process ended, may have left pages in memory that differ from the disk but count
// as written, so that no later sync writes them. And data that a killed process wrote but
// did not sync is only in memory; such pages cannot be dropped, so the sync comes
// first. The check of the log then finds what is missing on the disk. Folders are synced,
// too: the process may have been killed before it did that for a snapshot, for which the
// next start deletes the log.
//
// On macOS it only syncs, because there is no call that drops a file from the cache.
// Errors: those of the disk; a node that gets one must not start.
func ReadFromDisk(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return DirError(dir, err)
		case entry.IsDir() && (strings.HasSuffix(path, snapshotTmp) || entry.Name() == reserveFolder):
			return fs.SkipDir // unfinished, or empty: never read
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
