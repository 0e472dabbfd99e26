package storage

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// dropCached drops what the system keeps of the file in memory and is on its disk. It
// passes over a file system that offers no such call.
func dropCached(f *os.File) error {
	err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}
