package storage

import (
	"fmt"
	"syscall"
)

// freePart and freeMax are the least free space that 0 stands for: this part of the
// file system, at most so many bytes.
const (
	freePart = 20
	freeMax  = 1 << 30
	// inodesMax is the most that 0 stands for where inodes are counted.
	inodesMax = 1_000
)

// FreeSpace returns how many bytes this process may still write on the file system
// that holds path, and how many that has in all.
func FreeSpace(path string) (freeBytes, sizeBytes uint64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, 0, fmt.Errorf("free space of %s: %w", path, err)
	}
	return st.Bavail * uint64(st.Bsize), st.Blocks * uint64(st.Bsize), nil
}

// FreeInodes returns how many files this process may still make on the file system that holds path,
// and how many that may have in all; 0 of 0 where there is no such bound.
func FreeInodes(path string) (free, size uint64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, 0, fmt.Errorf("free inodes of %s: %w", path, err)
	}
	return st.Ffree, st.Files, nil
}

// roomAdvice says what to do when the disk of the data folder dir has no room.
func roomAdvice(dir string) string {
	if free, size, err := FreeInodes(dir); err == nil && free == 0 && size > 0 {
		return "no inode is left: remove files, which need not be large, from the disk of " + dir
	}
	return "free some space on the disk of " + dir
}

// FreeInodesMin returns how many inodes of so many are to be free: a twentieth, inodesMax at most.
func FreeInodesMin(size uint64) uint64 { return min(size/freePart, inodesMax) }

// FreeMin returns how many bytes of a file system of that size are to be free: as many
// as are configured, and for 0 a twentieth of it, 1 GiB at most.
func FreeMin(configured, size uint64) uint64 {
	if configured == 0 {
		return min(size/freePart, freeMax)
	}
	return configured
}
