package memory

import "golang.org/x/sys/unix"

// machine returns the bytes of memory that the machine has.
func machine() (bytes uint64, ok bool) {
	bytes, err := unix.SysctlUint64("hw.memsize")
	return bytes, err == nil
}
