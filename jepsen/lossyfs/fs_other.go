//go:build !linux

package lossyfs

import (
	"errors"
	"fmt"
	"math/rand"
	"time"
)

// FS is a file system that can lose power: there is none but on Linux.
type FS struct{}

// New refuses: it mounts as Linux does.
func New(string) (*FS, error) {
	return nil, fmt.Errorf("disks of the nodes' own: %w", errors.ErrUnsupported)
}

// Dir is where it is mounted.
func (f *FS) Dir() string { return "" }

// Cut takes the power away.
func (f *FS) Cut(*rand.Rand) Loss { return Loss{} }

// Fill leaves no room.
func (f *FS) Fill(bool) {}

// Hang lets every call wait.
func (f *FS) Hang() (release func()) { return func() {} }

// SlowSync lets each sync take longer.
func (f *FS) SlowSync(time.Duration) (repair func()) { return func() {} }

// FailSync lets each sync fail.
func (f *FS) FailSync() (repair func()) { return func() {} }

// Powered reports whether there is power.
func (f *FS) Powered() bool { return false }

// Restore gives the power back.
func (f *FS) Restore() error { return errors.ErrUnsupported }

// Close unmounts it.
func (f *FS) Close() error { return nil }
