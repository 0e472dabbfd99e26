package procs

import "syscall"

// ChildAttr makes the kernel kill a child when the program that started it ends, no matter
// how.
func ChildAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
