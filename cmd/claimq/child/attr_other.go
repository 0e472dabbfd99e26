//go:build !linux

package child

import "syscall"

// Attr gives a child a process group of its own, so that all of it can be
// signalled.
func Attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
