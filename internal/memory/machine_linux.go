package memory

import "golang.org/x/sys/unix"

// machine returns the machine's memory in bytes.
func machine() (bytes uint64, ok bool) {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0, false
	}
	return info.Totalram * uint64(info.Unit), true
}
