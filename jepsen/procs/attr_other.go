//go:build !linux

package procs

import "syscall"

// ChildAttr has nothing to ask for where the kernel cannot tie a child's life
// to its parent's: there, Close must be called.
func ChildAttr() *syscall.SysProcAttr { return nil }
