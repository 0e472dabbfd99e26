package lossyfs

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// unmount makes all calls under way in the file system fail, and removes it.
func unmount(dir string) error {
	return syscall.Unmount(dir, syscall.MNT_FORCE|syscall.MNT_DETACH)
}

// removeStale unmounts the disks of processes that have ended.
func removeStale() error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[2] != "fuse."+fsType {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimPrefix(fields[0], fsType+"-"))
		if err != nil || syscall.Kill(pid, 0) != syscall.ESRCH {
			continue
		}
		// EINVAL: another run has been quicker.
		if err := unmount(unescape(fields[1])); err != nil && !errors.Is(err, syscall.EINVAL) {
			return err
		}
	}
	return nil
}

// unescape decodes the kernel's escapes of spaces and the like in paths.
func unescape(path string) string {
	for _, c := range []byte(" \t\n\\") {
		path = strings.ReplaceAll(path, fmt.Sprintf("\\%03o", c), string(c))
	}
	return path
}
