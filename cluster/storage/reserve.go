package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// freePart and freeMax define the minimum free space for a setting of 0: this part of the file
// system, at most freeMax bytes.
const (
	freePart = 20
	freeMax  = 1 << 30
	// inodesMax is the maximum for a setting of 0 where inodes are counted.
	inodesMax = 1_000
)

// FreeSpace returns how many bytes this process may still write on the file system of path, and its
// total size.
func FreeSpace(path string) (freeBytes, sizeBytes uint64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, 0, fmt.Errorf("free space of %s: %w", path, err)
	}
	return st.Bavail * uint64(st.Bsize), st.Blocks * uint64(st.Bsize), nil
}

// FreeInodes returns how many files this process may still create on the file system of path, and
// their maximum number; 0 and 0 if there is no bound.
func FreeInodes(path string) (free, size uint64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, 0, fmt.Errorf("free inodes of %s: %w", path, err)
	}
	return st.Ffree, st.Files, nil
}

// roomAdvice returns the advice for a data folder dir whose disk has no room.
func roomAdvice(dir string) string {
	if free, size, err := FreeInodes(dir); err == nil && free == 0 && size > 0 {
		return "no inode is left: remove files, which need not be large, from the disk of " + dir
	}
	return "free some space on the disk of " + dir
}

// FreeInodesMin returns how many of size inodes should be free: a twentieth, at most inodesMax.
func FreeInodesMin(size uint64) uint64 { return min(size/freePart, inodesMax) }

// FreeMin returns how many bytes of a file system of that size should be free: the configured
// number or, for 0, a twentieth, at most 1 GiB.
func FreeMin(configured, size uint64) uint64 {
	if configured == 0 {
		return min(size/freePart, freeMax)
	}
	return configured
}

const (
	reserveFolder = "reserve"
	// reserveFiles is the number of files in the reserve. Without a free inode a node needs one for
	// every segment until a snapshot frees the first ones: 8 for those written meanwhile, and as
	// many for those kept below a snapshot. Then come the snapshots, at most three at a time, and
	// the files that are replaced.
	reserveFiles = 64
	// snapshotInodes is the number of inodes of a snapshot: its folder and two files.
	snapshotInodes = 3
)

// reserve is a folder of empty files in the data folder. When the file system has no inode left,
// the node uses theirs, so that other programs' files cannot stop it. The files are never read, and
// a crash may lose any of them. It is safe for concurrent use.
type reserve struct{ dir string }

func reserveOf(dataDir string) reserve { return reserve{dir: filepath.Join(dataDir, reserveFolder)} }

// FillReserve creates the missing files of the data folder's reserve, as far as there are inodes.
func FillReserve(dataDir string) { reserveOf(dataDir).fill() }

func (r reserve) fill() {
	_ = os.Mkdir(r.dir, dataDirMode) // it usually exists; without it no file is created
	for _, path := range r.missing() {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, dataFileMode)
		if err != nil || f.Close() != nil {
			return
		}
	}
}

// missing returns the paths of the reserve's missing files, or nothing if there is no reserve.
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

// use calls do with files of the reserve until it has succeeded for count of them, and reports
// whether it has. A file with content does not belong to the reserve: after a crash on a file
// system without a journal it may be an old name of a file in use.
func (r reserve) use(count int, do func(path string) error) bool {
	for i := 0; i < reserveFiles && count > 0; i++ {
		path := filepath.Join(r.dir, strconv.Itoa(i))
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.Size() > 0:
			_ = os.Remove(path) // else it stays unused
		case do(path) == nil:
			count--
		}
	}
	return count == 0
}

// free removes count files, so that others can be created.
func (r reserve) free(count int) bool { return r.use(count, os.Remove) }

// at calls fn, which creates or overwrites a file at path. Without a free inode it gets one of the
// reserve.
func (r reserve) at(path string, fn func() error) error {
	err := fn()
	if noRoom(err) && r.use(1, func(file string) error { return os.Rename(file, path) }) {
		err = fn()
		r.fill() // at once, with the inode of a file that was replaced
	}
	return err
}

// replace is writeFileDurably with an inode of the reserve if needed.
func (r reserve) replace(path string, content []byte) error {
	return r.at(path+replacingTmp, func() error { return writeFileDurably(path, content) })
}

// give moves the file at path, which is no longer needed, into the reserve if that lacks one.
// Otherwise the file is removed.
func (r reserve) give(path string) error {
	missing := r.missing()
	if len(missing) > 0 && os.Truncate(path, 0) == nil && os.Rename(path, missing[0]) == nil {
		return nil
	}
	return os.RemoveAll(path)
}

// noRoom reports whether err means that the file system has no bytes or no inodes left.
func noRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
