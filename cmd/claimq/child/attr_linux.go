package child

import "syscall"

// Attr gives a child a process group of its own, so that all of it can be
// signalled, and has the kernel kill the child when the thread that started it
// ends: also by kill -9 of the worker. The thread must be kept while it runs.
func Attr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
