package cluster

import (
	"errors"
	"os"
	"syscall"
)

// syncData puts the file's data on disk, and what is needed to read them back.
func syncData(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
