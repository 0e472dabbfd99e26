//go:build !linux

package lossyfs

import "errors"

// unmount and removeStale are for Linux alone: no disk is mounted elsewhere.
func unmount(string) error { return errors.ErrUnsupported }

func removeStale() error { return errors.ErrUnsupported }
