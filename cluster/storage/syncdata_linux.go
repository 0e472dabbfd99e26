package storage

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// syncData puts the file's data on disk, and the metadata needed to read them back.
func syncData(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// The flags of sync_file_range, as the kernel numbers them.
const (
	syncFileRangeWaitBefore = 1 << iota
	syncFileRangeWrite
	syncFileRangeWaitAfter
)

// sendData starts writing n bytes of the file at off to its disk, if they are not there
// yet, without waiting.
func sendData(f *os.File, off, n int64) error {
	return syncFileRange(f, off, n, syncFileRangeWrite)
}

// awaitData waits until n bytes of the file at off have been written to its disk, which may
// still have them in its own cache. An error during the write is returned here, and again
// by the file's other descriptors.
func awaitData(f *os.File, off, n int64) error {
	return syncFileRange(f, off, n, syncFileRangeWaitBefore|syncFileRangeWrite|syncFileRangeWaitAfter)
}

// syncFileRange ignores a system that does not offer or allow the call: a later sync then
// does the work.
func syncFileRange(f *os.File, off, n int64, flags int) error {
	for {
		err := syscall.SyncFileRange(int(f.Fd()), off, n, flags)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.EINVAL),
			errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ESPIPE):
			return nil
		default:
			return err
		}
	}
}

// dropCached drops the pages of the file that are on disk from the page cache. It ignores
// file systems without such a call.
func dropCached(f *os.File) error {
	err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}
