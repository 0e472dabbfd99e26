package procs

import "syscall"

// childAttr makes the kernel kill a node when the program that started it
// ends in whatever way.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
