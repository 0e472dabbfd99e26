package memory

import "golang.org/x/sys/unix"

// machine returns the machine's memory in bytes.
func machine() (bytes uint64, ok bool) {
	bytes, err := unix.SysctlUint64("hw.memsize")
	return bytes, err == nil
}
