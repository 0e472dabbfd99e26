package storage

import (
	"fmt"
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
