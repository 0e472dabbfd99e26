package storage

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// dropCached drops the pages of the file that are on disk from the page cache. It ignores
// file systems without such a call.
func dropCached(f *os.File) error {
	err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}
