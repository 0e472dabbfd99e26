//go:build !linux

package procs

import "syscall"

// childAttr has nothing to ask for where the kernel cannot tie a child's life
// to its parent's: there, Close must be called.
func childAttr() *syscall.SysProcAttr { return nil }
