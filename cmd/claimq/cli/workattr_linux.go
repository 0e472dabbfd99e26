package cli

import "syscall"

// commandAttr gives a command a process group of its own, so that all of it can be
// signalled, and has the kernel kill the command when the thread that started it
// ends: also by kill -9 of the worker. The thread must be kept while it runs.
func commandAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
