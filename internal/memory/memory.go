// Package memory determines how much memory this process may use.
package memory

import (
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Total returns the number of bytes that this process may use: the machine's memory, or a
// lower limit of its cgroups.
func Total() uint64 {
	total := uint64(math.MaxInt64)
	if bytes, ok := machine(); ok {
		total = bytes
	}
	if bytes, ok := cgroup("/"); ok {
		total = min(total, bytes)
	}
	return total
}

// cgroup returns the lowest memory limit of this process's cgroup and those above it, of
// version 1 and version 2, as read from files under root ("/" except in tests). A cgroup's
// limit covers all cgroups within it. ok is false without a limit.
func cgroup(root string) (bytes uint64, ok bool) {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		// ID:CONTROLLERS:PATH; version 2 has no controllers.
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		var mounts []string
		file := "memory.max"
		switch {
		case parts[1] == "":
			mounts = []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"}
		case strings.Contains(","+parts[1]+",", ",memory,"):
			mounts, file = []string{"sys/fs/cgroup/memory"}, "memory.limit_in_bytes"
		}
		for _, mount := range mounts {
			// In a container the path may be the host's, while the container's own cgroup
			// is the root of the mount, where the loop ends.
			for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
				if n, known := cgroupBound(filepath.Join(root, mount, at, file)); known && (!ok || n < bytes) {
					bytes, ok = n, true
				}
				if at == "/" {
					break
				}
			}
		}
	}
	return bytes, ok
}

// cgroupBound reads one limit. "max" does not parse and means no limit.
func cgroupBound(file string) (bytes uint64, ok bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	bytes, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return bytes, err == nil
}
