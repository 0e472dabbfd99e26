//go:build !linux

package lossyfs

import "errors"

// unmount and removeStale are only needed on Linux, because no disks are mounted elsewhere.
func unmount(string) error { return errors.ErrUnsupported }

func removeStale() error { return errors.ErrUnsupported }
