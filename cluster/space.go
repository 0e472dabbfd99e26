package cluster

import (
	"fmt"
	"syscall"
)

// freePart and freeMax are the least free space that 0 stands for: this part of the
// file system, at most so many bytes.
const (
	freePart = 20
	freeMax  = 1 << 30
)

// freeSpace returns how many bytes this process may still write on the file system
// that holds path, and how many that has in all.
func freeSpace(path string) (freeBytes, sizeBytes uint64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, 0, fmt.Errorf("free space of %s: %w", path, err)
	}
	return st.Bavail * uint64(st.Bsize), st.Blocks * uint64(st.Bsize), nil
}

// freeMinOf returns how many bytes of a file system of that size are to be free.
func freeMinOf(configured, size uint64) uint64 {
	if configured == 0 {
		return min(size/freePart, freeMax)
	}
	return configured
}
