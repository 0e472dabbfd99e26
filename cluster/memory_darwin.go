package cluster

import "golang.org/x/sys/unix"

// machineMemory returns the bytes of memory that the machine has.
func machineMemory() (bytes uint64, ok bool) {
	bytes, err := unix.SysctlUint64("hw.memsize")
	return bytes, err == nil
}
