//go:build !linux

package cli

import "syscall"

// commandAttr gives a command a process group of its own, so that all of it can be
// signalled.
func commandAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
