//go:build !linux

package procs

// PeakBytes returns 0: the system does not tell.
func (*Node) PeakBytes() int64 { return 0 }
