//go:build !linux

package child

import "syscall"

// Attr puts a child into its own process group, so that all of it can be signalled.
func Attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
