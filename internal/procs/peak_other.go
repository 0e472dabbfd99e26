//go:build !linux

package procs

import "errors"

// PeakBytes returns 0, because the system does not report it.
func (*Node) PeakBytes() int64 { return 0 }

// ResetPeak fails.
func (*Node) ResetPeak() error { return errors.ErrUnsupported }
