package config

import (
	"os"
	"path/filepath"
	"time"
)

// Backup says when the leader saves backups, and where.
type Backup struct {
	// Every is the time from one backup to the next; 0: none are taken.
	Every time.Duration
	// To is the absolute path of a folder that exists.
	To string
	// Keep limits the cluster's backups in the folder.
	Keep int
	// Command is an executable file that gets each backup as its standard input; "": none. It runs for at most Timeout.
	Command string
	Timeout time.Duration
}

// validate records mistakes. The folder may be on a disk that comes later, so only its path is checked.
func (b *Backup) validate(add func(string, ...any)) {
	if b.Every == 0 {
		if b.To != "" || b.Command != "" {
			add("backup.to and backup.command go with backup.every: set it, for example to 1h")
		}
		return
	}
	if !filepath.IsAbs(b.To) {
		add("backup.to is %q: it must be the absolute path of a folder", b.To)
	}
	if b.Command == "" {
		return
	}
	info, err := os.Stat(b.Command)
	switch {
	case !filepath.IsAbs(b.Command):
		add("backup.command is %q: it must be an absolute path, without arguments", b.Command)
	case err != nil:
		add("backup.command: %w", err)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		add("backup.command is %q: it must be an executable file", b.Command)
	}
}
