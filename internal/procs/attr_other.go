//go:build !linux

package procs

import "syscall"

// ChildAttr returns nil where the kernel cannot tie a child's life to its parent's. There,
// Close must be called.
func ChildAttr() *syscall.SysProcAttr { return nil }
