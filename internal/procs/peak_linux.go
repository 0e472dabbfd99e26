package procs

import (
	"fmt"
	"os"
	"strings"
)

// PeakBytes returns the peak of resident memory of the last start's process, since the last
// ResetPeak if there was one, or 0 if unknown.
func (n *Node) PeakBytes() (bytes int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.PID()))
	if err != nil {
		return 0 // it has ended
	}
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &bytes); err == nil {
			return bytes << 10
		}
	}
	return 0
}

// ResetPeak lets PeakBytes report the peak from now on.
func (n *Node) ResetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", n.PID()), []byte("5"), 0)
}
