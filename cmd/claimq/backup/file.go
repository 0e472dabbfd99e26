// Package backup writes backups to files: for `claimq snapshot save`, and regularly on the leader (Regular). A file
// has its name only once it is complete, durable and verified.
package backup

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/claimq/claimq/fsm"
)

// PartialPattern follows the name of an unfinished backup. The star stands for the random part that makes the name
// unique.
const PartialPattern = ".*.partial"

// Partial is a backup that is complete, durable and verified, but does not have its name yet.
type Partial struct {
	Info fsm.BackupInfo
	Size int64
	path string
}

// Write writes a backup to a new file in folder, which only its owner can read, and verifies it. write is called once.
func Write(folder, name string, write func(io.Writer) (int64, error)) (*Partial, error) {
	f, err := os.CreateTemp(folder, name+PartialPattern)
	if err != nil {
		return nil, err
	}
	p := &Partial{path: f.Name()}
	p.Size, err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		p.Info, err = fsm.CheckBackup(f, p.Size)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(err, p.Remove())
	}
	return p, nil
}

// Name gives the backup its name in its folder. If that fails, the file is removed.
func (p *Partial) Name(name string) error {
	folder := filepath.Dir(p.path)
	if err := os.Rename(p.path, filepath.Join(folder, name)); err != nil {
		return errors.Join(err, p.Remove())
	}
	return syncFolder(folder)
}

// Remove removes the file.
func (p *Partial) Remove() error { return os.Remove(p.path) }

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
