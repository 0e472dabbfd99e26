//go:build !linux

package procs

// PeakBytes returns 0, because the system does not report it.
func (*Node) PeakBytes() int64 { return 0 }
