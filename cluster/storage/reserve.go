package storage

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

const (
	reserveFolder = "reserve"
	// reserveFiles is how many files the reserve has. Without a free inode a node needs one for every
	// segment until a snapshot lets the first ones go: 8 with those that are written beside it, and as many as hold what is
	// kept behind a snapshot. Then come the snapshots, of which at most three are there at once, and the
	// files that are replaced by new ones.
	reserveFiles = 64
	// snapshotInodes is what a snapshot takes: its folder and two files.
	snapshotInodes = 3
)

// reserve is a folder of empty files in the data folder. When the file system has no inode left, the
// node goes on with theirs: so other programs' files never end it. Nothing reads the files, and a crash may lose
// any of them. It is safe for concurrent use.
type reserve struct{ dir string }

func reserveOf(dataDir string) reserve { return reserve{dir: filepath.Join(dataDir, reserveFolder)} }

// FillReserve makes what the reserve of the data folder lacks, as far as there are inodes.
func FillReserve(dataDir string) { reserveOf(dataDir).fill() }

func (r reserve) fill() {
	_ = os.Mkdir(r.dir, dataDirMode) // most often it is there; without it no file is made
	for _, path := range r.missing() {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, dataFileMode)
		if err != nil || f.Close() != nil {
			return
		}
	}
}

// missing returns the paths of the files that the reserve lacks, none if there is no reserve.
func (r reserve) missing() []string {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil
	}
	there := make(map[string]bool, len(entries))
	for _, e := range entries {
		there[e.Name()] = true
	}
	var paths []string
	for i := range reserveFiles {
		if name := strconv.Itoa(i); !there[name] {
			paths = append(paths, filepath.Join(r.dir, name))
		}
	}
	return paths
}

// use calls do with files of the reserve until it has succeeded for count of them, and reports whether it has. A file
// with content is none of the reserve's: a crash on a file system without a journal may have left an old name
// of one that is in use.
func (r reserve) use(count int, do func(path string) error) bool {
	for i := 0; i < reserveFiles && count > 0; i++ {
		path := filepath.Join(r.dir, strconv.Itoa(i))
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.Size() > 0:
			_ = os.Remove(path) // else it stays, and is not used
		case do(path) == nil:
			count--
		}
	}
	return count == 0
}

// free removes count files, for what others make.
func (r reserve) free(count int) bool { return r.use(count, os.Remove) }

// at calls fn, which makes a file at path, or writes over one that is there. Without a free inode it gets one
// of the reserve.
func (r reserve) at(path string, fn func() error) error {
	err := fn()
	if noRoom(err) && r.use(1, func(file string) error { return os.Rename(file, path) }) {
		err = fn()
		r.fill() // at once, with the inode of a file that was replaced
	}
	return err
}

// replace is writeFileDurably.
func (r reserve) replace(path string, content []byte) error {
	return r.at(path+replacingTmp, func() error { return writeFileDurably(path, content) })
}

// give takes the inode of the file at path, which nobody needs any more, into the reserve if that lacks one. Else
// the file is removed.
func (r reserve) give(path string) error {
	missing := r.missing()
	if len(missing) > 0 && os.Truncate(path, 0) == nil && os.Rename(path, missing[0]) == nil {
		return nil
	}
	return os.RemoveAll(path)
}

// noRoom reports whether err says that the file system has no room, of bytes or of inodes.
func noRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
